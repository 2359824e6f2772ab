// The parts of plotly.js that the charts use: lines and points, bars, and heat maps. README.md explains the build.

import Plotly from "plotly.js/lib/core";
import bar from "plotly.js/lib/bar";
import heatmap from "plotly.js/lib/heatmap";

Plotly.register([bar, heatmap]);
export default Plotly;
