// Interaction with line charts. The line under the pointer is highlighted with its band, and the other lines are grey. The
// same happens to a line whose name has the keyboard focus or is touched. A click on a point follows the point's link.
// This module also informs the server of a narrow screen.

import { openAddress } from "../navigation/follow_links.js";
import { server } from "../server.js";

const LINE_END = "→ "; // names of elements at a line's end start with this; set in app/figures/lines/line_names.py
const END_NAME = ".annotation[data-index]";
const PHONE = matchMedia("(max-width: 640px)");

/**
 * @typedef {{ x?: unknown[], legendgroup?: string, fill?: string, meta?: { links?: string[] } }} Trace
 * @typedef {{ name?: string }} LayoutItem
 * @typedef {{ data: Trace, curveNumber: number, pointNumber: number }} Point
 * @typedef {{ points: Point[], event: Event }} PlotEvent
 * @typedef {HTMLElement & {
 *   data: Trace[],
 *   layout: { annotations?: LayoutItem[], shapes?: LayoutItem[], meta?: { link_prefix?: string } },
 *   on(name: string, listener: (event: PlotEvent) => void): void,
 * }} PlotElement
 */

/** @type {WeakMap<PlotElement, { pinned: string | null, touched: string }>} */
const charts = new WeakMap();

let reportedNarrow = false;

/** Inform the server whether the screen is narrow; called by each chart. */
export function reportWidth() {
  PHONE.addEventListener("change", reportWidth);
  if (reportedNarrow !== PHONE.matches) server.setStateValue("narrow", (reportedNarrow = PHONE.matches));
}

/**
 * Listen to the pointer and the keyboard on a chart. Called after each drawing; only the first call has an effect.
 * @param {PlotElement} chart
 */
export function watchChart(chart) {
  if (charts.has(chart)) return;
  charts.set(chart, { pinned: null, touched: "" });
  chart.on("plotly_hover", ({ points }) => highlightGroup(chart, groupOf(points[0].data)));
  chart.on("plotly_unhover", () => resetHighlight(chart));
  chart.on("plotly_afterplot", () => makeNamesFocusable(chart));
  chart.on("plotly_click", (event) => openPoint(chart, event));
  for (const enter of ["pointerover", "focusin"]) chart.addEventListener(enter, (event) => highlightNamedLine(chart, event));
  for (const leave of ["pointerout", "focusout"]) {
    chart.addEventListener(leave, ({ target }) => groupOfName(chart, target) !== null && resetHighlight(chart));
  }
  chart.addEventListener("click", (event) => pinLine(chart, event));
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") pinLine(chart, event);
  });
  makeNamesFocusable(chart);
}

/**
 * Return the group of a line; lines of the same group are highlighted together.
 * @param {Trace} trace
 */
function groupOf({ legendgroup }) {
  return legendgroup ?? "";
}

/**
 * Make the lines' names focusable by keyboard. Each drawing of the chart creates the names again.
 * @param {PlotElement} chart
 */
function makeNamesFocusable(chart) {
  for (const name of chart.querySelectorAll(END_NAME)) {
    if (groupOfName(chart, name) === null) continue;
    name.setAttribute("tabindex", "0");
    name.setAttribute("role", "button");
  }
  resetHighlight(chart);
}

/**
 * Return the group of lines whose name contains an element, or null.
 * @param {PlotElement} chart
 * @param {EventTarget | null} target
 */
function groupOfName(chart, target) {
  const name = target instanceof Element && target.closest(END_NAME);
  return name ? groupOfElement(chart, name, chart.layout.annotations) : null;
}

/**
 * Return the group of lines that a part of the figure belongs to, or null.
 * @param {PlotElement} chart
 * @param {Element} element
 * @param {LayoutItem[] | undefined} items
 */
function groupOfElement(chart, element, items) {
  const name = items?.[Number(element.getAttribute("data-index"))]?.name;
  const trace = name?.startsWith(LINE_END) && chart.data[Number(name.slice(LINE_END.length))];
  return trace ? groupOf(trace) : null;
}

/**
 * @param {PlotElement} chart
 * @param {Event} event
 */
function highlightNamedLine(chart, { target }) {
  const group = groupOfName(chart, target);
  if (group !== null) highlightGroup(chart, group);
}

/**
 * Keep a line highlighted after a press on its name, until the next press.
 * @param {PlotElement} chart
 * @param {Event} event
 */
function pinLine(chart, event) {
  const group = groupOfName(chart, event.target);
  const chartState = charts.get(chart);
  if (group === null || !chartState) return;
  event.preventDefault(); // a space would scroll the page
  chartState.pinned = chartState.pinned === group ? null : group;
  highlightGroup(chart, group);
  resetHighlight(chart);
}

/** @param {PlotElement} chart */
function resetHighlight(chart) {
  highlightGroup(chart, charts.get(chart)?.pinned ?? null);
}

/**
 * Highlight one group of lines among grey ones, or show all equally.
 * @param {PlotElement} chart
 * @param {string | null} group
 */
function highlightGroup(chart, group) {
  const isHighlighted = group !== null && chart.data.some((trace) => groupOf(trace) === group);
  chart.toggleAttribute("data-lit", isHighlighted);
  const elements = chart.querySelectorAll(".scatterlayer > .trace");
  const traces = chart.data.filter(({ x }) => x?.length);
  if (elements.length === traces.length) {
    // Plotly draws the traces in the order of the data.
    traces.forEach((trace, i) => {
      elements[i].classList.toggle("lit", groupOf(trace) === group);
      elements[i].classList.toggle("band", trace.fill === "toself");
    });
  }
  const pinned = charts.get(chart)?.pinned;
  for (const name of chart.querySelectorAll(END_NAME)) {
    const ownGroup = groupOfElement(chart, name, chart.layout.annotations);
    name.classList.toggle("other", isHighlighted && ownGroup !== null && ownGroup !== group);
    if (ownGroup !== null) name.setAttribute("aria-pressed", String(ownGroup === pinned));
  }
  for (const shape of chart.querySelectorAll(".shapelayer [data-index]")) {
    const ownGroup = groupOfElement(chart, shape, chart.layout.shapes);
    shape.classList.toggle("other", isHighlighted && ownGroup !== null && ownGroup !== group);
  }
}

/**
 * Follow the link of a point. With a finger, the first touch shows the tooltip and the second follows the link.
 * @param {PlotElement} chart
 * @param {PlotEvent} event
 */
function openPoint(chart, { points: [point], event }) {
  const [prefix, chartState] = [chart.layout.meta?.link_prefix, charts.get(chart)];
  const link = point.data.meta?.links?.[point.pointNumber];
  if (!prefix || !chartState || !link) return;
  const pointKey = `${point.curveNumber}.${point.pointNumber}`;
  const isTouch = "pointerType" in event ? event.pointerType === "touch" : event.type.startsWith("touch");
  if (isTouch && chartState.touched !== pointKey) chartState.touched = pointKey;
  else openAddress(prefix + link);
}
