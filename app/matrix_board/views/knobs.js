// The knobs on panels. A panel is redrawn while its knob is moved. One value at a time is sent to Python; of the values
// that arrive meanwhile, only the newest is sent next. While a slider is dragged, Python may answer with its panel
// only. The knob of an animated panel selects a frame, which the browser already has, so only its last value is sent.
/** @import { SentKnob, Turnable } from "../messages" */

import { holders } from "../channels/boards.js";
import { make } from "../drawing/elements.js";

const PATIENCE = 5000; // milliseconds before a turn without an answer is given up

/**
 * Return a knob's name and value as text.
 * @param {SentKnob} knob
 */
export const knobText = (knob, at = knob.stops.indexOf(knob.value)) => `${knob.name} ${knob.stops[at]}`;

export class Knobs {
  turns = 0; // the number of turns sent to Python
  /** @type {number | null} */
  flying = null; // the turn that has no answer yet
  /** @type {number | undefined} */
  waiting;
  held = false; // whether a slider is being dragged; until its release, Python only needs to redraw the panel
  behind = false; // whether the rest of the page does not have the last turn yet
  /** @type {Set<string>} */
  ahead = new Set(); // panels that were turned since the rest of the page was updated

  /** @param {Turnable} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<string, number>} */
    this.wanted = new Map(); // panel's key -> the newest value that has not been sent
  }

  /** Create the elements of a panel's knob; `fit` fills them in. */
  build() {
    const slider = make("input", { type: "range", min: "0", step: "1" });
    const [low, high] = ["low", "high"].map((end) => make("span", { class: "end", "data-end": end, "aria-hidden": "true" }));
    const row = make("div", { class: "knob" }, make("span", { class: "name" }), make("output", { class: "at" }), low, slider, high);
    slider.addEventListener("input", () => this.turn(row));
    slider.addEventListener("pointerdown", () => {
      this.held = true;
      const ears = new AbortController();
      const letGo = () => {
        ears.abort();
        this.held = false;
        if (this.behind) this.turn(row);
      };
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, letGo, { capture: true, signal: ears.signal });
    });
    return row;
  }

  /**
   * Set a panel's slider, unless the visitor has moved it meanwhile.
   * @param {HTMLElement} row
   * @param {Turnable["panels"][number]} panel
   */
  fit(row, { key, title, knob }) {
    row.hidden = !knob;
    row.dataset.of = key;
    if (!knob) return;
    row.dataset.shown = String(knob.value);
    const { name, slider, at, low, high } = partsOf(row);
    name.textContent = knob.name;
    at.style.minWidth = `${Math.max(...knob.stops.map((stop) => String(stop).length))}ch`; // no value moves the slider
    low.textContent = String(knob.stops[0]);
    high.textContent = String(knob.stops[knob.stops.length - 1]);
    slider.setAttribute("aria-label", `${title}: ${knob.name}`);
    if (this.wanted.has(key)) return;
    slider.max = String(knob.stops.length - 1);
    slider.value = String(knob.stops.indexOf(knob.value));
    this.tell(row, knob);
  }

  /**
   * @param {HTMLElement} row
   * @param {SentKnob} knob
   */
  tell(row, knob) {
    const { slider, at } = partsOf(row);
    at.textContent = String(knob.stops[slider.valueAsNumber]);
    slider.setAttribute("aria-valuetext", at.textContent);
  }

  /**
   * Handle a slider move of the visitor.
   * @param {HTMLElement} row
   */
  turn(row) {
    const { key, knob, frames } = this.board.panels.find((panel) => panel.key === row.dataset.of) ?? {};
    if (!key || !knob) return;
    this.tell(row, knob);
    const value = knob.stops[partsOf(row).slider.valueAsNumber];
    const animated = frames?.length && this.board.showFrame;
    if (animated) this.board.showFrame?.(value);
    this.wanted.set(key, value);
    this.behind = true;
    if (this.flying === null && !(animated && this.held)) this.fly();
  }

  /**
   * Set an animated panel's slider to the frame shown.
   * @param {HTMLElement} row
   * @param {SentKnob} knob
   * @param {number} frame
   */
  follow(row, knob, frame) {
    partsOf(row).slider.value = String(knob.stops.indexOf(frame));
    this.tell(row, knob);
  }

  /** Send the next value to Python. */
  fly() {
    clearTimeout(this.waiting);
    const [[panel, value] = []] = this.wanted;
    this.flying = null;
    if (panel === undefined) return;
    this.wanted.delete(panel);
    this.flying = ++this.turns;
    this.behind = this.held;
    const holder = this.held ? holders.get(this.board.root.dataset.board ?? "") : undefined;
    if (holder) this.goAhead(panel);
    (holder ?? this.board.send)("turn", { panel, value, turn: this.flying, held: this.held });
    this.waiting = setTimeout(() => this.fly(), PATIENCE);
  }

  /**
   * Mark the page's text about a panel as outdated; without a panel, mark all text as current.
   * @param {string} [panel]
   */
  goAhead(panel) {
    if (panel) this.ahead.add(panel);
    else this.ahead.clear();
    document.body.toggleAttribute("data-turning", this.ahead.size > 0);
  }

  /**
   * Handle the panels that show a turn: if it is the last turn sent, send the next one.
   * @param {number} turn
   */
  land(turn) {
    if (turn === this.flying) this.fly();
  }

  destroy() {
    this.goAhead();
    clearTimeout(this.waiting);
  }
}

/** @param {HTMLElement} row */
const partsOf = (row) => {
  const [name, at, low, slider, high] = row.children;
  return { name, slider: /** @type {HTMLInputElement} */ (slider), at: /** @type {HTMLElement} */ (at), low, high };
};
