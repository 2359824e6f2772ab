// A text whose tokens are coloured by the difference of their losses between two language models, for example before and
// after a change of the attention. A reading is the result of one model on the text: its losses, and numbers about them.
// A table above the text has one row per reading.
/** @import { ReadingHeader, ReadingSettings, SentReading } from "./types" */
/** @import { Received, Send } from "../matrix_board/messages" */

import { clamp, readIndex, make, runKeyAction, toPrintable, readTheme } from "../matrix_board/drawing/elements.js";
import { fill } from "../page_script/templates.js";

const FULL_COLOUR_NATS = 6; // a token whose loss changes by at least this many nats has the full colour
const NAMED_CHANGES = 3; // the number of tokens named below the text
/** @type {Record<string, string>} */
const ROW_TITLE = { cell: "rowheader", columnheader: "columnheader" }; // role of a row's first cell, by that of the others

export class ReadingBoard {
  /** @type {string[]} */
  labels = [];
  /** @type {string[]} */
  columns = [];
  /** @type {SentReading[]} */
  rows = [];
  /** @type {string[]} */
  floor = [];
  /** @type {HTMLElement[]} */
  tokens = [];
  /** @type {HTMLElement[]} */
  choices = []; // one button per changed model, which shows its losses
  /** @type {ReadingSettings} */
  settings;
  shown = 0; // the index of the shown reading among the changed models, which are `rows` without the first
  baselineIndex = 0; // the index in `rows` of the reading that the shown one is compared with
  token = -1; // the chosen token
  focusedToken = 0; // the token with the keyboard focus
  /** @type {Send} */
  send;
  /** @type {string | undefined} */
  pending; // the change that was sent to the server and has no answer yet

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    this.table = make("div", { class: "readers", role: "table" });
    this.choice = make("span", { class: "choice", role: "radiogroup" });
    this.choiceLabel = make("span");
    this.text = make("div", { class: "tokens", role: "group", dir: "auto" });
    this.loss = make("p", { class: "loss", role: "status", "aria-live": "polite" });
    this.baselineLabel = make("span");
    this.baseline = make("select");
    this.scale = make("span");
    const baseline = make("label", {}, this.baselineLabel, " ", make("span", { class: "select" }, this.baseline));
    this.legend = make("p", { class: "legend" }, this.choiceLabel, this.choice, baseline, this.scale);
    this.remarks = make("p", { class: "remarks" });
    const head = make("div", { class: "panel-head" }, this.legend, this.loss);
    const panel = make("div", { class: "panel" }, head, this.text, this.remarks);
    this.root = make("div", { class: "reading" }, this.table, panel);
    host.append(this.root);
    this.text.addEventListener("pointerover", (event) => this.showLoss(readIndex(event.target, "token")));
    this.text.addEventListener("pointerleave", () => this.showLoss(null));
    this.text.addEventListener("focusin", (event) => this.showLoss(readIndex(event.target, "token")));
    this.text.addEventListener("click", (event) => this.chooseToken(readIndex(event.target, "token")));
    this.text.addEventListener("keydown", (event) => this.handleTokenKey(event));
    this.choice.addEventListener("keydown", (event) => this.handleReadingKey(event));
    this.baseline.addEventListener("change", () => {
      this.baselineIndex = Number(this.baseline.value);
      this.paint();
      this.report();
    });
  }

  /** @param {Received<ReadingHeader>} received */
  receive({ header: { tokens, columns, rows, floor } }) {
    this.labels = tokens.map(toPrintable);
    this.rows = rows;
    this.columns = columns;
    this.floor = floor;
    const areSameTokens = this.tokens.length === tokens.length && this.tokens.every((each, i) => each.dataset.label === this.labels[i]);
    if (!areSameTokens) {
      this.focusedToken = 0;
      this.tokens = this.labels.map((token, index) =>
        make("span", { class: "token", role: "button", "data-token": String(index), "data-label": token }, token),
      );
      this.text.replaceChildren(...this.tokens);
    }
    if (this.settings) this.applySettings();
  }

  /** @param {ReadingSettings} settings */
  show(settings) {
    this.settings = settings;
    const state = JSON.stringify([settings.shown, settings.token, settings.baseline]);
    if (this.pending === undefined || this.pending === state) {
      this.pending = undefined;
      this.applySettings();
    }
  }

  /** Show the readings and the token that the settings name as chosen. */
  applySettings() {
    this.shown = clamp(this.settings.shown, 0, Math.max(0, this.rows.length - 2));
    this.token = this.settings.token < this.labels.length ? this.settings.token : -1;
    this.baselineIndex = this.settings.baseline;
    this.build();
    this.paint();
  }

  retheme() {
    this.root.dataset.mode = readTheme(this.root).mode;
  }

  /** Create the table with one row per reading, and the choice of the reading that colours the text. */
  build() {
    const { texts } = this.settings;
    const focused = this.choices.some((each) => each.matches(":focus"));
    this.table.setAttribute("aria-label", texts.rows);
    this.text.setAttribute("aria-label", texts.help);
    this.table.style.setProperty("--columns", String(this.columns.length));
    const row = (/** @type {string} */ kind, /** @type {string[]} */ words, role = "cell") =>
      make("div", { class: `reader ${kind}`, role: "row" }, ...words.map((word, i) => make("span", { role: i ? role : ROW_TITLE[role] }, word)));
    const lines = this.rows.map(({ name, numbers }) => row("", [name, ...numbers]));
    if (this.floor.length) lines.push(row("floor", this.floor));
    this.table.replaceChildren(row("head", [texts.rows, ...this.columns], "columnheader"), ...lines);
    this.choices = this.rows.slice(1).map(({ short }, index) => {
      const button = make("button", { type: "button", role: "radio" }, short);
      button.addEventListener("click", () => this.chooseReading(index));
      return button;
    });
    this.choiceLabel.textContent = texts.show;
    this.choice.setAttribute("aria-label", texts.show);
    this.choice.replaceChildren(...this.choices);
    this.choice.hidden = this.choiceLabel.hidden = this.choices.length < 2;
    if (focused) this.choices[this.shown]?.focus();
  }

  /** Draw the losses. */
  paint() {
    this.choices.forEach((button, index) => {
      button.setAttribute("aria-checked", String(index === this.shown));
      button.tabIndex = index === this.shown ? 0 : -1;
    });
    if (!this.rows[this.baselineIndex]?.losses.length || this.baselineIndex === this.shown + 1) this.baselineIndex = 0;
    const before = this.rows[this.baselineIndex]?.losses ?? [];
    const after = this.rows[this.shown + 1]?.losses ?? [];
    const changes = before.length ? after.map((loss, i) => loss - before[i]) : [];
    this.tokens.forEach((token, index) => {
      const worsening = clamp((changes[index - 1] ?? 0) / FULL_COLOUR_NATS, -1, 1);
      token.classList.toggle("better", worsening < 0);
      token.style.setProperty("--shade", `${Math.round(55 * Math.abs(worsening))}%`);
      token.setAttribute("aria-label", this.sentence(index));
      token.setAttribute("aria-pressed", String(index === this.token));
      token.tabIndex = index === this.focusedToken ? 0 : -1;
    });
    this.paintLegend(changes);
    this.showLoss(null);
  }

  /**
   * Draw the legend of the tint, name the tokens with the largest changes, and say why tokens have no colour.
   * @param {number[]} changes of the losses, one per token except the first
   */
  paintLegend(changes) {
    const { texts } = this.settings;
    const changed = this.rows[this.shown + 1];
    this.legend.hidden = !changed;
    if (!changed) return;
    this.baselineLabel.textContent = texts.baseline;
    const choices = [...this.rows.entries()].filter(([i]) => i !== this.shown + 1);
    this.baseline.replaceChildren(...choices.map(([i, { short }]) => make("option", { value: String(i) }, short)));
    this.baseline.value = String(this.baselineIndex);
    this.baseline.disabled = choices.length < 2;
    this.scale.replaceChildren(texts.lower, make("i"), texts.higher, " ", fill(texts.full, { nats: String(FULL_COLOUR_NATS) }));
    const size = (/** @type {number} */ i) => Math.abs(changes[i]);
    const visible = [...changes.keys()].filter((i) => size(i) >= 0.05).sort((one, other) => size(other) - size(one));
    const largestIndices = visible.slice(0, NAMED_CHANGES);
    const change = (/** @type {number} */ i) => `${changes[i] < 0 ? "−" : "+"}${size(i).toFixed(1)}`;
    const named = (/** @type {number} */ i) => `“${this.labels[i + 1]}” ${change(i)}`;
    const changeTexts = largestIndices.map(named);
    // If all changes named so far have the same sign, also name the largest change with the other sign.
    const opposite = visible.find((i) => largestIndices.every((each) => (changes[each] < 0) !== (changes[i] < 0)));
    if (opposite !== undefined) changeTexts.push(`${changes[opposite] < 0 ? texts.lower : texts.higher}: ${named(opposite)}`);
    let largest = changeTexts.length ? `${texts.largest} ${changeTexts.join(" · ")}` : "";
    if (this.baselineIndex === 0) {
      // The page lists the largest increases next to the board.
      const lowest = visible.find((i) => changes[i] < 0);
      largest = lowest === undefined ? "" : fill(texts.decrease, { token: this.labels[lowest + 1], change: change(lowest) });
    }
    const remarks = [largest, this.baselineIndex === 0 ? changed.note : ""].filter(Boolean);
    this.remarks.replaceChildren(...remarks.map((each) => make("span", {}, each)));
  }

  /**
   * Return the text about a token's losses.
   * @param {number} index
   */
  sentence(index) {
    const { texts } = this.settings;
    const [first, other] = [this.rows[this.baselineIndex], this.rows[this.shown + 1]];
    const [before, after] = [first?.losses[index - 1], other?.losses[index - 1]];
    const token = this.labels[index];
    if (index === 0 || before === undefined) return fill(texts.first, { token });
    if (after === undefined) return fill(texts.waiting, { token, before: before.toFixed(1) });
    return fill(texts.both, { token, before: before.toFixed(1), after: after.toFixed(1) });
  }

  /** @param {number | null} index */
  showLoss(index) {
    const shown = index ?? (this.token >= 0 ? this.token : null);
    this.loss.textContent = shown !== null ? this.sentence(shown) : this.choices.length ? this.settings.texts.hint : "";
  }

  /** @param {number} index */
  chooseReading(index) {
    this.shown = index;
    this.paint();
    this.choices[index]?.focus();
    this.report();
  }

  /** @param {number | null} index */
  chooseToken(index) {
    if (index === null || index === 0) return;
    this.token = index === this.token ? -1 : index;
    this.focusedToken = index;
    this.paint();
    this.report();
  }

  report() {
    this.pending = JSON.stringify([this.shown, this.token, this.baselineIndex]);
    this.send("choose", { shown: this.shown, token: this.token, baseline: this.baselineIndex });
  }

  /** @param {KeyboardEvent} event */
  handleTokenKey(event) {
    const current = readIndex(event.target, "token");
    if (current === null) return;
    const move = (/** @type {number} */ index) => {
      this.focusedToken = clamp(index, 0, this.tokens.length - 1);
      this.tokens.forEach((each, i) => (each.tabIndex = i === this.focusedToken ? 0 : -1));
      this.tokens[this.focusedToken].focus();
    };
    runKeyAction(event, {
      ArrowLeft: () => move(current - 1),
      ArrowUp: () => move(current - 1),
      ArrowRight: () => move(current + 1),
      ArrowDown: () => move(current + 1),
      Home: () => move(0),
      End: () => move(this.tokens.length - 1),
      Enter: () => this.chooseToken(current),
    });
  }

  /** @param {KeyboardEvent} event */
  handleReadingKey(event) {
    const count = this.choices.length;
    if (!count) return;
    const move = (/** @type {number} */ step) => this.chooseReading((this.shown + step + count) % count);
    runKeyAction(event, { ArrowUp: () => move(-1), ArrowLeft: () => move(-1), ArrowDown: () => move(1), ArrowRight: () => move(1) });
  }

  destroy() {
    this.root.remove();
  }
}
