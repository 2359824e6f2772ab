// Saves a chart as an SVG or PNG picture. Lines of text below the chart state its origin: the page, its input and a link.

import { download, FINE_LINE, FINE_PRINT, originLines, SvgPen } from "../../matrix_board/drawing/export.js";
import { APP } from "../selectors.js";

const EDGE_ROOM = 12; // pixels around the origin lines

/**
 * @param {HTMLElement} chart
 * @param {string} file name of the file; its ending is the format
 */
export function saveChart(chart, file) {
  const pen = chartPicture(chart);
  const text = new XMLSerializer().serializeToString(pen.root);
  if (file.endsWith(".svg")) download(new Blob([text], { type: "image/svg+xml" }), file);
  else convertToPng(text, pen.root, (blob) => download(blob, file));
}

/**
 * Return the current chart on the page's background, with the origin lines below it.
 * @param {HTMLElement} chart
 */
function chartPicture(chart) {
  const layers = [...chart.querySelectorAll(".main-svg")];
  const { width, height } = layers[0].getBoundingClientRect();
  const { backgroundColor, color, fontFamily } = getComputedStyle(document.querySelector(APP) ?? document.body);
  const ruler = new SvgPen(1, 1, fontFamily).ruler;
  const origin = originLines(ruler, width - 2 * EDGE_ROOM, "");
  const totalHeight = height + origin.length * FINE_LINE + EDGE_ROOM;
  const pen = new SvgPen(width, totalHeight, fontFamily);
  pen.rect(0, 0, width, totalHeight, backgroundColor);
  for (const layer of layers) {
    const copy = /** @type {Element} */ (pen.root.appendChild(layer.cloneNode(true)));
    const texts = /** @type {NodeListOf<SVGTextElement>} */ (copy.querySelectorAll("text"));
    // The page's style sheet makes these texts darker than Plotly does, and does not apply to the saved picture.
    layer.querySelectorAll("text").forEach((text, i) => (texts[i].style.fill = getComputedStyle(text).fill));
  }
  origin.forEach((line, i) => {
    pen.text(line, EDGE_ROOM, height + (i + 0.7) * FINE_LINE, { size: FINE_PRINT, colour: color });
  });
  return pen;
}

/**
 * @param {string} text
 * @param {SVGElement} root
 * @param {(blob: Blob | null) => void} callback
 */
function convertToPng(text, root, callback) {
  const picture = new Image();
  const [width, height] = ["width", "height"].map((side) => 2 * Number(root.getAttribute(side)));
  picture.addEventListener("load", () => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
    canvas.toBlob(callback, "image/png");
  });
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
