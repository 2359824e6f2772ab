// A pen that draws on a canvas, for the screen and for PNG files. A pen with the same methods, in export.js, draws SVG files.
/** @import { Panel, Pen, View } from "../messages" */

import { css, MASKED } from "./color.js";

/** A pen that draws on a canvas, in CSS pixels. */
export class CanvasPen {
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} ratio device pixels per CSS pixel
   * @param {string} font
   */
  constructor(context, ratio, font) {
    this.context = context;
    this.ratio = ratio;
    this.font = font;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** @type {Pen["rect"]} */
  rect(x, y, width, height, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  /** @type {Pen["frame"]} */
  frame(x, y, width, height, colour, thickness = 1) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x, y, width, height);
  }

  /** @type {Pen["line"]} */
  line(x1, y1, x2, y2, colour, thickness = 1) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = thickness;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }

  /** @type {Pen["text"]} */
  text(text, x, y, { size = 12, weight = 400, colour, align = "left", rotation = 0 }) {
    const { context } = this;
    context.save();
    context.translate(x, y);
    context.rotate((rotation * Math.PI) / 180);
    context.font = `${weight} ${size}px ${this.font}`;
    context.fillStyle = colour;
    context.textAlign = align;
    context.direction = "ltr";
    context.fillText(text, 0, size * 0.35);
    context.restore();
  }

  /** @type {Pen["measure"]} */
  measure(text, size = 12, weight = 400) {
    this.context.font = `${weight} ${size}px ${this.font}`;
    return this.context.measureText(text).width;
  }

  /** @type {Pen["gradient"]} */
  gradient(x, y, width, height, colours) {
    const fill = this.context.createLinearGradient(x, 0, x + width, 0);
    for (let i = 0; i <= 32; i++) fill.addColorStop(i / 32, css(colours[Math.round((i / 32) * (colours.length - 1))]));
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  /** @type {Pen["hatch"]} */
  hatch(x, y, width, height, [ground, stripe]) {
    const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 });
    const context = contextOf(tile);
    context.fillStyle = ground;
    context.fillRect(0, 0, 6, 6);
    context.fillStyle = stripe;
    for (let i = 0; i < 6; i++) for (const k of [0, 1]) context.fillRect(i, (11 - i + k) % 6, 1, 1);
    const fill = /** @type {CanvasPattern} */ (this.context.createPattern(tile, "repeat"));
    const pixelSize = Math.max(1, Math.round(this.ratio)) / this.ratio; // whole device pixels, because the stripes would be blurred otherwise
    fill.setTransform(new DOMMatrix([pixelSize, 0, 0, pixelSize, x, y]));
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  /** @type {Pen["matrix"]} */
  matrix(panel, table, view, plot) {
    const { e, f } = this.context.getTransform();
    const [left, top] = [Math.round(e + plot.x * this.ratio), Math.round(f + plot.y * this.ratio)];
    const right = Math.round(e + (plot.x + plot.width) * this.ratio);
    const bottom = Math.round(f + (plot.y + plot.height) * this.ratio);
    const picture = renderMatrix(panel, table, view, right - left, bottom - top);
    this.context.save();
    this.context.resetTransform();
    this.context.drawImage(toCanvas(picture), left, top);
    this.context.restore();
  }

  /** @type {Pen["translate"]} */
  translate(x, y, draw) {
    this.context.save();
    this.context.translate(x, y);
    draw();
    this.context.restore();
  }

  /** @type {Pen["clip"]} */
  clip(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }
}

/**
 * Return the drawing context of a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [options]
 */
export const contextOf = (canvas, options) =>
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", options));

const pictureCanvas = document.createElement("canvas");

/**
 * Return a hidden canvas with the picture, valid until the next call. Drawing this canvas keeps the background below
 * transparent pixels, and putImageData does not.
 * @param {ImageData} picture
 */
export function toCanvas(picture) {
  Object.assign(pictureCanvas, { width: picture.width, height: picture.height });
  contextOf(pictureCanvas).putImageData(picture, 0, 0);
  return pictureCanvas;
}

/**
 * Return each pixel's first cell, and the cell after its last. A cell smaller than a pixel belongs to one pixel only, so
 * a large weight is drawn once.
 * @param {number} cells the number of cells of a row or a column
 * @param {number} start the first visible position, as a fraction of the row or column
 * @param {number} share the visible fraction
 * @param {number} pixels the number of pixels
 */
export function cellSpans(cells, start, share, pixels) {
  const step = (cells * share) / pixels;
  const first = new Int32Array(pixels);
  const end = new Int32Array(pixels);
  for (let i = 0; i < pixels; i++) {
    const from = step > 1 ? Math.floor(start * cells + i * step + 1e-6) : Math.floor(start * cells + (i + 0.5) * step);
    first[i] = Math.min(cells - 1, from);
    end[i] = step > 1 ? Math.max(first[i] + 1, Math.min(cells, Math.floor(start * cells + (i + 1) * step + 1e-6))) : first[i] + 1;
  }
  return [first, end];
}

/**
 * Return the picture of a matrix; if several cells share a pixel, the one with the largest magnitude is drawn.
 * @param {Panel} panel
 * @param {Uint32Array} table the colour of each half-float code
 * @param {View} view
 * @param {number} width
 * @param {number} height
 */
export function renderMatrix(panel, table, view, width, height) {
  const { codes, rows, cols } = panel;
  const [left, right] = cellSpans(cols, view.x, view.width, width);
  const [top, bottom] = cellSpans(rows, view.y, view.height, height);
  const picture = new ImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  for (let y = 0; y < height; y++) {
    const line = y * width;
    if (y && top[y] === top[y - 1] && bottom[y] === bottom[y - 1]) {
      pixels.copyWithin(line, line - width, line);
      continue;
    }
    for (let x = 0; x < width; x++) {
      pixels[line + x] = table[codes[findStrongest(codes, cols, top[y], bottom[y], left[x], right[x])]];
    }
  }
  return picture;
}

/**
 * Return the index of the cell with the largest magnitude in a block; a masked cell only if all are masked.
 * @param {Uint16Array} codes
 * @param {number} cols
 * @param {number} top
 * @param {number} bottom
 * @param {number} left
 * @param {number} right
 */
export function findStrongest(codes, cols, top, bottom, left, right) {
  let strongest = top * cols + left;
  let largest = -1;
  for (let row = top; row < bottom; row++) {
    for (let index = row * cols + left, end = row * cols + right; index < end; index++) {
      const size = codes[index] & 0x7fff; // half-float codes without the sign have the same order as their values
      if (size > largest && size !== MASKED) {
        largest = size;
        strongest = index;
      }
    }
  }
  return strongest;
}

/**
 * Return the text cut to a width, with an ellipsis.
 * @param {Pen} pen
 * @param {string} text
 * @param {number} width
 * @param {number} [size]
 * @param {number} [weight]
 */
export function truncate(pen, text, width, size, weight) {
  if (pen.measure(text, size, weight) <= width) return text;
  const letters = [...text];
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measure(letters.slice(0, middle).join("") + "…", size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

const LINE = 18;

/**
 * Return the position of each item of a legend, with line breaks, and the total size.
 * @param {{ length: number, gap: number }[]} items the length of each item, and the space after it
 * @param {number} maxWidth the longest line
 */
export function wrapItems(items, maxWidth) {
  let [x, line] = [0, 0];
  const positions = items.map(({ length, gap }) => {
    if (x && x + length > maxWidth) [x, line] = [0, line + 1];
    const position = { x, y: line * LINE };
    x += length + gap;
    return position;
  });
  return { positions, width: x, height: LINE * (line + 1) };
}

/** @type {WeakMap<string[], { font: string, width: number }>} */
// labels -> the largest width, cached because measuring hundreds of labels takes longer than drawing
const widths = new WeakMap();

/**
 * Return the width of the widest label at a size.
 * @param {Pen} pen
 * @param {string[]} labels
 * @param {number} size
 */
export function widestLabel(pen, labels, size) {
  let entry = widths.get(labels);
  if (!entry || entry.font !== pen.font) {
    entry = { font: pen.font, width: Math.max(...labels.map((label) => pen.measure(label, 100))) };
    widths.set(labels, entry);
  }
  return 1 + (entry.width * size) / 100;
}
