// The moving marks of a panel: the pinned row and the crosshair.
/** @import { Axis, Band, Cell, Geometry, Pen, Theme } from "../messages" */

import { cellRect, labelOf, midOf, ticks } from "./panel.js";

const HALOED = 5; // height in pixels from which a row has room for the halo of its outline

/**
 * Draw the pinned row and the crosshair over the matrix.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {{ pinned: number | null, cell: Cell | null }} marks
 * @param {Theme} theme
 */
export function drawMarks(pen, geometry, { pinned, cell }, theme) {
  const { plot, rows, cols } = geometry;
  const within = (/** @type {() => void} */ draw) => pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, draw);
  const haloed = (/** @type {(colour: string, thickness: number) => void} */ draw) => {
    draw(theme.halo, 3);
    draw(theme.muted, 1);
  };
  if (pinned !== null) {
    const band = cellRect(geometry, pinned, 0, 1, cols.count);
    within(() => {
      // The halo would cover the weights of a thin row.
      if (band.height >= HALOED) pen.frame(plot.x - 1, band.y - 1, plot.width + 2, band.height + 2, theme.halo, 3);
      pen.frame(plot.x - 1, band.y - 1, plot.width + 2, band.height + 2, theme.mark, 1);
    });
    if (inside(band.y + band.height / 2, rows)) rowChip(pen, geometry, pinned, theme, theme.mark, theme.onMark);
  }
  if (cell) {
    const spot = cellRect(geometry, cell.row, cell.col);
    const [midX, midY] = [spot.x + spot.width / 2, spot.y + spot.height / 2].map(
      (v) => (Math.floor(v * pen.ratio) + 0.5) / pen.ratio, // aligned to a pixel, as the line would blur otherwise
    );
    const gap = { x: Math.max(4, spot.width / 2 + 1), y: Math.max(4, spot.height / 2 + 1) };
    within(() => {
      haloed((colour, thickness) => {
        pen.line(plot.x, midY, midX - gap.x, midY, colour, thickness);
        pen.line(midX + gap.x, midY, plot.x + plot.width, midY, colour, thickness);
        pen.line(midX, plot.y, midX, midY - gap.y, colour, thickness);
        pen.line(midX, midY + gap.y, midX, plot.y + plot.height, colour, thickness);
        pen.frame(midX - gap.x, midY - gap.y, 2 * gap.x, 2 * gap.y, colour, thickness);
      });
    });
    if (cell.row !== pinned && inside(midY, rows)) rowChip(pen, geometry, cell.row, theme, theme.text, theme.background);
    if (inside(midX, cols)) colChip(pen, geometry, cell.col, theme);
  }
}

/**
 * Highlight the row or column of a token that is pointed at elsewhere.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {Band} band
 * @param {Theme} theme
 */
export function drawBand(pen, geometry, { row, col }, theme) {
  const { plot, rows, cols } = geometry;
  const lit = cellRect(geometry, row ?? 0, col ?? 0, row === null ? rows.count : 1, col === null ? cols.count : 1);
  const [wide, high] = [Math.max(0, (5 - lit.width) / 2), Math.max(0, (5 - lit.height) / 2)];
  pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, () => {
    for (const [colour, thickness] of /** @type {[string, number][]} */ ([[theme.halo, 3], [theme.text, 1]])) {
      pen.frame(lit.x - wide, lit.y - high, lit.width + 2 * wide, lit.height + 2 * high, colour, thickness);
    }
  });
  if (row !== null && inside(lit.y + lit.height / 2, rows)) rowChip(pen, geometry, row, theme, theme.text, theme.background);
  if (col !== null && inside(lit.x + lit.width / 2, cols)) colChip(pen, geometry, col, theme);
}

const inside = (/** @type {number} */ spot, /** @type {Axis} */ { start, length }) => spot > start && spot < start + length;

/**
 * Draw the row's token or index on the axis, in place of its label.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {number} row
 * @param {Theme} theme
 * @param {string} ground
 * @param {string} ink
 */
function rowChip(pen, { plot, rows }, row, theme, ground, ink) {
  const y = midOf(rows, row);
  const label = labelOf(pen, rows, row, rows.room, 11, 600);
  const wide = pen.measure(label, 11, 600) + 8;
  const high = rows.labels ? Math.min(16, Math.max(12, rows.cell)) : 16;
  for (const i of rows.labels ? [] : ticks(rows)) {
    const near = midOf(rows, i);
    if (Math.abs(near - y) < 15) pen.rect(plot.x - 5 - rows.room, near - 7, rows.room + 2, 14, theme.background);
  }
  pen.rect(plot.x - 3 - wide, y - high / 2, wide, high, ground);
  pen.text(label, plot.x - 7, y, { colour: ink, align: "right", weight: 600 });
}

/**
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {number} col
 * @param {Theme} theme
 */
function colChip(pen, { plot, cols }, col, theme) {
  const x = midOf(cols, col);
  const turned = cols.labels && !cols.flat;
  const label = labelOf(pen, cols, col, turned ? cols.room : 96, 11, 600);
  const wide = pen.measure(label, 11, 600) + 8;
  const style = { colour: theme.background, weight: 600 };
  if (turned) {
    const high = Math.min(16, Math.max(12, cols.cell));
    pen.rect(x - high / 2, plot.y - 3 - wide, high, wide, theme.text);
    pen.text(label, x, plot.y - 7, { ...style, turn: -90 });
    return;
  }
  const left = Math.min(x - wide / 2, plot.x + plot.width + 1 - wide);
  for (const j of cols.labels ? [] : ticks(cols)) {
    const near = midOf(cols, j);
    if (Math.abs(near - x) < wide / 2 + 16) pen.rect(near - 15, plot.y - 18, 30, 14, theme.background);
  }
  pen.rect(left, plot.y - 18, wide, 15, theme.text);
  pen.text(label, left + 4, plot.y - 10, style);
}
