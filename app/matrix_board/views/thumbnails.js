// Small pictures of the attention matrices of all heads of a model, with layers as rows and heads as columns. The visitor
// chooses a head by pointer or keyboard.
/** @import { HeadsHeader, HeadsSettings, HeadOrLayer, Received, Send, Theme } from "../messages" */
/** @import { CanvasPen } from "../drawing/pen.js" */

import { fill } from "../../page_script/templates.js";
import { fromHex, packColour, PALETTES } from "../drawing/color.js";
import { clamp, listenTo, make, preparePen, runKeyAction, readTheme } from "../drawing/elements.js";
import { contextOf } from "../drawing/pen.js";

const EDGE = { left: 26, top: 18 }; // pixels for the numbers of layers and heads
const NO_VALUE = 255; // the byte of a masked cell; the others are positions on the colour ramp, 0 to 254
const PREVIEW = 120; // CSS pixels per side of the enlarged thumbnail in the tooltip
const ARRIVAL_TIME = 500; // milliseconds after which the elements above usually have their final height
const NOTE_HEIGHT = 18; // pixels under a thumbnail for its note
const THUMBNAIL_GAP = 8; // pixels between thumbnails that are sorted by a score instead of by layer and head

export class Thumbnails {
  layers = 0;
  heads = 0;
  size = 0; // cells per side of a thumbnail
  pitch = 0; // pixels from the left edge of a thumbnail to that of the next, once painted
  linePitch = 0; // pixels from the upper edge of a line of thumbnails to that of the next
  columns = 1;
  /** @type {Map<number, HTMLCanvasElement>} */
  pictures = new Map();
  /** @type {Uint8Array} */
  payload;
  /** @type {HeadsSettings} */
  settings;
  /** @type {HeadOrLayer | null} */
  selected = null;
  /** @type {Send} */
  send;
  /** @type {Theme} */
  theme;
  /** @type {number | undefined} */
  frame; // the request to paint before the browser's next frame

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {[layer: number, head: number] | null} */
    this.focus = null; // the head under the pointer, or chosen with the arrow keys
    this.paints = 0;
    this.canvas = make("canvas", { role: "application", tabindex: "0" });
    this.preview = make("canvas", { width: "1", height: "1" });
    this.name = make("div", {});
    this.tip = make("div", { class: "tip", hidden: "", "aria-hidden": "true" }, this.preview, this.name);
    this.live = make("div", { class: "live", role: "status", "aria-live": "polite" });
    this.root = make("div", { class: "board thumbnails" }, this.canvas, this.tip, this.live);
    host.append(this.root);
    this.listeners = new AbortController();
    const on = listenTo(this.canvas, this.listeners.signal);
    on("pointermove", (event) => this.setFocus(this.headAt(event)));
    on("pointerleave", () => this.setFocus(null));
    on("blur", () => this.setFocus(null));
    on("click", (event) => this.choose(this.headAt(event)));
    on("keydown", (event) => this.handleKey(event));
    this.resizeObserver = new ResizeObserver(() => this.schedule());
    this.resizeObserver.observe(this.root);
    document.fonts.addEventListener("loadingdone", () => this.schedule(), { signal: this.listeners.signal });
  }

  /**
   * @param {Received<HeadsHeader>} received
   */
  receive({ header: { layers, heads, size }, payload }) {
    Object.assign(this, { layers, heads, size, payload: new Uint8Array(payload), pictures: new Map() });
    this.setFocus(null);
    this.schedule();
  }

  /** @param {HeadsSettings} settings */
  show(settings) {
    this.settings = settings;
    this.selected = settings.selected;
    this.canvas.setAttribute("aria-label", settings.texts.help);
    if (settings.reveal) setTimeout(() => this.root.scrollIntoView(), ARRIVAL_TIME);
    this.schedule();
  }

  retheme() {
    this.theme = readTheme(this.root);
    this.pictures.clear();
    this.schedule();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.payload && this.settings && this.theme && this.root.clientWidth) this.paint();
    });
  }

  /**
   * Return the picture of one thumbnail.
   * @param {number} layer
   * @param {number} head
   */
  picture(layer, head) {
    const index = layer * this.heads + head;
    const canvas = this.pictures.get(index) ?? this.drawPicture(index);
    this.pictures.set(index, canvas);
    return canvas;
  }

  /** @param {number} index */
  drawPicture(index) {
    const { size, theme } = this;
    const canvas = make("canvas", { width: String(size), height: String(size) });
    const picture = new ImageData(size, size);
    const pixels = new Uint32Array(picture.data.buffer);
    const start = index * size * size;
    const colours = PALETTES[theme.mode].positive.map(packColour);
    const masked = packColour(fromHex(PALETTES[theme.mode].hatch[1]));
    for (let i = 0; i < pixels.length; i++) {
      const position = this.payload[start + i];
      pixels[i] = position === NO_VALUE ? masked : colours[position];
    }
    contextOf(canvas).putImageData(picture, 0, 0);
    return canvas;
  }

  /**
   * The layer and head of each thumbnail, in the order on screen.
   * @returns {[layer: number, head: number][]}
   */
  get shownHeads() {
    if (this.settings.in_order) return this.settings.heads.map(([layer, head]) => [layer, head]);
    return Array.from({ length: this.layers * this.heads }, (_, i) => [Math.floor(i / this.heads), i % this.heads]);
  }

  paint() {
    const { canvas, theme, layers, heads, settings } = this;
    const { in_order: inOrder, max_size: maxSize } = settings;
    const maxWidth = this.root.clientWidth - (inOrder ? 0 : EDGE.left);
    const maxHeight = settings.height - EDGE.top;
    this.columns = inOrder ? Math.max(1, Math.floor((maxWidth + THUMBNAIL_GAP) / (maxSize + THUMBNAIL_GAP))) : heads;
    this.pitch = inOrder
      ? Math.floor((maxWidth + THUMBNAIL_GAP) / this.columns)
      : Math.max(12, Math.floor(Math.min(maxWidth / heads, maxHeight / layers, maxSize)));
    this.linePitch = this.pitch + (inOrder ? NOTE_HEIGHT : 0);
    const { shownHeads } = this;
    const lines = Math.ceil(shownHeads.length / this.columns);
    const edge = this.edge;
    const [width, height] = [edge.left + this.columns * this.pitch + 2, edge.top + lines * this.linePitch + 2];
    const pen = preparePen(canvas, width, height, theme.font);
    const side = this.side;
    const labelStep = this.pitch >= 22 ? 1 : this.pitch >= 15 ? 2 : 5;
    pen.context.imageSmoothingEnabled = this.size > side * pen.ratio;
    pen.context.imageSmoothingQuality = "high";
    shownHeads.forEach(([layer, head], i) => {
      const [x, y] = this.corner(i);
      pen.context.drawImage(this.picture(layer, head), x, y, side, side);
      if (inOrder) pen.text(settings.heads[i][2], x, y + side + NOTE_HEIGHT / 2, { colour: theme.text, size: 11 });
    });
    for (let layer = 0; layer < layers && !inOrder; layer += labelStep) {
      const y = edge.top + (layer + 0.5) * this.pitch;
      pen.text(`${settings.texts.layer_mark}${layer}`, edge.left - 5, y, { colour: theme.muted, align: "right", size: 10 });
    }
    for (let head = 0; head < heads && !inOrder; head += labelStep) {
      const x = edge.left + (head + 0.5) * this.pitch;
      pen.text(`${settings.texts.head_mark}${head}`, x, 9, { colour: theme.muted, align: "center", size: 10 });
    }
    this.outline(pen, this.selected, theme.mark);
    this.outline(pen, this.focus, theme.text);
    this.root.dataset.paints = String(++this.paints);
    this.root.dataset.focus = String(this.focus ?? "");
  }

  get edge() {
    return this.settings.in_order ? { left: 0, top: 0 } : EDGE;
  }

  get side() {
    return this.settings.in_order ? this.pitch - THUMBNAIL_GAP : this.pitch - (this.pitch > 20 ? 3 : 2);
  }

  /**
   * Return the position of the i-th thumbnail.
   * @param {number} i
   */
  corner(i) {
    return [this.edge.left + (i % this.columns) * this.pitch + 1, this.edge.top + Math.floor(i / this.columns) * this.linePitch + 1];
  }

  /**
   * Outline one head, or its whole layer if the head is null: the average of the layer's heads is then selected.
   * @param {CanvasPen} pen
   * @param {HeadOrLayer | null} selection
   * @param {string} colour
   */
  outline(pen, selection, colour) {
    if (!selection) return;
    const { side, shownHeads } = this;
    const indices = shownHeads.flatMap(([layer, head], i) => (layer === selection[0] && (selection[1] ?? head) === head ? [i] : []));
    const spans = this.settings.in_order || indices.length < 2 ? indices.map((i) => [i, i]) : [[indices[0], indices[indices.length - 1]]];
    for (const [first, last] of spans) {
      const [x, y] = this.corner(first);
      const width = this.corner(last)[0] - x + side;
      pen.frame(x - 0.5, y - 0.5, width + 1, side + 1, this.theme.background, 4);
      pen.frame(x - 0.5, y - 0.5, width + 1, side + 1, colour, 2);
    }
  }

  /**
   * @param {MouseEvent} event
   * @returns {[layer: number, head: number] | null}
   */
  headAt(event) {
    const frame = this.canvas.getBoundingClientRect();
    const line = Math.floor((event.clientY - frame.y - this.edge.top) / this.linePitch);
    const column = Math.floor((event.clientX - frame.x - this.edge.left) / this.pitch);
    return line >= 0 && column >= 0 && column < this.columns ? (this.shownHeads[line * this.columns + column] ?? null) : null;
  }

  /** @param {[layer: number, head: number] | null} target */
  setFocus(target) {
    if (String(target) === String(this.focus)) return;
    this.focus = target;
    this.tip.hidden = !target;
    this.schedule();
    if (!target) return;
    const { texts, heads } = this.settings;
    const description = heads.find(([layer, head]) => layer === target[0] && head === target[1])?.[3];
    this.name.textContent = this.live.textContent = description || fill(texts.place, { layer: String(target[0]), head: String(target[1]) });
    const context = contextOf(this.preview);
    const side = PREVIEW * devicePixelRatio;
    Object.assign(this.preview, { width: side, height: side });
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture(...target), 0, 0, side, side);
    const [x, y] = this.corner(this.indexOf(target));
    const right = x + this.pitch + 8;
    const left = right + PREVIEW + 18 > this.root.clientWidth ? Math.max(0, x - PREVIEW - 26) : right;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${y + this.linePitch + 8}px`;
  }

  /** @param {[layer: number, head: number]} place */
  indexOf([layer, head]) {
    return this.shownHeads.findIndex((each) => each[0] === layer && each[1] === head);
  }

  /** @param {HeadOrLayer | null} selection */
  choose(selection) {
    if (!selection) return;
    this.selected = selection;
    this.send("choose", selection);
    this.schedule();
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (!this.pitch) return;
    const { shownHeads, columns } = this;
    const i = Math.max(0, this.indexOf(this.focus ?? [this.selected?.[0] ?? 0, this.selected?.[1] ?? 0]));
    const [line, column] = [Math.floor(i / columns), i % columns];
    const move = (/** @type {number} */ down, /** @type {number} */ right) => {
      const [toLine, toColumn] = [clamp(line + down, 0, Math.ceil(shownHeads.length / columns) - 1), clamp(column + right, 0, columns - 1)];
      this.setFocus(shownHeads[Math.min(shownHeads.length - 1, toLine * columns + toColumn)]);
    };
    runKeyAction(event, {
      ArrowUp: () => move(-1, 0),
      ArrowDown: () => move(1, 0),
      ArrowLeft: () => move(0, -1),
      ArrowRight: () => move(0, 1),
      Home: () => move(0, -columns),
      End: () => move(0, columns),
      Enter: () => this.choose(this.focus),
      Escape: () => this.setFocus(null),
    });
  }

  destroy() {
    this.listeners.abort();
    this.resizeObserver.disconnect();
    cancelAnimationFrame(this.frame ?? 0);
    this.root.remove();
  }
}
