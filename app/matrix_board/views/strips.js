// Strips: the text of a board, drawn once per matrix. Each word has the colour of its cell in the pinned query's row. The
// board provides the numbers, the colours and the pinned row, so a click recolours all strips before the server answers.
/** @import { Panel, Received, Send, StripsHeader, StripsSettings, Theme } from "../messages" */

import { fill, isolated } from "../../page_script/templates.js";
import { boards, PAINTED } from "../channels/boards.js";
import { HALF, MASKED } from "../drawing/color.js";
import { clamp, readIndex, listenTo, make, runKeyAction, toPrintable, readTheme } from "../drawing/elements.js";
import { contextOf } from "../drawing/pen.js";
import { cellText } from "./readout.js";

const WORD_SIZE = 13;
const WORD_ROOM = 8; // pixels around a word's letters
const JOINED_WIDTH = 8; // pixels of a token that only continues the character of the token before it
const ELLIPSIS = 14; // pixels of the first thin bar after a word or at the start, which has an ellipsis
const WORDS_SHARE = 0.7; // the share of a line for whole words if not all words fit; the other words become thin bars
const MAX_COLUMN_STRIPS = 2; // more strips than this use several columns if the page is wide enough
const MAX_COLUMNS = 4; // up to this many strips have a column each if the page is wide enough; more strips use two columns
const MIN_COLUMN = 270; // the smallest width in pixels of a column if each strip has its own
const COLUMN_GAP = 20;
const NARROW_STRIP = 460; // strips narrower than this many pixels show their note on separate lines

export class Strips {
  /** @type {string} */
  key;
  /** @type {string[]} */
  tokens = [];
  /** @type {string[] | null} */
  queries = null; // the row tokens, if they differ from the column tokens
  /** @type {boolean[]} */
  joined = [];
  /** @type {StripsSettings} */
  settings;
  /** @type {Theme} */
  theme;
  /** @type {Send} */
  send;
  /** @type {number | undefined} */
  frame; // the request to paint before the browser's next frame
  /** @type {number[]} */
  widths = [];
  /** @type {string | null} */
  unfolded = null; // the strip that shows its whole text

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {number | null} */
    this.word = null; // the word under the pointer, or chosen with the arrow keys
    this.builtLayout = "";
    this.paintedVersion = "";
    this.heading = make("div", { class: "heading" });
    this.list = make("div", { class: "list" });
    this.live = make("div", { class: "live", role: "status", "aria-live": "polite" });
    this.root = make("div", { class: "strips", role: "application", tabindex: "0" }, this.heading, this.list, this.live);
    host.append(this.root);
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    const on = listenTo(this.root, signal);
    on("pointermove", (event) => this.setWord(readIndex(event.target, "j")));
    on("pointerleave", () => this.setWord(null));
    on("click", (event) => this.click(event));
    on("keydown", (event) => this.handleKey(event));
    on("blur", () => this.setWord(null));
    const onPainted = (/** @type {Event} */ event) => {
      if (/** @type {CustomEvent<string>} */ (event).detail === this.key && this.version !== this.paintedVersion) this.schedule();
    };
    addEventListener(PAINTED, onPainted, { signal });
    this.resizeObserver = new ResizeObserver(() => this.schedule());
    this.resizeObserver.observe(this.root);
    document.fonts.addEventListener("loadingdone", () => this.measure(), { signal });
  }

  get board() {
    return boards.get(this.key);
  }

  /** An identifier that changes with the board's numbers, colours or pin, but not with pointer moves. */
  get version() {
    return `${this.board?.paints} ${this.board?.pinned} ${[...(this.board?.knobs.outdatedPanels ?? [])]}`;
  }

  /** @param {Received<StripsHeader>} received */
  receive({ header: { board, tokens, joined, queries } }) {
    const shown = queries?.map(toPrintable) ?? null;
    Object.assign(this, { key: board, tokens: tokens.map(toPrintable), joined, queries: shown, word: null, builtLayout: "" });
    this.measure();
  }

  /** @param {StripsSettings} settings */
  show(settings) {
    this.settings = settings;
    this.unfolded = settings.unfolded;
    this.root.setAttribute("aria-label", settings.texts.help);
    this.schedule();
  }

  retheme() {
    this.theme = readTheme(this.root);
    this.measure();
  }

  measure() {
    if (!this.theme) return;
    const brush = contextOf(document.createElement("canvas"));
    brush.font = `${WORD_SIZE}px ${this.theme.font}`;
    this.widths = this.tokens.map((token, j) => (this.joined[j] ? JOINED_WIDTH : brush.measureText(token).width + WORD_ROOM));
    this.schedule();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      const { board, tokens } = this;
      const ready = this.settings && this.theme && this.root.clientWidth && board?.appearance;
      // New panels have no colours until the board is painted. The board then reports it, and this function runs again.
      if (ready && board.panels.every((panel) => panel.cols === tokens.length && board.appearance.scale(panel))) this.paint();
    });
  }

  /** The board, and its pinned row if the text has such a row. */
  get boardAndPin() {
    const board = /** @type {import("./board.js").Board} */ (this.board);
    const { pinned } = board;
    return { board, pinned: pinned !== null && pinned < (this.queries ?? this.tokens).length ? pinned : null };
  }

  paint() {
    const { board, pinned } = this.boardAndPin;
    const { texts, strips } = this.settings;
    const panels = pinned === null ? board.panels.slice(0, 1) : board.panels;
    const listWidth = this.root.clientWidth;
    const fits = (/** @type {number} */ count, /** @type {number} */ strip) => listWidth >= count * strip + (count - 1) * COLUMN_GAP;
    const several = panels.length <= MAX_COLUMNS && fits(panels.length, MIN_COLUMN) ? panels.length : fits(2, NARROW_STRIP) ? 2 : 1;
    const columns = panels.length > MAX_COLUMN_STRIPS ? several : 1;
    const isBelowBoard = columns > 1 && columns === board.columns && board.side >= MIN_COLUMN; // each strip is below its panel
    const track = isBelowBoard ? `${board.side}px` : "minmax(0, 1fr)";
    const width = (isBelowBoard ? board.side : (listWidth - COLUMN_GAP * (columns - 1)) / columns) - 2;
    const shown = this.selectWords(panels, pinned, width);
    const allShown = shown.every(Boolean);
    const layout = JSON.stringify([panels.map((panel) => panel.key), shown, pinned === null, this.unfolded, columns, track, texts]);
    if (layout !== this.builtLayout) this.build(panels, shown, allShown, `repeat(${columns}, ${track})`);
    this.builtLayout = layout;
    this.paintedVersion = this.version;
    this.heading.textContent = pinned === null ? texts.none : fill(texts.heading, { word: (this.queries ?? this.tokens)[pinned] });
    panels.forEach((panel, i) => {
      const strip = /** @type {HTMLElement} */ (this.list.children[i]);
      const [title, note] = /** @type {NodeListOf<HTMLElement>} */ (strip.querySelectorAll(".title, .note"));
      const line = strips.find((each) => each.key === panel.key);
      title.textContent = pinned === null ? "" : panel.title;
      const isCurrent = pinned !== null && pinned === this.settings.pinned && !board.knobs.outdatedPanels.has(panel.key);
      note.textContent = note.title = isCurrent ? (line?.note ?? "") : "";
      const table = board.appearance.table(panel);
      const spans = /** @type {HTMLCollectionOf<HTMLElement>} */ (strip.lastElementChild?.children);
      for (let j = 0; j < this.tokens.length; j++) {
        const code = pinned === null ? MASKED : panel.codes[pinned * panel.cols + j];
        const { style, classList } = spans[j];
        const colour = code === MASKED ? null : rgbOf(table[code]);
        style.background = colour ? `rgb(${colour})` : "";
        style.color = colour ? textColourOn(colour) : "";
        classList.toggle("masked", pinned !== null && code === MASKED);
        classList.toggle("pinned", !this.queries && j === pinned);
      }
    });
    this.root.classList.toggle("narrow", width < NARROW_STRIP);
    this.root.style.setProperty("--mark", this.theme.mark);
    this.root.dataset.pinned = String(pinned ?? "");
    this.showWord();
  }

  /**
   * Return which words are written out: all if they fit, else the query and the words with the largest weights.
   * @param {Panel[]} panels
   * @param {number | null} pinned
   * @param {number} width
   */
  selectWords(panels, pinned, width) {
    const { widths } = this;
    if (widths.reduce((sum, each) => sum + each, 0) <= width) return widths.map(() => true);
    const weightOf = (/** @type {number} */ j) =>
      !this.queries && j === pinned ? Infinity : pinned === null ? -j : Math.max(...panels.map((panel) => magnitudeAt(panel, pinned * panel.cols + j)));
    const order = widths.map((_width, j) => ({ j, weight: weightOf(j) })).sort((a, b) => b.weight - a.weight);
    const shown = widths.map(() => false);
    let roomLeft = width * WORDS_SHARE;
    for (const { j } of order) {
      // without a pinned query, show the start of the text without gaps
      const room = widths[j] + (shown[j - 1] || shown[j + 1] ? 0 : ELLIPSIS);
      if (room > roomLeft && pinned === null) break;
      if (room > roomLeft) continue;
      shown[j] = true;
      roomLeft -= room;
    }
    return shown;
  }

  /**
   * @param {Panel[]} panels
   * @param {boolean[]} shown
   * @param {boolean} allShown
   * @param {string} tracks the widths of the columns, as in CSS
   */
  build(panels, shown, allShown, tracks) {
    const { texts } = this.settings;
    this.list.style.gridTemplateColumns = tracks;
    const strips = panels.map((panel) => {
      const isUnfolded = !allShown && this.unfolded === panel.key;
      const toggle = make("button", { type: "button", "data-whole": panel.key, "aria-expanded": String(isUnfolded) }, isUnfolded ? texts.fold : texts.unfold);
      const line = make("div", { class: "line" }, make("b", { class: "title" }), make("span", { class: "note" }), make("span", { class: "at" }));
      if (!allShown) line.append(toggle);
      const text = make("div", { class: isUnfolded ? "text whole" : "text", dir: "auto", ...(isUnfolded && { tabindex: "0" }) });
      const classOf = (/** @type {number} */ j) => (!isUnfolded && !shown[j] ? "sliver" : this.joined[j] ? "word joined" : "word");
      text.append(...this.tokens.map((token, j) => make("span", { class: classOf(j), "data-j": String(j) }, this.joined[j] ? "" : token)));
      return make("div", { class: "strip", "data-strip": panel.key }, line, text);
    });
    const active = this.list.contains(deepFocus(this.root)) ? /** @type {HTMLElement} */ (deepFocus(this.root)).dataset.whole : undefined;
    this.list.replaceChildren(...strips);
    if (active) /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-whole="${CSS.escape(active)}"]`))?.focus();
  }

  /** @param {number | null} word */
  setWord(word) {
    if (word === this.word) return;
    this.word = word;
    this.showWord();
  }

  /** Show the current word in every strip: on its line, and for screen readers. */
  showWord() {
    const { word } = this;
    for (const element of this.list.querySelectorAll("[data-j].here")) element.classList.remove("here");
    for (const label of this.list.querySelectorAll(".at")) label.textContent = "";
    if (word === null || !this.board) return;
    const { board, pinned } = this.boardAndPin;
    const quoted = `“${isolated(this.tokens[word])}”`;
    const spokenTexts = [quoted];
    [...this.list.children].forEach((strip, i) => {
      const panel = board.panels[i];
      const value = pinned === null || !panel ? "" : cellText(panel, pinned, word, board.settings);
      strip.lastElementChild?.children[word]?.classList.add("here");
      /** @type {HTMLElement} */ (strip.querySelector(".at")).textContent = `${quoted} ${value}`;
      if (value) spokenTexts.push(`${panel.title} ${value}`);
    });
    if (this.live.textContent !== spokenTexts.join(", ")) this.live.textContent = spokenTexts.join(", ");
  }

  /** @param {MouseEvent} event */
  click({ target }) {
    const word = readIndex(target, "j");
    const key = target instanceof Element && target.closest("[data-whole]")?.getAttribute("data-whole");
    if (key) {
      this.unfolded = this.unfolded === key ? null : key;
      this.send("unfold", { strip: this.unfolded });
      this.schedule();
    } else if (word !== null && !this.queries) this.pin(word);
  }

  /** @param {number | null} row */
  pin(row) {
    if (this.board && row !== this.board.pinned) this.board.setPin(row, 0);
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (event.target !== this.root || !this.tokens.length) return;
    const last = this.tokens.length - 1;
    const word = this.word ?? (this.queries ? 0 : (this.boardAndPin.pinned ?? 0));
    const move = (/** @type {number} */ index) => this.setWord(clamp(index, 0, last));
    runKeyAction(event, {
      ArrowLeft: () => move(word - 1),
      ArrowRight: () => move(word + 1),
      ArrowUp: () => move(word - 10),
      ArrowDown: () => move(word + 10),
      Home: () => move(0),
      End: () => move(last),
      Enter: () => !this.queries && this.pin(word),
      Escape: () => (this.word === null ? this.pin(null) : this.setWord(null)),
    });
  }

  destroy() {
    this.listeners.abort();
    this.resizeObserver.disconnect();
    cancelAnimationFrame(this.frame ?? 0);
    this.root.remove();
  }
}

/**
 * Return the magnitude of a cell; zero for a masked cell.
 * @param {Panel} panel
 * @param {number} cell
 */
function magnitudeAt(panel, cell) {
  const code = panel.codes[cell];
  return code === MASKED ? 0 : Math.abs(HALF[code]) * panel.unit;
}

/** Return the red, green and blue of a colour from `packColour`. */
const rgbOf = (/** @type {number} */ colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];

/**
 * Return black or white for text on a colour: one of them always has a contrast of at least 4.5 to 1.
 * @param {number[]} colour
 */
function textColourOn(colour) {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/**
 * Return the focused element of the shadow root or document that contains the given element.
 * @param {Element} element
 */
function deepFocus(element) {
  return /** @type {ShadowRoot | Document} */ (element.getRootNode()).activeElement;
}
