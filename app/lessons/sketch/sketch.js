// A small chart in a lesson, on which the visitor draws the curve they expect by moving points. The measured curve then
// appears in it.
/** @import { SketchHeader, SketchSettings } from "./sketch_messages" */
/** @import { Received, Send } from "../../matrix_board/messages" */

import { clamp, make, runKeyAction } from "../../matrix_board/drawing/elements.js";
import { fill } from "../../page_script/templates.js";

const SVG_SPACE = "http://www.w3.org/2000/svg";
const SIZE = { width: 320, height: 180 };
const FRAME = { left: 38, right: 302, top: 26, bottom: 144 };
const BIG_STEP = 5; // steps per press of Page Up or Page Down
const REPORT_DELAY = 300; // milliseconds without a key after which the curve is reported

export class Sketch {
  /** @type {SketchHeader | undefined} */
  header;
  /** @type {SketchSettings | undefined} */
  settings;
  /** @type {number[]} */
  heights = [];
  /** @type {number | null} */
  lastPoint = null; // index of the point that the pointer moved last
  hasDrawn = false;
  /** @type {Send} */
  send;
  /** @type {number | undefined} */
  reportTimer;

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    this.chart = shape("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "group" });
    this.legend = make("p", { class: "legend" });
    this.root = make("div", { class: "sketch" }, this.chart, this.legend);
    host.append(this.root);
    this.chart.addEventListener("pointerdown", (event) => this.press(event));
    this.chart.addEventListener("pointermove", (event) => this.drag(event));
    for (const type of ["pointerup", "pointercancel"]) this.chart.addEventListener(type, () => this.release());
    this.chart.addEventListener("keydown", (event) => this.handleKey(event));
  }

  /** @param {Received<SketchHeader>} received */
  receive({ header }) {
    this.header = header;
    // While the visitor draws, the points in the browser are newer than those that the server sends.
    if (!this.hasDrawn || header.measured.length) this.heights = header.drawn ?? header.x.map(() => header.high / 2);
    this.draw();
  }

  /** @param {SketchSettings} settings */
  show(settings) {
    this.settings = settings;
    this.draw();
  }

  retheme() {}

  get isAnswered() {
    return Boolean(this.header?.measured.length);
  }

  /** @param {number} position */
  toX(position) {
    const { x } = /** @type {SketchHeader} */ (this.header);
    const share = Math.log(position / x[0]) / Math.log(x[x.length - 1] / x[0]);
    return FRAME.left + share * (FRAME.right - FRAME.left);
  }

  /** @param {number} height */
  toY(height) {
    const { high } = /** @type {SketchHeader} */ (this.header);
    return FRAME.bottom - (height / high) * (FRAME.bottom - FRAME.top);
  }

  draw() {
    const { header, settings } = this;
    if (!header || !settings) return;
    const { texts } = settings;
    this.chart.setAttribute("aria-label", texts.title);
    const grid = roundNumbers(header.high).flatMap((height) => [
      shape("line", { class: "grid", x1: FRAME.left, x2: FRAME.right, y1: this.toY(height), y2: this.toY(height) }),
      label(header.is_share ? `${100 * height}%` : String(height), FRAME.left - (header.is_share ? 4 : 12), this.toY(height) + 4, "end"),
    ]);
    const ticks = header.x.map((position) => label(String(position), this.toX(position), FRAME.bottom + 15, "middle"));
    const titles = [label(texts.y, 2, FRAME.top - 14, "start"), label(texts.x, FRAME.right, FRAME.bottom + 31, "end")];
    const focused = /** @type {ShadowRoot} */ (this.root.getRootNode()).activeElement?.getAttribute("data-point");
    this.chart.replaceChildren(...grid, ...ticks, ...titles, ...(this.isAnswered ? this.comparison(header) : this.points(header)));
    if (focused) this.point(Number(focused))?.focus();
    this.legend.replaceChildren(...(this.isAnswered ? this.legendItems(header) : [texts.help]));
  }

  /**
   * Return the curve that the visitor draws: its line, and one movable point at each position.
   * @param {SketchHeader} header
   */
  points(header) {
    const points = header.x.map((position, i) => {
      const value = header.is_share ? `${Math.round(100 * this.heights[i])}%` : this.heights[i].toFixed(header.digits);
      const text = fill(/** @type {SketchSettings} */ (this.settings).texts.point, { x: String(position), y: value });
      return shape("circle", {
        class: "point",
        cx: this.toX(position),
        cy: this.toY(this.heights[i]),
        r: 7,
        tabindex: 0,
        role: "slider",
        "data-point": i,
        "aria-orientation": "vertical",
        "aria-label": `${/** @type {SketchSettings} */ (this.settings).texts.x} ${position}`,
        "aria-valuemin": 0,
        "aria-valuemax": header.high,
        "aria-valuenow": this.heights[i].toFixed(header.digits),
        "aria-valuetext": text,
      });
    });
    return [this.line("drawn", header.x, this.heights), ...points];
  }

  /**
   * Return both curves and the area between them; only the measured curve if none was drawn.
   * @param {SketchHeader} header
   */
  comparison(header) {
    const [positions, heights] = [header.measured.map(([x]) => x), header.measured.map(([, y]) => y)];
    const measured = this.line("measured", positions, heights);
    measured.style.stroke = header.colour;
    if (!header.drawn) return [measured];
    const outline = `${this.corners(header.x, header.drawn)} ${this.corners(positions.toReversed(), heights.toReversed())}`;
    return [shape("polygon", { class: "area", points: outline }), this.line("drawn", header.x, header.drawn), measured];
  }

  /**
   * Return the names of the curves, each after a sample of its line.
   * @param {SketchHeader} header
   */
  legendItems(header) {
    const { texts } = /** @type {SketchSettings} */ (this.settings);
    const measured = make("span", { class: "measured" }, texts.measured);
    measured.style.setProperty("--line", header.colour);
    return header.drawn ? [make("span", { class: "drawn" }, texts.drawn), measured] : [measured];
  }

  /**
   * Return the corners of a line as text for the attribute `points` of an SVG element.
   * @param {number[]} positions
   * @param {number[]} heights
   */
  corners(positions, heights) {
    return positions.map((position, i) => `${this.toX(position)},${this.toY(heights[i])}`).join(" ");
  }

  /**
   * @param {string} kind the CSS class
   * @param {number[]} positions
   * @param {number[]} heights
   */
  line(kind, positions, heights) {
    return shape("polyline", { class: kind, points: this.corners(positions, heights) });
  }

  /** @param {number} index */
  point(index) {
    const element = this.chart.querySelector(`[data-point="${index}"]`);
    return element instanceof SVGElement ? element : null;
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (this.isAnswered || !this.header || event.button) return;
    event.preventDefault();
    this.chart.setPointerCapture(event.pointerId);
    this.lastPoint = null;
    this.follow(event);
    this.point(this.lastPoint ?? 0)?.focus({ preventScroll: true });
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (this.lastPoint !== null) this.follow(event);
  }

  /**
   * Move the point nearest to the pointer, and those that the pointer has passed since the last event.
   * @param {PointerEvent} event
   */
  follow(event) {
    const { x, high } = /** @type {SketchHeader} */ (this.header);
    const box = this.chart.getBoundingClientRect();
    const pointerX = ((event.clientX - box.x) / box.width) * SIZE.width;
    const pointerY = ((event.clientY - box.y) / box.height) * SIZE.height;
    const distances = x.map((position) => Math.abs(this.toX(position) - pointerX));
    const index = distances.indexOf(Math.min(...distances));
    const height = clamp(((FRAME.bottom - pointerY) / (FRAME.bottom - FRAME.top)) * high, 0, high);
    const [from, start] = [this.lastPoint ?? index, this.heights[this.lastPoint ?? index]];
    const steps = Math.abs(index - from);
    for (let i = 1; i < steps; i++) this.heights[from + Math.sign(index - from) * i] = start + ((height - start) * i) / steps;
    this.heights[index] = height;
    this.lastPoint = index;
    this.hasDrawn = true;
    this.draw();
  }

  release() {
    if (this.lastPoint === null) return;
    this.lastPoint = null;
    this.report();
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    const { target } = event;
    if (this.isAnswered || !this.header || !(target instanceof SVGElement) || !target.dataset.point) return;
    const { x, high, step } = this.header;
    const index = Number(target.dataset.point);
    const changeHeight = (/** @type {number} */ change) => {
      this.heights[index] = clamp(this.heights[index] + change * step, 0, high);
      this.hasDrawn = true;
      this.draw();
      clearTimeout(this.reportTimer);
      this.reportTimer = setTimeout(() => this.report(), REPORT_DELAY);
    };
    const focusPoint = (/** @type {number} */ i) => this.point(clamp(i, 0, x.length - 1))?.focus();
    runKeyAction(event, {
      ArrowUp: () => changeHeight(1),
      ArrowDown: () => changeHeight(-1),
      PageUp: () => changeHeight(BIG_STEP),
      PageDown: () => changeHeight(-BIG_STEP),
      Home: () => changeHeight(-high / step),
      End: () => changeHeight(high / step),
      ArrowLeft: () => focusPoint(index - 1),
      ArrowRight: () => focusPoint(index + 1),
    });
  }

  report() {
    clearTimeout(this.reportTimer);
    this.send("draw", [...this.heights]);
  }

  destroy() {
    clearTimeout(this.reportTimer);
    this.root.remove();
  }
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number>} attributes
 * @param {string[]} text
 */
function shape(name, attributes, ...text) {
  const element = document.createElementNS(SVG_SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...text);
  return element;
}

/**
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} anchor
 */
function label(text, x, y, anchor) {
  return shape("text", { x, y, "text-anchor": anchor, "aria-hidden": "true" }, text);
}

/**
 * Return round numbers from 0 to the upper end of an axis.
 * @param {number} high
 */
function roundNumbers(high) {
  const power = 10 ** Math.floor(Math.log10(high / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => high / each <= 5) ?? high;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}
