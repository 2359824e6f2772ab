// Draws the marks over a panel's matrix: the pinned row, the crosshair, and the row or column of a highlighted token.
/** @import { Axis, Band, Cell, Geometry, Pen, Theme } from "../messages" */

import { cellRect, labelOf, middleOf, ticks } from "./panel.js";

const HALOED = 5; // the smallest height in pixels of a row whose outline has a halo

/**
 * Draw the pinned row and the crosshair over the matrix.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {{ pinned: number | null, cell: Cell | null }} marks
 * @param {Theme} theme
 */
export function drawMarks(pen, geometry, { pinned, cell }, theme) {
  const { plot, rows, cols } = geometry;
  const drawClipped = (/** @type {() => void} */ draw) => pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, draw);
  const drawWithHalo = (/** @type {(colour: string, thickness: number) => void} */ draw) => {
    draw(theme.halo, 3);
    draw(theme.muted, 1);
  };
  if (pinned !== null) {
    const rowBox = cellRect(geometry, pinned, 0, 1, cols.count);
    drawClipped(() => {
      // The halo would cover the weights of a thin row.
      if (rowBox.height >= HALOED) pen.frame(plot.x - 1, rowBox.y - 1, plot.width + 2, rowBox.height + 2, theme.halo, 3);
      pen.frame(plot.x - 1, rowBox.y - 1, plot.width + 2, rowBox.height + 2, theme.mark, 1);
    });
    if (isInside(rowBox.y + rowBox.height / 2, rows)) drawRowChip(pen, geometry, pinned, theme, theme.mark, theme.onMark);
  }
  if (cell) {
    const cellBox = cellRect(geometry, cell.row, cell.col);
    const [midX, midY] = [cellBox.x + cellBox.width / 2, cellBox.y + cellBox.height / 2].map(
      (v) => (Math.floor(v * pen.ratio) + 0.5) / pen.ratio, // aligned to a pixel, because the line would be blurred otherwise
    );
    const gap = { x: Math.max(4, cellBox.width / 2 + 1), y: Math.max(4, cellBox.height / 2 + 1) };
    drawClipped(() => {
      drawWithHalo((colour, thickness) => {
        pen.line(plot.x, midY, midX - gap.x, midY, colour, thickness);
        pen.line(midX + gap.x, midY, plot.x + plot.width, midY, colour, thickness);
        pen.line(midX, plot.y, midX, midY - gap.y, colour, thickness);
        pen.line(midX, midY + gap.y, midX, plot.y + plot.height, colour, thickness);
        pen.frame(midX - gap.x, midY - gap.y, 2 * gap.x, 2 * gap.y, colour, thickness);
      });
    });
    if (cell.row !== pinned && isInside(midY, rows)) drawRowChip(pen, geometry, cell.row, theme, theme.text, theme.background);
    if (isInside(midX, cols)) drawColChip(pen, geometry, cell.col, theme);
  }
}

/**
 * Highlight the row or column of the token under the pointer, if the pointer is on another panel or on a text.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {Band} band
 * @param {Theme} theme
 */
export function drawBand(pen, geometry, { row, col }, theme) {
  const { plot, rows, cols } = geometry;
  const box = cellRect(geometry, row ?? 0, col ?? 0, row === null ? rows.count : 1, col === null ? cols.count : 1);
  const [extraX, extraY] = [Math.max(0, (5 - box.width) / 2), Math.max(0, (5 - box.height) / 2)];
  pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, () => {
    for (const [colour, thickness] of /** @type {[string, number][]} */ ([[theme.halo, 3], [theme.text, 1]])) {
      pen.frame(box.x - extraX, box.y - extraY, box.width + 2 * extraX, box.height + 2 * extraY, colour, thickness);
    }
  });
  if (row !== null && isInside(box.y + box.height / 2, rows)) drawRowChip(pen, geometry, row, theme, theme.text, theme.background);
  if (col !== null && isInside(box.x + box.width / 2, cols)) drawColChip(pen, geometry, col, theme);
}

const isInside = (/** @type {number} */ position, /** @type {Axis} */ { start, length }) => position > start && position < start + length;

/**
 * Draw a chip: a box on the row axis with the row's token or index. It covers the labels of the axis behind it.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {number} row
 * @param {Theme} theme
 * @param {string} ground the background colour
 * @param {string} ink the text colour
 */
function drawRowChip(pen, { plot, rows }, row, theme, ground, ink) {
  const y = middleOf(rows, row);
  const label = labelOf(pen, rows, row, rows.room, 11, 600);
  const width = pen.measure(label, 11, 600) + 8;
  const height = rows.labels ? Math.min(16, Math.max(12, rows.cell)) : 16;
  for (const i of rows.labels ? [] : ticks(rows)) {
    const tickY = middleOf(rows, i);
    if (Math.abs(tickY - y) < 15) pen.rect(plot.x - 5 - rows.room, tickY - 7, rows.room + 2, 14, theme.background);
  }
  pen.rect(plot.x - 3 - width, y - height / 2, width, height, ground);
  pen.text(label, plot.x - 7, y, { colour: ink, align: "right", weight: 600 });
}

/**
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {number} col
 * @param {Theme} theme
 */
function drawColChip(pen, { plot, cols }, col, theme) {
  const x = middleOf(cols, col);
  const turned = cols.labels && !cols.flat;
  const label = labelOf(pen, cols, col, turned ? cols.room : 96, 11, 600);
  const width = pen.measure(label, 11, 600) + 8;
  const style = { colour: theme.background, weight: 600 };
  if (turned) {
    const height = Math.min(16, Math.max(12, cols.cell));
    pen.rect(x - height / 2, plot.y - 3 - width, height, width, theme.text);
    pen.text(label, x, plot.y - 7, { ...style, rotation: -90 });
    return;
  }
  const left = Math.min(x - width / 2, plot.x + plot.width + 1 - width);
  for (const j of cols.labels ? [] : ticks(cols)) {
    const tickX = middleOf(cols, j);
    if (Math.abs(tickX - x) < width / 2 + 16) pen.rect(tickX - 15, plot.y - 18, 30, 14, theme.background);
  }
  pen.rect(left, plot.y - 18, width, 15, theme.text);
  pen.text(label, left + 4, plot.y - 10, style);
}
