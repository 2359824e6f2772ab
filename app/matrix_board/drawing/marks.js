// The moving marks of a panel: the pinned row and the crosshair.
/** @import { Band, Cell, Geometry, Panel, Pen, Theme, View } from "../messages" */

import { cellRect, labelAt, midOf, ticks } from "./panel.js";
import { fitted } from "./pen.js";

const HALOED = 5; // height in pixels from which a row has room for the halo of its outline

/**
 * Draw the pinned row and the crosshair over the matrix.
 * @param {Pen} pen
 * @param {Panel} panel
 * @param {Geometry} geometry
 * @param {View} view
 * @param {{ pinned: number | null, cell: Cell | null }} marks
 * @param {Theme} theme
 */
export function drawMarks(pen, panel, geometry, view, { pinned, cell }, theme) {
  const { plot } = geometry;
  const within = (/** @type {() => void} */ draw) => pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, draw);
  const haloed = (/** @type {(colour: string, thickness: number) => void} */ draw) => {
    draw(theme.halo, 3);
    draw(theme.muted, 1);
  };
  if (pinned !== null) {
    const band = cellRect(geometry, panel, view, pinned, 0, 1, panel.cols);
    within(() => {
      // The halo would cover the weights of a thin row.
      if (band.height >= HALOED) pen.frame(plot.x - 1, band.y - 1, plot.width + 2, band.height + 2, theme.halo, 3);
      pen.frame(plot.x - 1, band.y - 1, plot.width + 2, band.height + 2, theme.mark, 1);
    });
    if (inside(band.y + band.height / 2, plot.y, plot.height)) {
      rowChip(pen, geometry, panel, pinned, view, theme, theme.mark, theme.onMark);
    }
  }
  if (cell) {
    const spot = cellRect(geometry, panel, view, cell.row, cell.col);
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
    if (cell.row !== pinned && inside(midY, plot.y, plot.height)) {
      rowChip(pen, geometry, panel, cell.row, view, theme, theme.text, theme.background);
    }
    if (inside(midX, plot.x, plot.width)) colChip(pen, geometry, panel, cell.col, view, theme);
  }
}

/**
 * Highlight the row or column of a token that is pointed at elsewhere.
 * @param {Pen} pen
 * @param {Panel} panel
 * @param {Geometry} geometry
 * @param {View} view
 * @param {Band} band
 * @param {Theme} theme
 */
export function drawBand(pen, panel, geometry, view, { row, col }, theme) {
  const { plot } = geometry;
  const lit = cellRect(geometry, panel, view, row ?? 0, col ?? 0, row === null ? panel.rows : 1, col === null ? panel.cols : 1);
  const [wide, high] = [Math.max(0, (5 - lit.width) / 2), Math.max(0, (5 - lit.height) / 2)];
  pen.clip(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4, () => {
    for (const [colour, thickness] of /** @type {[string, number][]} */ ([[theme.halo, 3], [theme.text, 1]])) {
      pen.frame(lit.x - wide, lit.y - high, lit.width + 2 * wide, lit.height + 2 * high, colour, thickness);
    }
  });
  if (row !== null && inside(lit.y + lit.height / 2, plot.y, plot.height)) {
    rowChip(pen, geometry, panel, row, view, theme, theme.text, theme.background);
  }
  if (col !== null && inside(lit.x + lit.width / 2, plot.x, plot.width)) colChip(pen, geometry, panel, col, view, theme);
}

/**
 * @param {number} spot
 * @param {number} start
 * @param {number} length
 */
const inside = (spot, start, length) => spot > start && spot < start + length;

/**
 * Draw the row's token or index on the axis, in place of its label.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {Panel} panel
 * @param {number} row
 * @param {View} view
 * @param {Theme} theme
 * @param {string} ground
 * @param {string} ink
 */
function rowChip(pen, geometry, panel, row, view, theme, ground, ink) {
  const { plot, rows } = geometry;
  const y = midOf(plot.y, plot.height, row, panel.rows, view.y, view.height);
  const label = rows.named ? fitted(pen, labelAt(panel.rowLabels, row), rows.room, 11, 600) : String(row);
  const wide = pen.measure(label, 11, 600) + 8;
  const high = rows.named ? Math.min(16, Math.max(12, rows.cell)) : 16;
  if (!rows.named) {
    for (const i of ticks(rows, panel.rows, view.y, view.height)) {
      const near = midOf(plot.y, plot.height, i, panel.rows, view.y, view.height);
      if (Math.abs(near - y) < 15) pen.rect(plot.x - 5 - rows.room, near - 7, rows.room + 2, 14, theme.background);
    }
  }
  pen.rect(plot.x - 3 - wide, y - high / 2, wide, high, ground);
  pen.text(label, plot.x - 7, y, { colour: ink, align: "right", weight: 600 });
}

/**
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {Panel} panel
 * @param {number} col
 * @param {View} view
 * @param {Theme} theme
 */
function colChip(pen, geometry, panel, col, view, theme) {
  const { plot, cols } = geometry;
  const x = midOf(plot.x, plot.width, col, panel.cols, view.x, view.width);
  const turned = cols.named && !cols.flat;
  const label = cols.named ? fitted(pen, labelAt(panel.colLabels, col), turned ? cols.room : 96, 11, 600) : String(col);
  const wide = pen.measure(label, 11, 600) + 8;
  const style = { colour: theme.background, weight: 600 };
  if (turned) {
    const high = Math.min(16, Math.max(12, cols.cell));
    pen.rect(x - high / 2, plot.y - 3 - wide, high, wide, theme.text);
    pen.text(label, x, plot.y - 7, { ...style, turn: -90 });
    return;
  }
  const left = Math.min(x - wide / 2, plot.x + plot.width + 1 - wide);
  for (const j of cols.named ? [] : ticks(cols, panel.cols, view.x, view.width)) {
    const near = midOf(plot.x, plot.width, j, panel.cols, view.x, view.width);
    if (Math.abs(near - x) < wide / 2 + 16) pen.rect(near - 15, plot.y - 18, 30, 14, theme.background);
  }
  pen.rect(left, plot.y - 18, wide, 15, theme.text);
  pen.text(label, left + 4, plot.y - 10, style);
}
