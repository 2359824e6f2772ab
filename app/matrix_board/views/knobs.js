// The knobs of a board: sliders on its panels that change a setting. A panel is redrawn while its knob is moved. One value
// at a time is sent to Python; it is called a turn, and turns are numbered. If the knob moves on before Python answers,
// only its newest value is sent next. While a knob is dragged, Python may answer with the knob's panel only. The knob of
// an animated panel selects a frame, which the browser already has, so only the last value is sent.
/** @import { SentKnob, Turnable } from "../messages" */

import { dragSenders } from "../channels/boards.js";
import { make } from "../drawing/elements.js";

const ANSWER_TIMEOUT = 5000; // milliseconds without an answer of the server after which the next value is sent

/**
 * Return a knob's name and value as text.
 * @param {SentKnob} knob
 */
export const knobText = (knob, index = knob.stops.indexOf(knob.value)) => `${knob.name} ${knob.stops[index]}`;

export class Knobs {
  turnCount = 0; // the number of turns (values sent to Python), which is also the number of the latest turn
  /** @type {number | null} */
  pendingTurn = null; // the number of the turn that Python has not answered yet
  /** @type {number | undefined} */
  timeout;
  dragging = false; // whether a slider is being dragged; until its release, Python only needs to redraw the panel
  pageOutdated = false; // whether the rest of the page does not show the last turn yet
  /** @type {Set<string>} */
  outdatedPanels = new Set(); // keys of panels whose knob has changed since the rest of the page was updated

  /** @param {Turnable} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<string, number>} */
    this.unsent = new Map(); // panel's key -> the newest value that has not been sent
  }

  /** Create the elements of a panel's knob; `update` fills them in. */
  build() {
    const slider = make("input", { type: "range", min: "0", step: "1" });
    const [low, high] = ["low", "high"].map((end) => make("span", { class: "end", "data-end": end, "aria-hidden": "true" }));
    const row = make("div", { class: "knob" }, make("span", { class: "name" }), make("output", { class: "at" }), low, slider, high);
    slider.addEventListener("input", () => this.handleMove(row));
    slider.addEventListener("pointerdown", () => {
      this.dragging = true;
      const listeners = new AbortController();
      const release = () => {
        listeners.abort();
        this.dragging = false;
        if (this.pageOutdated) this.handleMove(row);
      };
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, { capture: true, signal: listeners.signal });
    });
    return row;
  }

  /**
   * Set a panel's slider to the value from Python, unless a newer value of the visitor waits to be sent.
   * @param {HTMLElement} row
   * @param {Turnable["panels"][number]} panel
   */
  update(row, { key, title, knob }) {
    row.hidden = !knob;
    row.dataset.of = key;
    if (!knob) return;
    row.dataset.shown = String(knob.value);
    const { name, slider, output, low, high } = elementsOf(row);
    name.textContent = knob.name;
    output.style.minWidth = `${Math.max(...knob.stops.map((stop) => String(stop).length))}ch`; // wide enough for every value, so that the slider stays in place
    low.textContent = String(knob.stops[0]);
    high.textContent = String(knob.stops[knob.stops.length - 1]);
    slider.setAttribute("aria-label", `${title}: ${knob.name}`);
    if (this.unsent.has(key)) return;
    slider.max = String(knob.stops.length - 1);
    slider.value = String(knob.stops.indexOf(knob.value));
    this.showValue(row, knob);
  }

  /**
   * @param {HTMLElement} row
   * @param {SentKnob} knob
   */
  showValue(row, knob) {
    const { slider, output } = elementsOf(row);
    output.textContent = String(knob.stops[slider.valueAsNumber]);
    slider.setAttribute("aria-valuetext", output.textContent);
  }

  /**
   * Handle a slider move of the visitor.
   * @param {HTMLElement} row
   */
  handleMove(row) {
    const { key, knob, frames } = this.board.panels.find((panel) => panel.key === row.dataset.of) ?? {};
    if (!key || !knob) return;
    this.showValue(row, knob);
    const value = knob.stops[elementsOf(row).slider.valueAsNumber];
    const isAnimated = frames?.length && this.board.showFrame;
    if (isAnimated) this.board.showFrame?.(value);
    this.unsent.set(key, value);
    this.pageOutdated = true;
    if (this.pendingTurn === null && !(isAnimated && this.dragging)) this.sendNext();
  }

  /**
   * Set an animated panel's slider to the frame shown.
   * @param {HTMLElement} row
   * @param {SentKnob} knob
   * @param {number} frame
   */
  setFrame(row, knob, frame) {
    elementsOf(row).slider.value = String(knob.stops.indexOf(frame));
    this.showValue(row, knob);
  }

  /** Send the next value to Python. */
  sendNext() {
    clearTimeout(this.timeout);
    const [[panel, value] = []] = this.unsent;
    this.pendingTurn = null;
    if (panel === undefined) return;
    this.unsent.delete(panel);
    this.pendingTurn = ++this.turnCount;
    this.pageOutdated = this.dragging;
    const sendDragged = this.dragging ? dragSenders.get(this.board.root.dataset.board ?? "") : undefined;
    if (sendDragged) this.markOutdated(panel);
    (sendDragged ?? this.board.send)("turn", { panel, value, turn: this.pendingTurn });
    this.timeout = setTimeout(() => this.sendNext(), ANSWER_TIMEOUT);
  }

  /**
   * Mark the page's text about a panel as outdated; without a panel, mark all text as current.
   * @param {string} [panel]
   */
  markOutdated(panel) {
    if (panel) this.outdatedPanels.add(panel);
    else this.outdatedPanels.clear();
    document.body.toggleAttribute("data-turning", this.outdatedPanels.size > 0);
  }

  /**
   * Handle panels that arrive from Python: if they answer the last turn, send the next value.
   * @param {number} turn the number of the last turn whose value the panels show
   */
  acknowledge(turn) {
    if (turn === this.pendingTurn) this.sendNext();
  }

  destroy() {
    this.markOutdated();
    clearTimeout(this.timeout);
  }
}

/** @param {HTMLElement} row */
const elementsOf = (row) => {
  const [name, output, low, slider, high] = row.children;
  return { name, slider: /** @type {HTMLInputElement} */ (slider), output: /** @type {HTMLElement} */ (output), low, high };
};
