// Saves a board of matrices as a PNG at double size, or as an SVG with real text and one image pixel per matrix cell.
/** @import { Pen } from "../messages" */
/** @import { Board } from "../views/board.js" */

import { css } from "./color.js";
import { knobText } from "../views/knobs.js";
import { drawMarks } from "./marks.js";
import { drawPanel, noteText, panelGeometry, panelHeight } from "./panel.js";
import { contextOf, CanvasPen, truncate, toCanvas, renderMatrix } from "./pen.js";

const SVG = "http://www.w3.org/2000/svg";

/** A pen that draws into an SVG element, with the methods of CanvasPen. */
export class SvgPen {
  /**
   * @param {number} width
   * @param {number} height
   * @param {string} font
   */
  constructor(width, height, font) {
    this.font = font;
    this.ratio = Infinity; // infinite resolution: cells never share a pixel
    this.ruler = makeRuler(font);
    this.root = document.createElementNS(SVG, "svg");
    /** @type {SVGElement} */
    this.parent = this.root;
    this.setAttributes(this.root, { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": font });
    this.count = 0;
  }

  /**
   * @template {SVGElement} Element
   * @param {Element} element
   * @param {Record<string, string | number>} attributes
   */
  setAttributes(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, typeof value === "number" ? String(Number(value.toFixed(3))) : value);
    }
    return element;
  }

  /**
   * @param {keyof SVGElementTagNameMap} name
   * @param {Record<string, string | number>} attributes
   * @returns {SVGElement}
   */
  add(name, attributes, into = this.parent) {
    return into.appendChild(this.setAttributes(document.createElementNS(SVG, name), attributes));
  }

  /**
   * @param {SVGElement} element
   * @param {() => void} draw
   */
  drawInto(element, draw) {
    const outerParent = this.parent;
    this.parent = element;
    draw();
    this.parent = outerParent;
  }

  /** @type {Pen["rect"]} */
  rect(x, y, width, height, fill) {
    this.add("rect", { x, y, width, height, fill });
  }

  /** @type {Pen["frame"]} */
  frame(x, y, width, height, stroke, thickness = 1) {
    this.add("rect", { x, y, width, height, fill: "none", stroke, "stroke-width": thickness });
  }

  /** @type {Pen["line"]} */
  line(x1, y1, x2, y2, stroke, thickness = 1) {
    this.add("line", { x1, y1, x2, y2, stroke, "stroke-width": thickness });
  }

  /** @type {Pen["text"]} */
  text(text, x, y, { size = 12, weight = 400, colour, align = "left", rotation = 0 }) {
    const element = this.add("text", {
      transform: `translate(${x.toFixed(2)} ${y.toFixed(2)}) rotate(${rotation})`,
      y: size * 0.35,
      "font-size": size,
      "font-weight": weight,
      fill: colour,
      "text-anchor": { left: "start", center: "middle", right: "end" }[align],
    });
    element.textContent = text;
  }

  /** @type {Pen["measure"]} */
  measure(text, size, weight) {
    return this.ruler.measure(text, size, weight);
  }

  /** @type {Pen["gradient"]} */
  gradient(x, y, width, height, colours) {
    const id = `scale-${this.count++}`;
    const element = this.add("linearGradient", { id });
    for (let i = 0; i <= 32; i++) {
      this.add("stop", { offset: i / 32, "stop-color": css(colours[Math.round((i / 32) * (colours.length - 1))]) }, element);
    }
    this.rect(x, y, width, height, `url(#${id})`);
  }

  /** @type {Pen["hatch"]} */
  hatch(x, y, width, height, [ground, stripe]) {
    const id = `hatch-${this.count++}`;
    const tile = this.add("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" });
    this.add("rect", { width: 6, height: 6, fill: ground }, tile);
    this.add("path", { d: "M-1 1L1 -1M-1 7L7 -1M5 7L7 5", stroke: stripe, "stroke-width": 1.5 }, tile);
    this.rect(x, y, width, height, `url(#${id})`);
  }

  /** @type {Pen["matrix"]} */
  matrix(panel, table, view, { x, y, width, height }) {
    const { rows, cols } = panel;
    const viewBox = [view.x * cols, view.y * rows, view.width * cols, view.height * rows].join(" ");
    const window = this.add("svg", { x, y, width, height, viewBox, preserveAspectRatio: "none" });
    const picture = toCanvas(renderMatrix(panel, table, { x: 0, y: 0, width: 1, height: 1 }, cols, rows)).toDataURL();
    const style = "image-rendering:pixelated";
    this.add("image", { width: cols, height: rows, href: picture, style, preserveAspectRatio: "none" }, window);
  }

  /** @type {Pen["translate"]} */
  translate(x, y, draw) {
    this.drawInto(this.add("g", { transform: `translate(${x} ${y})` }), draw);
  }

  /** @type {Pen["clip"]} */
  clip(x, y, width, height, draw) {
    const id = `clip-${this.count++}`;
    this.add("rect", { x, y, width, height }, this.add("clipPath", { id }));
    this.drawInto(this.add("g", { "clip-path": `url(#${id})` }), draw);
  }
}

const MARGIN = 16;

export const FINE_PRINT = 11; // the font size of the lines that state the origin of a picture
export const FINE_LINE = 15;
const LINK_LINES = 8; // the most lines for a link; a link that contains a long text would fill a page

/**
 * Return the lines about a picture's origin: the page and its input, the text, and a link that opens the page again.
 * In a notebook, no link opens the page, and the notebook's address is omitted because it may contain a secret.
 * @param {Pen} pen
 * @param {number} width
 * @param {string} text the text, if any
 */
export function originLines(pen, width, text) {
  const question = document.querySelector(".st-key-question");
  const readText = (/** @type {string} */ tag) => question?.querySelector(tag)?.textContent?.trim() ?? "";
  const isInApp = Symbol.for("attention-lab.page") in globalThis; // set by app/page_script/entry.js
  // Letters can be wider in the file than measured here, for example because an SVG is shown with another font.
  const link = isInApp ? wrapLetters(pen, location.href, 0.95 * width) : [];
  return [
    truncate(pen, ["Attention Lab", readText("h1"), readText("a")].filter(Boolean).join(" · "), width, FINE_PRINT),
    ...(text ? [truncate(pen, text, width, FINE_PRINT)] : []),
    ...(link.length > LINK_LINES ? [...link.slice(0, LINK_LINES - 1), "…"] : link),
  ];
}

/**
 * Return a text in fine print as lines of at most this width, each broken after any letter; no more lines than needed to
 * see that there are more than `LINK_LINES`.
 * @param {Pen} pen
 * @param {string} text
 * @param {number} width
 */
function wrapLetters(pen, text, width) {
  const lines = [];
  for (let start = 0; start < text.length && lines.length <= LINK_LINES; ) {
    let end = start + 1;
    while (end < text.length && pen.measure(text.slice(start, end + 1), FINE_PRINT) <= width) end++;
    lines.push(text.slice(start, end));
    start = end;
  }
  return lines;
}

/** Return the height of the titles and captions of panels. */
const headHeight = (/** @type {{ caption: string }[]} */ panels) => 30 + 16 * Math.max(2, ...panels.map(({ caption }) => caption.split("\n").length));

/** Return a pen that only measures text. */
const makeRuler = (/** @type {string} */ font) => new CanvasPen(contextOf(document.createElement("canvas")), 1, font);

/**
 * Return the sizes of the whole board as a picture and of its legend and origin lines, in CSS pixels.
 * @param {Board} board
 */
function boardSize(board) {
  const { panels, columns, side, appearance } = board;
  const lines = Math.ceil(panels.length / columns);
  const width = 2 * MARGIN + Math.max(360, columns * (side + MARGIN) - MARGIN);
  const ruler = makeRuler(appearance.theme.font);
  const legend = board.legendHeight(ruler, width - 2 * MARGIN);
  const origin = originLines(ruler, width - 2 * MARGIN, board.settings.text || (board.panels[0].rowLabels?.join(" ") ?? ""));
  const panelsHeight = 2 * MARGIN + legend + lines * (headHeight(panels) + panelHeight(side, appearance.ownScale) + MARGIN) + 8;
  return { width, legend, origin, panelsHeight, height: panelsHeight + origin.length * FINE_LINE };
}

/**
 * Draw everything on screen except the crosshair: legend, panels with titles, the pinned row, the note.
 * @param {Pen} pen
 * @param {Board} board
 */
function drawBoard(pen, board) {
  const { panels, columns, side, appearance, pinned } = board;
  const { theme } = appearance;
  const { width, height, legend, origin, panelsHeight } = boardSize(board);
  pen.rect(0, 0, width, height, theme.background);
  board.drawLegend(pen, MARGIN, MARGIN, width - 2 * MARGIN);
  const head = headHeight(panels);
  let pooled = 1;
  panels.forEach((panel, i) => {
    const left = MARGIN + (i % columns) * (side + MARGIN);
    const top = MARGIN + legend + Math.floor(i / columns) * (head + panelHeight(side, appearance.ownScale) + MARGIN);
    const title = [panel.title, panel.knob && knobText(panel.knob)].filter(Boolean).join(" · ");
    pen.text(truncate(pen, title, side, 15, 600), left, top + 14, { size: 15, weight: 600, colour: theme.text });
    panel.caption.split("\n").forEach((line, k) => {
      pen.text(truncate(pen, line, side, 12), left, top + 33 + 16 * k, { size: 12, colour: theme.muted });
    });
    pen.translate(left, top + head, () => {
      const geometry = panelGeometry(pen, panel, side, board.views.viewOf(panel));
      drawPanel(pen, panel, geometry, appearance);
      drawMarks(pen, geometry, { pinned: board.hasPinnedRow(panel) ? pinned : null, cell: null }, theme);
      pooled = Math.max(pooled, geometry.pooled);
    });
  });
  const notes = noteText(pooled, appearance);
  if (notes) pen.text(truncate(pen, notes, width - 2 * MARGIN), MARGIN, panelsHeight - MARGIN, { colour: theme.muted });
  origin.forEach((line, i) => pen.text(line, MARGIN, panelsHeight + i * FINE_LINE, { size: FINE_PRINT, colour: theme.muted }));
}

/**
 * Return the board as a PNG with two pixels per CSS pixel.
 * @param {Board} board
 * @returns {Promise<Blob | null>} null if the browser cannot create such a large picture
 */
export function boardPng(board) {
  const { width, height } = boardSize(board);
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  drawBoard(new CanvasPen(contextOf(canvas), 2, board.appearance.theme.font), board);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/**
 * Return the board as an SVG.
 * @param {Board} board
 */
export async function boardSvg(board) {
  const { width, height } = boardSize(board);
  const pen = new SvgPen(width, height, board.appearance.theme.font);
  drawBoard(pen, board);
  return new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" });
}

/**
 * Download a file.
 * @param {Blob | null} blob
 * @param {string} name
 */
export function download(blob, name) {
  if (!blob) return;
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
