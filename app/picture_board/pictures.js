// The images that several attention variants return, or maps of their errors. On an image, a map of attention
// weights shows to which pixels the pixel under the pointer attends.
/** @import { PicturesHeader, PicturesSettings, SentTile, ShownTile } from "./pictures_messages" */
/** @import { Received, Send } from "../matrix_board/messages" */

import { clamp, listenTo, make, runKeyAction, readTheme, settingsIcon } from "../matrix_board/drawing/elements.js";
import { formatNumber } from "../matrix_board/drawing/color.js";
import { download } from "../matrix_board/drawing/export.js";
import { Knobs } from "../matrix_board/views/knobs.js";
import { picturesPng } from "./pictures_png.js";
import { fill } from "../page_script/templates.js";

const LEVELS = 127; // the level of a map's largest weight; weights are sent as levels from -127 to 127
const WARM = [255, 149, 0]; // the colour of positive weights over a darkened image
const COOL = [64, 156, 255]; // the colour of negative weights
const TILE_GAP = 14; // pixels between two images
const PAGE_HEIGHT = 232; // pixels of the window that the rest of the page takes above the images
const CAPTION = 62; // pixels of a tile's height that its name, its note and its slider take
const NARROW_LINES = 35; // pixels of a narrow image's further lines: for its number, and for the name of its setting
const NARROW_IMAGE = 160; // pixels of an image's side below which its name and its number do not fit on one line
const TWO_COLUMNS = 560; // pixels of width below which two images are next to each other
const [SMALLEST_SIDE, LARGEST_SIDE] = [104, 420]; // the bounds of an image's side in CSS pixels

export class PictureBoard {
  /** @type {ShownTile[]} */
  panels = [];
  /** @type {PicturesHeader} */
  header;
  /** @type {PicturesSettings} */
  settings;
  /** @type {number | null} */
  pinned = null; // the pinned pixel
  /** @type {number | null} */
  pointed = null; // the pixel under the pointer
  showsErrors = false; // whether the images are maps of their errors
  /** @type {Send} */
  send;

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    this.readout = make("p", { class: "readout", role: "status", "aria-live": "polite" });
    this.legend = make("p", { class: "legend" });
    this.grid = make("div", { class: "tiles", role: "group", tabindex: "0" });
    this.save = make("button", { type: "button", class: "save" }, "PNG");
    this.modes = [0, 1].map(() => make("button", { type: "button" })); // the images, or their errors
    const modes = make("div", { class: "modes" }, ...this.modes);
    this.root = make("div", { class: "pictures" }, make("div", { class: "head" }, make("div", { class: "line" }, this.legend, this.readout), modes, this.save), this.grid);
    host.append(this.root);
    this.knobs = new Knobs(this);
    this.listeners = new AbortController();
    const on = listenTo(this.grid, this.listeners.signal);
    on("pointermove", (event) => event.pointerType === "mouse" && this.setPixel(this.pixelAt(event)));
    on("pointerleave", () => this.setPixel(null));
    on("click", (event) => this.click(event));
    on("keydown", (event) => this.handleKey(event));
    listenTo(this.save, this.listeners.signal)("click", () => {
      picturesPng(this).then((blob) => download(blob, `${this.settings.file_name}.png`));
    });
    this.modes.forEach((button, i) => listenTo(button, this.listeners.signal)("click", () => this.showErrors(i === 1)));
    addEventListener("resize", () => this.layout(), { signal: this.listeners.signal });
    this.resizeObserver = new ResizeObserver(() => this.layout());
    this.resizeObserver.observe(this.root);
  }

  /**
   * @param {Received<PicturesHeader>} received
   * @param {Received<SentTile>[]} parts
   */
  receive({ header }, parts) {
    const isResized = this.header && this.header.side !== header.side;
    this.header = header;
    if (isResized) this.pointed = null;
    const figureByKey = new Map(this.panels.map(({ key, figure }) => [key, figure]));
    this.panels = parts.map((part) => this.unpack(part, figureByKey.get(part.header.key) ?? this.build()));
    this.arrange();
    for (const tile of this.panels) this.fill(tile);
    this.knobs.acknowledge(header.last_turn);
    this.knobs.markOutdated();
    this.layout();
    if (this.settings) this.paintAttention();
  }

  /** Put the images into the order of the message. If it is unchanged, they stay, and a focused slider keeps the focus. */
  arrange() {
    const figures = this.panels.map(({ figure }) => figure);
    if (figures.length !== this.grid.children.length || figures.some((figure, i) => figure !== this.grid.children[i])) this.grid.replaceChildren(...figures);
  }

  /**
   * Draw the image whose slider is being dragged.
   * @param {Received<SentTile>} received
   * @param {number} lastTurn
   */
  redraw(received, lastTurn) {
    const index = this.panels.findIndex((tile) => tile.key === received.header.key);
    if (index >= 0) {
      this.panels[index] = this.unpack(received, this.panels[index].figure);
      this.fill(this.panels[index]);
      this.paintAttention();
    }
    this.knobs.acknowledge(lastTurn);
  }

  /** @param {PicturesSettings} settings */
  show(settings) {
    this.settings = settings;
    this.pinned = settings.pinned;
    this.grid.setAttribute("aria-label", settings.texts.help);
    for (const name of ["title", "aria-label"]) this.save.setAttribute(name, settings.texts.download);
    const { image, errors, error } = settings.texts;
    [image, errors].forEach((text, i) => (this.modes[i].textContent = text));
    this.modes[1].title = error;
    this.showErrors(this.showsErrors);
  }

  /** @param {boolean} showsErrors whether maps of the errors replace the images */
  showErrors(showsErrors) {
    this.showsErrors = showsErrors;
    this.modes.forEach((button, i) => button.setAttribute("aria-pressed", String((i === 1) === showsErrors)));
    for (const tile of this.panels) this.fill(tile);
    this.paintAttention();
  }

  retheme() {
    this.root.dataset.mode = readTheme(this.root).mode;
  }

  /** Create the elements of one image. */
  build() {
    const opener = make("button", { type: "button", class: "open" }, settingsIcon());
    const texts = ["title", "number"].map((name) => make("span", { class: name }));
    const [pixels, map] = ["pixels", "map"].map((name) => make("canvas", { class: name }));
    const image = make("div", { class: "image" }, pixels, map, make("i"));
    const below = make("div", { class: "below" }, make("div", { class: "costs" }, make("span", { class: "note" }), opener), this.knobs.build());
    return make("figure", {}, make("figcaption", {}, ...texts), image, below);
  }

  /**
   * @param {Received<SentTile>} part
   * @param {HTMLElement} figure
   * @returns {ShownTile}
   */
  unpack({ header: message, payload }, figure) {
    const { side, channels, cell } = this.header;
    const cells = (side / cell) ** 2;
    let end = 0;
    const slice = (/** @type {number} */ bytes) => payload.slice(end, (end += bytes));
    const peaks = message.maps ? new Float32Array(slice(4 * message.maps)) : null;
    const levels = message.maps ? new Int8Array(slice(message.maps * cells)) : null;
    const error = message.has_error ? new Uint8Array(slice(side * side)) : null;
    return { ...message, peaks, levels, error, pixels: new Uint8Array(slice(side * side * channels)), figure };
  }

  /**
   * Draw an image, or its error map.
   * @param {ShownTile} tile
   */
  fill(tile) {
    const { side, channels } = this.header;
    const { figure, pixels, error } = tile;
    figure.toggleAttribute("data-input", !tile.maps);
    const [title, opener] = [".title", ".open"].map((name) => findElement(figure, name));
    title.textContent = tile.title;
    title.title = tile.tooltip || tile.title;
    title.toggleAttribute("data-opens", tile.settings_label !== "");
    opener.hidden = !tile.settings_label;
    opener.title = opener.ariaLabel = tile.settings_label;
    const number = findElement(figure, ".number");
    number.textContent = tile.number;
    number.title = tile.details;
    const image = /** @type {HTMLCanvasElement} */ (figure.querySelector("canvas"));
    if (error && this.showsErrors) paint(image, side, (i) => [Math.min(255, 255 - error[i] / 2), 255 - error[i], 255 - error[i]]);
    else paint(image, side, (i) => (channels === 1 ? [pixels[i], pixels[i], pixels[i]] : [...pixels.subarray(3 * i, 3 * i + 3)]));
    this.modes[0].parentElement?.toggleAttribute("hidden", !this.panels.some((each) => each.error));
    this.knobs.update(findElement(figure, ".knob"), tile);
  }

  /** Give all images the largest size that fits. */
  layout() {
    const count = this.panels.length;
    const boardWidth = this.root.clientWidth;
    if (!count || !boardWidth) return;
    const columns = boardWidth < TWO_COLUMNS ? 2 : count <= 6 ? count : Math.ceil(count / 2);
    const maxWidth = (boardWidth - TILE_GAP * (columns - 1)) / columns;
    const maxHeight = (innerHeight - PAGE_HEIGHT) / Math.ceil(count / columns) - CAPTION;
    const sideWith = (/** @type {number} */ limit) => clamp(Math.min(maxWidth, boardWidth < TWO_COLUMNS ? maxWidth : limit), SMALLEST_SIDE, LARGEST_SIDE);
    const narrow = sideWith(maxHeight) < NARROW_IMAGE;
    this.grid.toggleAttribute("data-narrow", narrow);
    this.grid.style.setProperty("--columns", String(columns));
    const side = Math.floor(sideWith(narrow ? maxHeight - NARROW_LINES : maxHeight));
    this.grid.style.setProperty("--side", `${side}px`);
    this.grid.style.setProperty("--gap", `${(boardWidth - columns * side) / Math.max(1, columns - 1)}px`);
  }

  /** Show the attention of the pixel under the pointer, else of the pinned pixel, else the mean if it was sent. */
  paintAttention() {
    const { texts } = this.settings;
    const { side, cell } = this.header ?? { side: 1, cell: 1 };
    const shown = this.pointed ?? this.pinned;
    const hasPixel = shown !== null && shown < side * side;
    const [row, column] = hasPixel ? [Math.floor(shown / side), shown % side].map((at) => at - (at % cell)) : [0, 0];
    const cells = side / cell;
    const mapIndex = hasPixel ? (row / cell) * cells + column / cell : cells * cells; // the mean follows all other maps
    this.root.toggleAttribute("data-pointing", hasPixel);
    const touch = matchMedia("(hover: none)").matches;
    this.legend.textContent = this.showsErrors ? texts.error : `${texts.legend} ${touch ? texts.touch_hint : texts.hint}`;
    this.readout.textContent = hasPixel ? fill(texts.at, { row: String(row + 1), column: String(column + 1) }) : "";
    for (const { figure, peaks, levels, note } of this.panels) {
      const mark = findElement(figure, ".image i");
      mark.hidden = !hasPixel;
      figure.toggleAttribute("data-map", peaks !== null && mapIndex < peaks.length);
      findElement(figure, ".note").textContent = note;
      mark.style.left = `${(100 * column) / side}%`;
      mark.style.top = `${(100 * row) / side}%`;
      mark.style.width = mark.style.height = `${100 / side}%`;
      if (!levels || !peaks || mapIndex >= peaks.length) continue;
      if (hasPixel) findElement(figure, ".note").textContent = fill(texts.largest, { most: `${formatNumber(100 * peaks[mapIndex], 2)}%` });
      const mapLevels = levels.subarray(mapIndex * cells * cells, (mapIndex + 1) * cells * cells);
      paint(figure.querySelectorAll("canvas")[1], cells, (i) => [...(mapLevels[i] < 0 ? COOL : WARM), 255 * Math.sqrt(Math.abs(mapLevels[i]) / LEVELS)]);
    }
  }

  /**
   * Return the pixel at a pointer's position, or null outside the images.
   * @param {MouseEvent} event
   */
  pixelAt({ target, clientX, clientY }) {
    const image = target instanceof Element && target.closest(".image");
    if (!image) return null;
    const { left, top, width, height } = image.getBoundingClientRect();
    const { side } = this.header;
    const toPixel = (/** @type {number} */ share) => clamp(Math.floor(share * side), 0, side - 1);
    return toPixel((clientY - top) / height) * side + toPixel((clientX - left) / width);
  }

  /** @param {number | null} pixel */
  setPixel(pixel) {
    if (pixel === this.pointed || !this.settings) return;
    this.pointed = pixel;
    this.paintAttention();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const opener = event.target instanceof Element && event.target.closest(".open, .title[data-opens]");
    const tile = opener && this.panels.find(({ figure }) => figure.contains(opener));
    if (tile) this.send("open", tile.key);
    const pixel = this.pixelAt(event);
    if (pixel !== null) this.pin(pixel === this.pinned ? null : pixel);
  }

  /** @param {number | null} pixel */
  pin(pixel) {
    this.pinned = pixel;
    if (pixel === null) this.pointed = null;
    this.paintAttention();
    this.send("pin", { pixel });
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (event.target !== this.grid || !this.header) return;
    const { side, cell } = this.header;
    const pixel = this.pointed ?? this.pinned ?? Math.floor(side / 2) * (side + 1);
    const [row, column] = [Math.floor(pixel / side), pixel % side];
    const move = (/** @type {number} */ down, /** @type {number} */ right) => {
      const [y, x] = [row + down * cell, column + right * cell].map((coordinate) => clamp(coordinate, 0, side - 1));
      this.setPixel(y * side + x);
    };
    runKeyAction(event, {
      ArrowUp: () => move(-1, 0),
      ArrowDown: () => move(1, 0),
      ArrowLeft: () => move(0, -1),
      ArrowRight: () => move(0, 1),
      Enter: () => this.pin(pixel),
      Escape: () => this.pin(null),
    });
  }

  destroy() {
    this.listeners.abort();
    this.resizeObserver.disconnect();
    this.knobs.destroy();
    this.root.remove();
  }
}

/**
 * Return the element inside another one that a selector finds.
 * @param {HTMLElement} element
 * @param {string} selector
 */
const findElement = (element, selector) => /** @type {HTMLElement} */ (element.querySelector(selector));

/**
 * Draw a square picture, one canvas pixel for each of its pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} side
 * @param {(pixel: number) => number[]} colourOf returns red, green, blue and, if not opaque, alpha, 0 to 255
 */
function paint(canvas, side, colourOf) {
  if (canvas.width !== side || canvas.height !== side) Object.assign(canvas, { width: side, height: side });
  const picture = new ImageData(side, side);
  for (let i = 0; i < side * side; i++) {
    const [red, green, blue, alpha = 255] = colourOf(i);
    picture.data.set([red, green, blue, alpha], 4 * i);
  }
  canvas.getContext("2d")?.putImageData(picture, 0, 0);
}
