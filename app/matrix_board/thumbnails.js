// Miniatures of all heads of a model: rows are layers, columns heads; pointer or keyboard chooses one.
/** @import { HeadsHeader, HeadsSettings, Place, Send, Theme } from "./types" */
/** @import { CanvasPen } from "./pen.js" */

import { packed, PALETTES } from "./color.js";
import { clamp, make, penFor, readTheme } from "./page.js";
import { brushOf, onPage } from "./pen.js";

const EDGE = { left: 26, top: 18 };
const NO_VALUE = 255; // the byte of a masked cell; the others are places along the colour ramp, 0 to 254
const PREVIEW = 120;

export class Thumbnails {
  layers = 0;
  heads = 0;
  size = 0; // cells along a miniature's side
  pitch = 0; // pixels from one miniature to the next, once painted
  /** @type {Uint8Array} */
  payload;
  /** @type {HeadsSettings} */
  settings;
  /** @type {Place | null} */
  selected = null;
  /** @type {Send} */
  send;
  /** @type {Theme} */
  theme;
  /** @type {number | undefined} */
  frame;

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {[layer: number, head: number] | null} */
    this.focus = null; // under the pointer or the keyboard
    this.paints = 0;
    this.canvas = make("canvas", { role: "application", tabindex: "0" });
    this.preview = make("canvas", { width: "1", height: "1" });
    this.name = make("div", {});
    this.tip = make("div", { class: "tip", hidden: "", "aria-hidden": "true" }, this.preview, this.name);
    this.live = make("div", { class: "live", role: "status", "aria-live": "polite" });
    this.root = make("div", { class: "board thumbnails" }, this.canvas, this.tip, this.live);
    host.append(this.root);
    this.ears = new AbortController();
    /**
     * @template {keyof HTMLElementEventMap} Type
     * @param {Type} type
     * @param {(event: HTMLElementEventMap[Type]) => void} act
     */
    const on = (type, act) => this.canvas.addEventListener(type, act, { signal: this.ears.signal });
    on("pointermove", (event) => this.look(this.at(event)));
    on("pointerleave", () => this.look(null));
    on("blur", () => this.look(null));
    on("click", (event) => this.choose(this.at(event)));
    on("keydown", (event) => this.key(event));
    this.watch = new ResizeObserver(() => this.schedule());
    this.watch.observe(this.root);
    document.fonts.ready.then(() => this.schedule());
  }

  /**
   * @param {HeadsHeader} header
   * @param {ArrayBuffer} payload
   */
  receive({ layers, heads, size }, payload) {
    Object.assign(this, { layers, heads, size, payload: new Uint8Array(payload) });
    this.look(null);
    this.schedule();
  }

  /** @param {HeadsSettings} settings */
  show(settings) {
    this.settings = settings;
    this.selected = settings.selected;
    this.canvas.setAttribute("aria-label", settings.words.help);
    this.schedule();
  }

  retheme() {
    this.theme = readTheme(this.root);
    this.schedule();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.payload && this.settings && this.theme && this.root.clientWidth) this.paint();
    });
  }

  /**
   * One miniature on the hidden page.
   * @param {number} layer
   * @param {number} head
   */
  picture(layer, head) {
    const { size, theme } = this;
    const picture = new ImageData(size, size);
    const pixels = new Uint32Array(picture.data.buffer);
    const start = (layer * this.heads + head) * size * size;
    const colours = PALETTES[theme.mode].sequential.map(packed);
    const masked = packed(theme.mode === "dark" ? [51, 54, 63] : [226, 228, 232]);
    for (let i = 0; i < pixels.length; i++) {
      const place = this.payload[start + i];
      pixels[i] = place === NO_VALUE ? masked : colours[place];
    }
    return onPage(picture);
  }

  paint() {
    const { canvas, theme, layers, heads } = this;
    const room = Math.min(this.root.clientWidth - EDGE.left, heads * 56);
    const tall = this.settings.height - EDGE.top;
    this.pitch = Math.max(12, Math.floor(Math.min(room / heads, tall / layers, 56)));
    const [width, height] = [EDGE.left + heads * this.pitch + 2, EDGE.top + layers * this.pitch + 2];
    const pen = penFor(canvas, width, height, theme.font);
    const side = this.pitch - (this.pitch > 20 ? 3 : 2);
    const every = this.pitch >= 22 ? 1 : this.pitch >= 15 ? 2 : 5;
    pen.context.imageSmoothingEnabled = this.size > side * pen.ratio;
    pen.context.imageSmoothingQuality = "high";
    for (let layer = 0; layer < layers; layer++) {
      if (layer % every === 0) {
        const y = EDGE.top + (layer + 0.5) * this.pitch;
        pen.text(`${this.settings.words.layer_mark}${layer}`, EDGE.left - 5, y, { colour: theme.muted, align: "right", size: 10 });
      }
      for (let head = 0; head < heads; head++) {
        const [x, y] = this.corner(layer, head);
        pen.context.drawImage(this.picture(layer, head), x, y, side, side);
      }
    }
    for (let head = 0; head < heads; head += every) {
      const x = EDGE.left + (head + 0.5) * this.pitch;
      pen.text(`${this.settings.words.head_mark}${head}`, x, 9, { colour: theme.muted, align: "center", size: 10 });
    }
    this.outline(pen, this.selected, theme.mark, side);
    this.outline(pen, this.focus, theme.text, side);
    this.root.dataset.paints = String(++this.paints);
    this.root.dataset.focus = String(this.focus ?? "");
  }

  /**
   * @param {number} layer
   * @param {number} head
   */
  corner(layer, head) {
    return [EDGE.left + head * this.pitch + 1, EDGE.top + layer * this.pitch + 1];
  }

  /**
   * Outline one head, or a whole layer where the head is none of them (the average).
   * @param {CanvasPen} pen
   * @param {Place | null} place
   * @param {string} colour
   * @param {number} side
   */
  outline(pen, place, colour, side) {
    if (!place) return;
    const [layer, head] = place;
    const [x, y] = this.corner(layer, head ?? 0);
    const wide = head === null ? (this.heads - 1) * this.pitch + side : side;
    pen.frame(x - 0.5, y - 0.5, wide + 1, side + 1, this.theme.background, 4);
    pen.frame(x - 0.5, y - 0.5, wide + 1, side + 1, colour, 2);
  }

  /**
   * @param {MouseEvent} event
   * @returns {[layer: number, head: number] | null}
   */
  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    const layer = Math.floor((event.clientY - frame.y - EDGE.top) / this.pitch);
    const head = Math.floor((event.clientX - frame.x - EDGE.left) / this.pitch);
    return layer >= 0 && layer < this.layers && head >= 0 && head < this.heads ? [layer, head] : null;
  }

  /** @param {[layer: number, head: number] | null} place */
  look(place) {
    if (String(place) === String(this.focus)) return;
    this.focus = place;
    this.tip.hidden = !place;
    this.schedule();
    if (!place) return;
    const { words } = this.settings;
    this.name.textContent = this.live.textContent = `${words.layer} ${place[0]}, ${words.head} ${place[1]}`;
    const brush = brushOf(this.preview);
    const side = PREVIEW * devicePixelRatio;
    Object.assign(this.preview, { width: side, height: side });
    brush.imageSmoothingEnabled = false;
    brush.drawImage(this.picture(...place), 0, 0, side, side);
    const [x, y] = this.corner(...place);
    const right = x + this.pitch + 8;
    const left = right + PREVIEW + 18 > this.root.clientWidth ? Math.max(0, x - PREVIEW - 26) : right;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${y + this.pitch + 8}px`;
  }

  /** @param {Place | null} place */
  choose(place) {
    if (!place) return;
    this.selected = place;
    this.send("choose", place);
    this.schedule();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.pitch) return;
    const [layer, head] = this.focus ?? [this.selected?.[0] ?? 0, this.selected?.[1] ?? 0];
    const go = (/** @type {number} */ down, /** @type {number} */ right) =>
      this.look([clamp(layer + down, 0, this.layers - 1), clamp(head + right, 0, this.heads - 1)]);
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowUp: () => go(-1, 0),
      ArrowDown: () => go(1, 0),
      ArrowLeft: () => go(0, -1),
      ArrowRight: () => go(0, 1),
      Home: () => go(0, -this.heads),
      End: () => go(0, this.heads),
      Enter: () => this.choose(this.focus),
      " ": () => this.choose(this.focus),
      Escape: () => this.look(null),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  destroy() {
    this.ears.abort();
    this.watch.disconnect();
    cancelAnimationFrame(this.frame ?? 0);
    this.root.remove();
  }
}
