// One row of the live sentence: the words, the arcs of one attention variant above them, its slider, and its costs.
/** @import { RowSummary, SentenceTexts, SentRow, WordBox } from "./sentence_messages" */

import { clamp, make } from "../matrix_board/drawing/elements.js";
import { fill } from "../page_script/templates.js";
import { arcPath, arcStroke } from "./arcs.js";
import { percent } from "./story.js";

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const MIN_WRITTEN = 0.03; // the smallest weight that is written below the word
const FAINT = 0.05; // the arcs of smaller weights are not drawn on phones

export class Row {
  step = 0; // the slider's position

  /**
   * @param {SentRow} message
   * @param {Float64Array} matrices the variant's attention matrix at each position of the slider, one after another
   * @param {string[]} tokens
   * @param {string[]} labels the tokens, with numbered repeats
   * @param {boolean} isReference whether this is the row of softmax, the reference, where the keyboard chooses the query word
   */
  constructor(message, matrices, tokens, labels, isReference) {
    this.message = message;
    this.matrices = matrices;
    this.isReference = isReference;
    this.size = tokens.length;
    this.numbers = tokens.map(() => make("span", { class: "number", "aria-hidden": "true" }));
    this.words = tokens.map((token, index) => {
      /** @type {Record<string, string>} */
      const role = isReference ? { role: "radio", "aria-label": labels[index] } : { "aria-hidden": "true" };
      return make("span", { class: "word", "data-word": String(index), ...role }, token, this.numbers[index]);
    });
    this.arcs = tokens.map(() => document.createElementNS(SVG_NAMESPACE, "path"));
    const drawing = document.createElementNS(SVG_NAMESPACE, "svg");
    drawing.setAttribute("aria-hidden", "true");
    drawing.append(...this.arcs);
    const text = make("div", { class: "text", dir: "auto", ...(isReference ? { role: "radiogroup" } : {}) }, ...this.words);
    this.text = make("div", { class: "place" }, drawing, text);
    text.style.setProperty("--tokens", String(tokens.length));
    text.style.setProperty("--letters", String(tokens.join("").length));
    this.setting = make("output");
    this.slider = make("input", { type: "range", min: "0", max: String(message.settings.length - 1), "data-row": message.key });
    this.slider.setAttribute("aria-label", `${message.title}: ${message.knob}`);
    const ends = [message.settings[0], message.settings.at(-1)].map((end) => make("small", { "aria-hidden": "true" }, String(end)));
    const knob = message.knob
      ? make("div", { class: "knob" }, make("span", {}, `${message.knob} `, this.setting), make("div", { class: "range" }, ends[0], this.slider, ends[1]))
      : make("div", { class: "note" }, message.note);
    this.counts = make("div", { class: "counts" });
    this.root = make(
      "div",
      { class: "row", role: "group", "aria-label": message.title, "data-variant": message.key },
      make("div", { class: "name" }, make("div", { class: "title" }, message.title), knob),
      this.text,
      this.counts,
    );
  }

  /**
   * Return the row's name, its setting and the weights of a query word, from which the text about the word is written.
   * @param {number} word
   * @param {SentenceTexts} texts
   * @returns {RowSummary}
   */
  summarise(word, texts) {
    const { title, knob, settings, why } = this.message;
    const setting = String(settings[this.step]);
    const name = knob ? fill(texts.title, { title, knob, setting }) : title;
    const isLast = this.step === settings.length - 1; // then every token is a landmark
    const reasons = isLast && why.unaveraged ? { ...why, less: why.unaveraged, more: why.unaveraged } : why;
    return { name, title, setting, why: reasons, weights: this.weights(word) };
  }

  /**
   * Return a word's weights, NaN where it cannot attend.
   * @param {number} word
   */
  weights(word) {
    const start = (this.step * this.size + word) * this.size;
    return Array.from(this.matrices.subarray(start, start + this.size));
  }

  /**
   * Return whether a word has an arc in the colour of negative weights.
   * @param {number} word
   */
  hasNegativeArc(word) {
    return this.weights(word).some((weight) => weight < 0 && arcStroke(weight).width > 0);
  }

  /**
   * Set the slider to a step within its range.
   * @param {number} step
   */
  setStep(step) {
    this.step = clamp(step, 0, this.message.settings.length - 1);
    this.slider.value = String(this.step);
  }

  /**
   * Write the setting, the error of a word's output, and the growth of the cost.
   * @param {number} word
   * @param {string[]} headings of the two numbers
   * @param {SentenceTexts} texts
   */
  showNumbers(word, headings, texts) {
    const { settings, errors, growths } = this.message;
    const numbers = [percent(errors[this.step][word], 2), `× ${growths[this.step].toFixed(1)}`];
    this.setting.textContent = String(settings[this.step]);
    this.slider.setAttribute("aria-valuetext", `${settings[this.step]}, ${headings[0]} ${numbers[0]}`);
    this.counts.replaceChildren(...numbers.map((number, i) => make("div", {}, make("span", {}, headings[i]), " ", make("b", {}, number))));
    this.text.querySelector("[role=radiogroup]")?.setAttribute("aria-label", texts.help);
  }

  /** The positions of the words, which are the same in every row. */
  get boxes() {
    const corner = this.text.getBoundingClientRect();
    const boxes = this.words.map((word, index) => {
      const box = word.getBoundingClientRect();
      const bottom = this.numbers[index].getBoundingClientRect().bottom;
      return { middle: Math.round(box.x + box.width / 2 - corner.x), top: Math.round(box.y - corner.y), bottom: Math.round(bottom - corner.y) };
    });
    return boxes.map((box) => ({ ...box, room: box.top - Math.max(0, ...boxes.map(({ bottom }) => (bottom < box.top ? bottom : 0))) }));
  }

  /**
   * Shape the arcs from a query word.
   * @param {number} word
   * @param {WordBox[]} boxes
   */
  shapeArcs(word, boxes) {
    this.arcs.forEach((arc, target) => arc.setAttribute("d", arcPath(boxes[word], boxes[target])));
    this.words.forEach((each, index) => {
      each.classList.toggle("looking", index === word);
      if (this.isReference) each.setAttribute("aria-checked", String(index === word));
      if (this.isReference) each.tabIndex = index === word ? 0 : -1;
    });
  }

  /**
   * Draw a word's weights.
   * @param {number} word
   */
  paint(word) {
    this.weights(word).forEach((weight, target) => {
      const { width, opacity, shade } = arcStroke(weight);
      const arc = this.arcs[target];
      arc.style.strokeWidth = String(width);
      arc.style.opacity = String(opacity);
      const [chip, number] = [this.words[target], this.numbers[target]];
      for (const each of [arc, chip]) each.classList.toggle("negative", weight < 0);
      arc.classList.toggle("faint", Math.abs(weight) < FAINT);
      chip.classList.toggle("masked", Number.isNaN(weight));
      chip.style.setProperty("--shade", `${Math.round(60 * shade)}%`);
      number.textContent = Math.abs(weight) >= MIN_WRITTEN ? percent(weight) : "";
    });
  }
}
