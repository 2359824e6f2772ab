// Saves one PNG, at double size, with the images that the attention variants returned, their names and their numbers.
/** @import { PictureBoard } from "./pictures.js" */

import { FINE_LINE, FINE_PRINT, originLines } from "../matrix_board/drawing/export.js";
import { readTheme } from "../matrix_board/drawing/elements.js";
import { contextOf, CanvasPen, truncate } from "../matrix_board/drawing/pen.js";
import { knobText } from "../matrix_board/views/knobs.js";

const SAVED_SIDE = 220; // CSS pixels of an image's side in the file, whatever its size on screen
const SAVED_GAP = 16; // CSS pixels around an image
const [NAME_LINE, UNDER_IMAGE] = [24, 60]; // CSS pixels above and below an image

/**
 * Return the images and, if a pixel is shown, its attention maps.
 * @param {PictureBoard} board
 * @returns {Promise<Blob | null>} null if the browser cannot create such a large picture
 */
export function picturesPng({ root, grid, panels }) {
  const theme = readTheme(root);
  const columns = Number(grid.style.getPropertyValue("--columns")) || 2;
  const width = SAVED_GAP + columns * (SAVED_SIDE + SAVED_GAP);
  const tileHeight = NAME_LINE + SAVED_SIDE + UNDER_IMAGE + SAVED_GAP;
  const imagesHeight = SAVED_GAP + Math.ceil(panels.length / columns) * tileHeight;
  const canvas = document.createElement("canvas");
  const context = contextOf(canvas);
  const origin = originLines(new CanvasPen(context, 1, theme.font), width - 2 * SAVED_GAP, "");
  const height = imagesHeight + (origin.length + 1) * FINE_LINE;
  Object.assign(canvas, { width: 2 * width, height: 2 * height });
  const pen = new CanvasPen(context, 2, theme.font);
  pen.rect(0, 0, width, height, theme.background);
  context.imageSmoothingEnabled = false;
  panels.forEach(({ figure, knob }, i) => {
    const [left, top] = [SAVED_GAP + (i % columns) * (SAVED_SIDE + SAVED_GAP), SAVED_GAP + Math.floor(i / columns) * tileHeight];
    const [title, number, note] = [".title", ".number", ".note"].map((name) => figure.querySelector(name)?.textContent ?? "");
    const room = SAVED_SIDE - pen.measure(number, 14, 600) - 8;
    pen.text(truncate(pen, title, room, 14, 600), left, top + 10, { size: 14, weight: 600, colour: theme.text });
    pen.text(number, left + SAVED_SIDE, top + 10, { size: 14, weight: 600, colour: theme.text, align: "right" });
    drawImage(pen, figure, left, top + NAME_LINE);
    const below = top + NAME_LINE + SAVED_SIDE + 6;
    pen.text(note, left, below + 8, { size: 13, colour: theme.muted });
    if (knob) pen.text(knobText(knob), left, below + 26, { size: 13, colour: theme.muted });
  });
  origin.forEach((line, i) => pen.text(line, SAVED_GAP, imagesHeight + (i + 0.5) * FINE_LINE, { size: FINE_PRINT, colour: theme.muted }));
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/**
 * Draw an image. If its attention map is shown, the image is darkened and the map is drawn over it.
 * @param {CanvasPen} pen
 * @param {HTMLElement} figure
 * @param {number} left
 * @param {number} top
 */
function drawImage(pen, figure, left, top) {
  const [pixels, map] = figure.querySelectorAll("canvas");
  pen.context.drawImage(pixels, left, top, SAVED_SIDE, SAVED_SIDE);
  if (figure.hasAttribute("data-map")) {
    pen.rect(left, top, SAVED_SIDE, SAVED_SIDE, "rgb(0 0 0 / 55%)");
    pen.context.drawImage(map, left, top, SAVED_SIDE, SAVED_SIDE);
  }
  const mark = /** @type {HTMLElement} */ (figure.querySelector("i"));
  if (mark.hidden) return;
  const [x, y, side] = [mark.style.left, mark.style.top, mark.style.width].map((share) => (parseFloat(share) / 100) * SAVED_SIDE);
  pen.frame(left + x, top + y, side, side, "#fff", 2);
}
