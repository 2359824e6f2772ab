// Charts: the line under the pointer is highlighted with its band, and the others are grey. Names at the ends of lines
// do the same for keys and fingers. A click on a point follows its link. The server is informed of a narrow screen.

import { go } from "../navigation/ways.js";
import { server } from "../server.js";

const LINE_END = "→ "; // the start of the names of elements at a line's end: app/figures/lines/line_names.py
const END_NAME = ".annotation[data-index]";
const PHONE = matchMedia("(max-width: 640px)");

/**
 * @typedef {{ x?: unknown[], legendgroup?: string, fill?: string, meta?: { ways?: string[] } }} Trace
 * @typedef {{ name?: string }} Part
 * @typedef {{ data: Trace, curveNumber: number, pointNumber: number }} Point
 * @typedef {{ points: Point[], event: Event }} Pointed
 * @typedef {HTMLElement & {
 *   data: Trace[],
 *   layout: { annotations?: Part[], shapes?: Part[], meta?: { way?: string } },
 *   on(name: string, act: (pointed: Pointed) => void): void,
 * }} Drawn
 */

/** @type {WeakMap<Drawn, { pinned: string | null, touched: string }>} */
const charts = new WeakMap();

let reportedNarrow = false;

/** Inform the server whether the screen is narrow, now that the page has a chart. */
export function reportWidth() {
  PHONE.addEventListener("change", reportWidth);
  if (reportedNarrow !== PHONE.matches) server.setStateValue("narrow", (reportedNarrow = PHONE.matches));
}

/**
 * React to the pointer and the keyboard on a chart, from its first drawing on.
 * @param {Drawn} chart
 */
export function followChart(chart) {
  if (charts.has(chart)) return;
  charts.set(chart, { pinned: null, touched: "" });
  chart.on("plotly_hover", ({ points }) => lightLine(chart, groupOf(points[0].data)));
  chart.on("plotly_unhover", () => restChart(chart));
  chart.on("plotly_afterplot", () => nameByKeys(chart));
  chart.on("plotly_click", (pointed) => openPoint(chart, pointed));
  for (const enter of ["pointerover", "focusin"]) chart.addEventListener(enter, (event) => meetName(chart, event));
  for (const leave of ["pointerout", "focusout"]) {
    chart.addEventListener(leave, ({ target }) => lineNamed(chart, target) !== null && restChart(chart));
  }
  chart.addEventListener("click", (event) => pinLine(chart, event));
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") pinLine(chart, event);
  });
  nameByKeys(chart);
}

/**
 * Return the group of lines that are highlighted together.
 * @param {Trace} trace
 */
function groupOf({ legendgroup }) {
  return legendgroup ?? "";
}

/**
 * Make the names reachable by keys; they are created again with each drawing of the chart.
 * @param {Drawn} chart
 */
function nameByKeys(chart) {
  for (const name of chart.querySelectorAll(END_NAME)) {
    if (lineNamed(chart, name) === null) continue;
    name.setAttribute("tabindex", "0");
    name.setAttribute("role", "button");
  }
  restChart(chart);
}

/**
 * Return the group of lines whose name contains an element, or null.
 * @param {Drawn} chart
 * @param {EventTarget | null} target
 */
function lineNamed(chart, target) {
  const found = target instanceof Element && target.closest(END_NAME);
  return found ? ownLine(chart, found, chart.layout.annotations) : null;
}

/**
 * Return the group of lines that a part of the figure belongs to, or null.
 * @param {Drawn} chart
 * @param {Element} drawn
 * @param {Part[] | undefined} parts
 */
function ownLine(chart, drawn, parts) {
  const name = parts?.[Number(drawn.getAttribute("data-index"))]?.name;
  const trace = name?.startsWith(LINE_END) && chart.data[Number(name.slice(LINE_END.length))];
  return trace ? groupOf(trace) : null;
}

/**
 * @param {Drawn} chart
 * @param {Event} event
 */
function meetName(chart, { target }) {
  const group = lineNamed(chart, target);
  if (group !== null) lightLine(chart, group);
}

/**
 * Keep a line highlighted after a press on its name, until the next press.
 * @param {Drawn} chart
 * @param {Event} event
 */
function pinLine(chart, event) {
  const group = lineNamed(chart, event.target);
  const state = charts.get(chart);
  if (group === null || !state) return;
  event.preventDefault(); // a space would scroll the page
  state.pinned = state.pinned === group ? null : group;
  lightLine(chart, group);
  restChart(chart);
}

/** @param {Drawn} chart */
function restChart(chart) {
  lightLine(chart, charts.get(chart)?.pinned ?? null);
}

/**
 * Highlight one group of lines among grey ones, or show all equally.
 * @param {Drawn} chart
 * @param {string | null} group
 */
function lightLine(chart, group) {
  const some = group !== null && chart.data.some((trace) => groupOf(trace) === group);
  chart.toggleAttribute("data-lit", some);
  const drawn = chart.querySelectorAll(".scatterlayer > .trace");
  const traces = chart.data.filter(({ x }) => x?.length);
  if (drawn.length === traces.length) {
    // The drawn traces have the order of the data.
    traces.forEach((trace, i) => {
      drawn[i].classList.toggle("lit", groupOf(trace) === group);
      drawn[i].classList.toggle("band", trace.fill === "toself");
    });
  }
  const pinned = charts.get(chart)?.pinned;
  for (const name of chart.querySelectorAll(END_NAME)) {
    const own = ownLine(chart, name, chart.layout.annotations);
    name.classList.toggle("other", some && own !== null && own !== group);
    if (own !== null) name.setAttribute("aria-pressed", String(own === pinned));
  }
  for (const joint of chart.querySelectorAll(".shapelayer [data-index]")) {
    const own = ownLine(chart, joint, chart.layout.shapes);
    joint.classList.toggle("other", some && own !== null && own !== group);
  }
}

/**
 * Follow the link of a point. With a finger, the first touch shows the tooltip and the second follows the link.
 * @param {Drawn} chart
 * @param {Pointed} pointed
 */
function openPoint(chart, { points: [point], event }) {
  const [begins, state] = [chart.layout.meta?.way, charts.get(chart)];
  const way = point.data.meta?.ways?.[point.pointNumber];
  if (!begins || !state || !way) return;
  const here = `${point.curveNumber}.${point.pointNumber}`;
  const finger = "pointerType" in event ? event.pointerType === "touch" : event.type.startsWith("touch");
  if (finger && state.touched !== here) state.touched = here;
  else go(begins + way);
}
