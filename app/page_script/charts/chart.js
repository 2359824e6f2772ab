// Draws a chart with plotly.js in the page's colours, and draws it again when its width or the colours change.
/** @import { ChartHeader, Received, Send, Theme } from "../../matrix_board/messages" */
/** @import { PlotElement } from "./lines.js" */

import { make, readTheme } from "../../matrix_board/drawing/elements.js";
import { watchChart, reportWidth } from "./lines.js";
import { saveChart } from "./saving.js";

/* global PLOTLY -- the file name of plotly.js, which app/page_script/mounting.py defines above this script */

const LINE_SHARE = 0.68; // share of a line's colour in the colour of its labels; the contrast is then at least 4.5 to 1

/** @type {Promise<any> | undefined} */
let library;

export class Chart {
  /** @type {ChartHeader} */
  header;
  /** The figure as JSON, which is read again for each drawing because plotly.js changes its objects. */
  figure = "";
  /** @type {Theme} */
  theme;
  /** @type {Send} */
  send;
  /** @type {object | undefined} */
  config;
  /** The digest of the figure, the width and the colours of the last drawing, as JSON. */
  drawnKey = "";

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {PlotElement} */
    this.root = /** @type {any} */ (make("div", { class: "chart", role: "figure" }));
    host.append(this.root);
    this.resizeObserver = new ResizeObserver(() => this.draw());
    this.resizeObserver.observe(this.root);
    library ??= import(new URL(PLOTLY, import.meta.url).href).then(
      (module) => module.default,
      (failure) => {
        library = undefined; // the next chart tries again
        throw failure;
      },
    );
    reportWidth();
  }

  /** @param {Received<ChartHeader>} received */
  receive({ header, payload }) {
    this.header = header;
    this.figure = new TextDecoder().decode(payload);
    this.root.setAttribute("aria-label", header.alt);
    this.draw();
  }

  show() {}

  retheme() {
    this.theme = readTheme(this.root);
    this.draw();
  }

  async draw() {
    const plotly = await library;
    const width = this.root.clientWidth;
    const key = JSON.stringify([this.header?.digest, width, this.theme]);
    if (!this.figure || !this.theme || !width || key === this.drawnKey) return;
    this.drawnKey = key;
    this.config ??= this.makeConfig(plotly);
    const { data, layout } = JSON.parse(this.figure);
    colourLabels(data, layout.annotations ?? [], this.theme);
    await plotly.react(this.root, {
      data,
      layout: { ...layout, width, template: template(this.theme) },
      config: this.config,
    });
    const button = this.root.querySelector(".modebar-btn");
    for (const attribute of ["data-title", "aria-label"]) button?.setAttribute(attribute, this.header.save);
    watchChart(this.root);
  }

  /**
   * Return the configuration. It is made once per chart, because plotly.js draws the whole chart anew if it changes.
   * @param {any} plotly
   */
  makeConfig(plotly) {
    const save = { name: "save", title: "", icon: plotly.Icons.camera, click: () => saveChart(this.root, this.header.file) };
    return { displaylogo: false, displayModeBar: true, modeBarButtons: [[save]] };
  }

  async destroy() {
    this.resizeObserver.disconnect();
    (await library).purge(this.root);
  }
}

/**
 * Give labels next to points a darker or lighter shade of their line's colour, unless they contain a mark in this colour.
 * Give annotations with a background the page's colour.
 * @param {{ line?: { color?: string }, text?: string[], textfont?: object }[]} data
 * @param {{ name?: string, text: string, font?: object, bgcolor?: string }[]} annotations
 * @param {Theme} theme
 */
function colourLabels(data, annotations, { text, background }) {
  const page = (text.match(/\d+/g) ?? []).map(Number);
  const shade = (/** @type {string | undefined} */ colour = "") => {
    const line = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    return { color: `rgb(${line.map((v, i) => Math.round(LINE_SHARE * v + (1 - LINE_SHARE) * page[i])).join(", ")})` };
  };
  for (const trace of data) if (trace.text && !trace.text.some((each) => each.includes("<span"))) trace.textfont = shade(trace.line?.color);
  for (const label of annotations) {
    if (label.bgcolor) label.bgcolor = background;
    const trace = data[Number(label.name?.match(/^→ (\d+)$/)?.[1] ?? -1)];
    if (trace && !label.text.includes("<span")) label.font = shade(trace.line?.color);
  }
}

/**
 * Return the properties of all figures that depend on the page's theme, and the spaces around titles and labels.
 * @param {Theme} theme
 */
function template({ background, text, muted, grid, border, font }) {
  const axis = {
    automargin: true,
    gridcolor: grid,
    zerolinecolor: grid,
    tickcolor: grid,
    tickfont: { color: muted, size: 12 },
    title: { font: { color: muted, size: 14 } },
  };
  return {
    data: { scatter: [{ marker: { line: { width: 0 } } }] },
    layout: {
      font: { color: muted, family: font },
      paper_bgcolor: background,
      plot_bgcolor: background,
      hoverlabel: { bgcolor: background, bordercolor: border, font: { color: text, family: font } },
      legend: { valign: "top", font: { color: text, size: 12 } },
      margin: { pad: 8 },
      xaxis: { ...axis, showgrid: false, zeroline: false, title: { ...axis.title, standoff: 20 } },
      yaxis: { ...axis, title: { ...axis.title, standoff: 24 } },
    },
  };
}
