// The live sentence: one sentence, drawn once per attention variant, with arcs from the query word to the words it attends
// to. The visitor chooses the query word by pointer, finger or keyboard, and each variant's budget (the setting that trades
// cost for accuracy) with a slider. The arcs are drawn from matrices that were sent in advance.
/** @import { SentenceHeader, SentenceSettings, WordBox } from "./sentence_messages" */
/** @import { Received, Send } from "../matrix_board/messages" */

import { HALF } from "../matrix_board/drawing/color.js";
import { clamp, readIndex, listenTo, make, runKeyAction, toPrintable, readTheme } from "../matrix_board/drawing/elements.js";
import { fill } from "../page_script/templates.js";
import { Row } from "./row.js";
import { percent, spokenText, story } from "./story.js";
import { Tour } from "./tour.js";

const PAUSE = 400; // milliseconds without input before changes are reported to the server and to screen readers

export class Sentence {
  /** @type {string[]} */
  labels = []; // the words; repeated words are numbered
  /** @type {Row[]} */
  rows = [];
  /** @type {WordBox[]} */
  boxes = [];
  /** @type {SentenceSettings} */
  settings;
  word = 0; // the query word
  /** @type {number | null} */
  pointed = null; // the word under the pointer, which is the query word as long as the pointer is on it
  /** @type {Send} */
  send;
  /** @type {number | undefined} */
  reportTimer;
  /** @type {string | undefined} */
  pending; // the change that was sent to the server and has no answer yet

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    this.table = make("div", { class: "rows" });
    this.finding = make("p", { class: "finding" });
    this.unshown = make("span");
    this.legend = make("span");
    this.negative = make("span"); // hidden without negative weights, but it keeps its place, so the rows do not move
    this.columns = make("div", { class: "counts", "aria-hidden": "true" });
    this.headings = make("div", { class: "row headings" }, make("div", { class: "top" }, this.finding, make("p", { class: "caption" }, this.unshown, " ", this.legend, " ", this.negative)), this.columns);
    this.story = make("p", { class: "story" });
    this.link = make("a", { class: "way", target: "_self" });
    this.caption = make("span");
    this.notes = make("p", { class: "notes", hidden: "" });
    this.notesButton = make("button", { class: "info", type: "button", "aria-expanded": "false" });
    this.notesButton.addEventListener("click", () => {
      this.notes.hidden = !this.notes.hidden;
      this.notesButton.setAttribute("aria-expanded", String(!this.notes.hidden));
    });
    this.live = make("div", { class: "live", role: "status", "aria-live": "polite" });
    const summary = make("div", { class: "summary" }, this.story, this.link);
    const caption = make("p", { class: "caption" }, this.caption, " ", this.notesButton);
    this.root = make("div", { class: "sentence" }, this.table, summary, caption, this.notes, this.live);
    host.append(this.root);
    this.resizeObserver = new ResizeObserver(() => this.measureWords());
    this.resizeObserver.observe(this.table);
    this.listeners = new AbortController();
    document.fonts.addEventListener("loadingdone", () => this.measureWords(), { signal: this.listeners.signal });
    const on = listenTo(this.table, this.listeners.signal);
    on("pointerover", (event) => event.pointerType === "mouse" && this.point(readIndex(event.target, "word")));
    on("pointerleave", () => this.point(null));
    on("click", (event) => this.choose(readIndex(event.target, "word")));
    on("keydown", (event) => this.handleKey(event));
    on("input", (event) => this.handleSlider(/** @type {HTMLInputElement} */ (event.target)));
    on("change", () => this.reportAfterPause()); // a slider was released, or moved by a key
    this.tour = new Tour((word) => this.showWord(word));
  }

  /** @param {Received<SentenceHeader>} received */
  receive({ header: { tokens, labels, rows }, payload }) {
    clearTimeout(this.reportTimer);
    if (this.rows.length) this.tour.stop();
    this.labels = labels.map(toPrintable);
    this.pointed = null;
    this.pending = this.reportTimer = undefined;
    let start = 0;
    this.rows = rows.map((row, index) => {
      const codes = new Uint16Array(payload, start, row.settings.length * tokens.length ** 2);
      start += codes.byteLength;
      return new Row(row, Float64Array.from(codes, (code) => HALF[code]), tokens.map(toPrintable), this.labels, index === 0);
    });
    this.table.replaceChildren(this.headings, ...this.rows.map((row) => row.root));
    if (this.settings) this.applySettings();
  }

  /** @param {SentenceSettings} settings */
  show(settings) {
    const { texts, word, steps } = (this.settings = settings);
    this.link.textContent = `${texts.open} \u2192`;
    this.notesButton.textContent = texts.notes_label;
    this.legend.textContent = texts.legend;
    this.negative.textContent = texts.negative;
    this.caption.textContent = texts.caption;
    this.notes.replaceChildren(...texts.notes.map((note) => make("span", {}, note)));
    if (this.reportTimer === undefined && this.pending === undefined) this.applySettings(); // otherwise the visitor's input is newer than these settings
    if (JSON.stringify({ word, steps }) === this.pending) this.pending = undefined;
  }

  /** Take the query word and the slider positions from the settings. */
  applySettings() {
    this.word = clamp(this.settings.word, 0, this.labels.length - 1);
    for (const row of this.rows) row.setStep(this.settings.steps[row.message.key] ?? 0);
    this.measureWords();
    this.paint();
    this.tour.start(this.word);
  }

  retheme() {
    this.root.dataset.mode = readTheme(this.root).mode;
  }

  /** Measure the words' positions. */
  measureWords() {
    if (!this.rows.length || !this.root.clientWidth) return;
    this.boxes = this.rows[0].boxes;
    this.shapeArcs();
  }

  get queryWord() {
    return this.pointed ?? this.word;
  }

  shapeArcs() {
    if (this.boxes.length !== this.labels.length) return;
    for (const row of this.rows) row.shapeArcs(this.queryWord, this.boxes);
  }

  /** Draw the weights of all rows or of one, and the text about them. */
  paint(rows = this.rows) {
    const { texts, link, row_parameter: rowParameter, unshown } = this.settings;
    const headings = texts.headings.map((heading) => fill(heading, { word: this.labels[this.queryWord] }));
    this.columns.replaceChildren(...headings.map((heading) => make("span", {}, heading)));
    for (const row of rows) {
      row.paint(this.queryWord);
      row.showNumbers(this.queryWord, headings, texts);
    }
    const summaries = this.rows.map((row) => row.summarise(this.queryWord, texts));
    if (!this.tour.isMoving) { // the texts and the legend describe the chosen word, at which the tour ends
      this.negative.style.visibility = this.rows.some((row) => row.hasNegativeArc(this.queryWord)) ? "" : "hidden";
      this.unshown.textContent = fill(texts.unshown, { share: percent(unshown[this.queryWord]) });
      [this.finding.textContent, this.story.textContent] = story(texts, this.labels, this.queryWord, summaries);
    }
    const url = new URL(link, document.baseURI);
    for (const row of this.rows) url.searchParams.append("variants", row.message.variant_words[row.step]);
    url.searchParams.set(rowParameter, String(this.word));
    this.link.href = url.href;
  }

  /**
   * Show a word of the tour, or, for null, the chosen word again. In a tour, the query word moves by itself.
   * @param {number | null} word
   */
  showWord(word) {
    this.root.toggleAttribute("data-touring", word !== null);
    if (this.rows.length) this.point(word);
  }

  /** @param {number | null} word */
  point(word) {
    if (word === this.pointed) return;
    this.pointed = word;
    this.shapeArcs();
    this.paint();
  }

  /** @param {number | null} word */
  choose(word) {
    if (word === null) return;
    this.pointed = null;
    this.word = word;
    this.shapeArcs();
    this.paint();
    this.reportAfterPause();
  }

  /** @param {HTMLInputElement} slider */
  handleSlider(slider) {
    const row = this.rows.find((each) => each.slider === slider);
    if (!row) return;
    row.setStep(Number(slider.value));
    this.paint([row]);
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (readIndex(event.target, "word") === null) return;
    const count = this.labels.length;
    const move = (/** @type {number} */ word) => {
      this.choose((word + count) % count);
      this.rows[0].words[this.word].focus();
    };
    runKeyAction(event, {
      ArrowLeft: () => move(this.word - 1),
      ArrowUp: () => move(this.word - 1),
      ArrowRight: () => move(this.word + 1),
      ArrowDown: () => move(this.word + 1),
      Home: () => move(0),
      End: () => move(count - 1),
    });
  }

  /** Report to the server and to screen readers, once input has paused. */
  reportAfterPause() {
    clearTimeout(this.reportTimer);
    this.reportTimer = setTimeout(() => {
      this.reportTimer = undefined;
      const { texts } = this.settings;
      const summaries = this.rows.map((row) => row.summarise(this.word, texts));
      this.live.textContent = spokenText(texts, this.labels, this.word, summaries);
      const state = { word: this.word, steps: Object.fromEntries(this.rows.map((row) => [row.message.key, row.step])) };
      this.pending = JSON.stringify(state);
      this.send("turn", state);
    }, PAUSE);
  }

  destroy() {
    clearTimeout(this.reportTimer);
    this.tour.stop();
    this.listeners.abort();
    this.resizeObserver.disconnect();
    this.root.remove();
  }
}
