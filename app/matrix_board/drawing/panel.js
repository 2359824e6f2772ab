// Draws one panel of a board, which shows one matrix: its geometry, axes, cells and legend.
/** @import { Axis, Geometry, Appearance, Panel, Pen, Scale, View } from "../messages" */

import { fill } from "../../page_script/templates.js";
import { css, LOG_START, rampColours, tickMagnitudes, formatTick } from "./color.js";
import { truncate, wrapItems, widestLabel } from "./pen.js";

const NARROW = { left: 46, top: 32 }; // pixels of a margin with index ticks and the axis title
const TITLE_ROOM = 17; // pixels of a margin for the axis title
const LABEL_CELL = 9; // the smallest size in pixels of a cell with a token label
const NUMBER_SIZE = 12; // the font size of an axis with numbers
const LEGEND_HEIGHT = 44;
export const NAME_HEIGHT = 13; // the height of a legend that only names the quantity
const MIN_SHARE = 0.2; // the smallest side of a matrix on a panel with a `full_side`, as a share of that side
const MIN_NARROW = 120; // the smallest width in pixels for the legend of a matrix that is narrower than its panel
const MIN_BAR = 160; // the shortest colour bar in pixels, on which enough numbers fit

/** @typedef {{ masked: string | null, bare?: boolean }} LegendOptions */

/**
 * Return the height of a panel's drawing for a width. It does not depend on the data, so the layout is stable.
 * @param {number} width
 * @param {boolean} withLegend
 */
export const panelHeight = (width, withLegend) => width - NARROW.left + NARROW.top + 1 + (withLegend ? LEGEND_HEIGHT : 0);

/**
 * Return a panel's geometry: narrow margins for numbers, wide ones if token labels fit next to rows and columns. A side
 * with fewer cells than the panel's `full_side` is shorter than the panel.
 * @param {Pen} pen
 * @param {Panel} panel
 * @param {number} width
 * @param {View} view
 * @returns {Geometry}
 */
export function panelGeometry(pen, panel, width, view) {
  const { rows, cols, rowLabels, colLabels } = panel;
  const side = width - NARROW.left - 1;
  const [acrossShare, downShare] = [cols, rows].map((count) => (panel.full_side ? Math.max(MIN_SHARE, count / panel.full_side) : 1));
  const height = panelHeight(width, false);
  const fontOf = (/** @type {number} */ cell) => Math.min(13, Math.max(9, cell * 0.8));
  const maxRoom = Math.min(96, Math.max(40, 0.24 * width));
  const roomFor = (/** @type {string[] | undefined} */ labels, /** @type {number} */ cell) =>
    (labels ? Math.min(maxRoom, widestLabel(pen, labels, fontOf(cell))) : 0);
  const colCell = (side * acrossShare) / cols / view.width;
  const colRoom = roomFor(colLabels, colCell);
  const flat = view.width === 1 && colRoom + 8 < colCell; // few columns: their labels are not rotated
  const wideMargins = {
    left: Math.max(NARROW.left, TITLE_ROOM + 6 + roomFor(rowLabels, (side * downShare) / rows / view.height)),
    top: flat ? NARROW.top : Math.max(NARROW.top, TITLE_ROOM + 6 + colRoom),
  };
  const plotSize = (/** @type {number} */ left, /** @type {number} */ top) => {
    const [across, down] = [Math.floor(width - left - 1), Math.floor(height - top - 1)];
    return rows === cols ? [Math.min(across, down), Math.min(across, down)] : [across, down]; // square cells if possible
  };
  const [leastAcross, leastDown] = plotSize(wideMargins.left, wideMargins.top);
  const rowNames = (leastDown * downShare) / (rows * view.height) >= LABEL_CELL ? rowLabels : undefined;
  const colNames = (leastAcross * acrossShare) / (cols * view.width) >= LABEL_CELL ? colLabels : undefined;
  const [across, down] = plotSize((rowNames ? wideMargins : NARROW).left, (colNames ? wideMargins : NARROW).top);
  const plot = { x: width - 1 - across, y: height - 1 - down, width: Math.round(across * acrossShare), height: Math.round(down * downShare) };
  /**
   * @param {Pick<Axis, "start" | "length" | "count" | "from" | "share" | "labels">} axis
   * @param {number} margin pixels next to the plot for the axis
   */
  const addSizes = (axis, margin) => {
    const cell = axis.length / (axis.count * axis.share);
    return { ...axis, cell, room: margin - TITLE_ROOM - 5, size: axis.labels ? fontOf(cell) : NUMBER_SIZE };
  };
  const rowAxis = addSizes({ start: plot.y, length: plot.height, count: rows, from: view.y, share: view.height, labels: rowNames }, plot.x);
  const colAxis = addSizes({ start: plot.x, length: plot.width, count: cols, from: view.x, share: view.width, labels: colNames }, plot.y);
  const cellsPerPixel = (/** @type {Axis} */ { cell }) => Math.ceil(1 / (cell * pen.ratio) - 1e-6);
  const fullWidth = panel.full_side ? Math.max(plot.width, Math.min(across, MIN_NARROW)) : across;
  return { view, plot, fullWidth, rows: rowAxis, cols: { ...colAxis, flat }, pooled: cellsPerPixel(rowAxis) * cellsPerPixel(colAxis) };
}

/**
 * Return the width of a panel that is as narrow as its matrix and legend.
 * @param {Geometry} geometry
 */
export const panelWidth = ({ plot, fullWidth }) => plot.x + fullWidth + 1;

/**
 * Return the position of a row's upper or a column's left edge.
 * @param {Axis} axis
 * @param {number} index
 */
const edgeOf = ({ start, length, count, from, share }, index) => start + ((index / count - from) / share) * length;

/**
 * Return the position of the middle of a row or column on its axis.
 * @param {Axis} axis
 * @param {number} index
 */
export const middleOf = (axis, index) => edgeOf(axis, index + 0.5);

/**
 * Return the rectangle of a block of cells on the plot, before clipping.
 * @param {Geometry} geometry
 * @param {number} row
 * @param {number} col
 */
export function cellRect({ rows, cols }, row, col, down = 1, across = 1) {
  return { x: edgeOf(cols, col), y: edgeOf(rows, row), width: across * cols.cell, height: down * rows.cell };
}

/**
 * Return a row's or column's label, cut to a width, or its number.
 * @param {Pen} pen
 * @param {Axis} axis
 * @param {number} index
 * @param {number} width
 * @param {number} size
 * @param {number} [weight]
 */
export const labelOf = (pen, { labels }, index, width, size, weight) =>
  labels ? truncate(pen, labels[index] ?? "", width, size, weight) : String(index);

// for example 书₂ (3): the second token of a character, and the third token with this label
const LABEL = /^(.+?)([₀-₉]*)(?: \(\d+\))?$/su;

/** @param {string} label */
function parseLabel(label) {
  const [, character = label, digits = ""] = LABEL.exec(label) ?? [];
  return { character, number: digits ? [...digits].reduce((sum, digit) => 10 * sum + "₀₁₂₃₄₅₆₇₈₉".indexOf(digit), 0) : 1 };
}

/**
 * Return the index of a character's last token. A tokenizer may split a character into several tokens (labels 书, 书₂).
 * `index` is the character's first token; for any other token of a character, return -1.
 * @param {string[]} labels
 * @param {number} index
 */
export function lastTokenOfCharacter(labels, index) {
  const own = parseLabel(labels[index] ?? "");
  const isPart = (/** @type {number} */ otherIndex, /** @type {number} */ number) => {
    const other = parseLabel(labels[otherIndex] ?? "");
    return other.character === own.character && other.number === number;
  };
  if (own.number > 1 && isPart(index - own.number + 1, 1) && isPart(index - 1, own.number - 1)) return -1;
  let last = index;
  while (own.number === 1 && isPart(last + 1, last - index + 2)) last++;
  return last;
}

/**
 * Return the indices with a label on an axis: all if tokens fit, else round numbers.
 * @param {Axis} axis
 */
export function ticks({ count, from, share, cell, labels }) {
  const first = Math.max(0, Math.ceil(from * count - 0.5));
  const last = Math.min(count - 1, Math.floor((from + share) * count - 0.5));
  const minStep = labels ? 1 : 34 / cell;
  let step = 1;
  for (let k = 0; step < minStep; k++) step = [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3);
  const indices = [];
  for (let i = Math.ceil(first / step) * step; i <= last; i += step) indices.push(i);
  return indices;
}

/**
 * Draw the title of the rows from top to bottom, with an arrow. Chinese characters stay upright, as in vertical writing.
 * @param {Pen} pen
 * @param {string} title
 * @param {number} x
 * @param {number} y
 * @param {string} colour
 */
function drawRowTitle(pen, title, x, y, colour) {
  const upright = /^\p{Script=Han}+$/u.test(title) ? [...title] : [];
  upright.forEach((each, i) => pen.text(each, x, y + 6 + 12 * i, { colour, weight: 600, align: "center" }));
  const turnedText = upright.length ? "→" : `${title} →`;
  pen.text(turnedText, x, y + 12 * upright.length + (upright.length && 3), { colour, weight: 600, rotation: 90 });
}

/**
 * Draw a panel without its title: axes, hatch, matrix, frame, and a legend if the panel has its own scale.
 * @param {Pen} pen
 * @param {Panel} panel
 * @param {Geometry} geometry
 * @param {Appearance} appearance
 */
export function drawPanel(pen, panel, geometry, appearance) {
  const { plot, fullWidth, rows, cols } = geometry;
  const { theme, palette, texts } = appearance;
  pen.hatch(plot.x, plot.y, plot.width, plot.height, palette.hatch);
  pen.matrix(panel, appearance.table(panel), geometry.view, plot);
  drawBorders(pen, panel, geometry, theme.muted);
  pen.frame(plot.x - 0.5, plot.y - 0.5, plot.width + 1, plot.height + 1, theme.border);
  pen.text(`${panel.col_title ?? texts.cols} →`, plot.x, 7, { colour: theme.muted, weight: 600 });
  if (!panel.repeats) drawRowTitle(pen, panel.row_title ?? texts.rows, plot.x - rows.room - 15, plot.y, theme.muted);
  for (const i of ticks(rows)) {
    const last = rows.labels ? lastTokenOfCharacter(rows.labels, i) : i;
    if (last < i) continue;
    // at the first token's row, because the pinned row's chip covers the labels of one row only
    const y = middleOf(rows, i);
    if (last > i) pen.line(plot.x - 3, y, plot.x - 3, middleOf(rows, last), theme.muted);
    pen.line(plot.x - 4, y, plot.x - 1, y, theme.border);
    pen.text(labelOf(pen, rows, i, rows.room, rows.size), plot.x - 6, y, { colour: theme.muted, align: "right", size: rows.size });
  }
  const turned = cols.labels && !cols.flat;
  for (const j of ticks(cols)) {
    const last = cols.labels ? lastTokenOfCharacter(cols.labels, j) : j;
    if (last < j) continue;
    const x = middleOf(cols, j);
    if (last > j) pen.line(x, plot.y - 3, middleOf(cols, last), plot.y - 3, theme.muted);
    pen.line(x, plot.y - 4, x, plot.y - 1, theme.border);
    const label = labelOf(pen, cols, j, turned ? cols.room : cols.cell, cols.size);
    const style = { colour: theme.muted, size: cols.size };
    if (turned) pen.text(label, x, plot.y - 6, { ...style, rotation: -90 });
    else {
      const beyond = Math.max(0, x + pen.measure(label, cols.size) / 2 - (plot.x + plot.width + 1));
      pen.text(label, x - beyond, plot.y - 11, { ...style, align: "center" });
    }
  }
  if (appearance.ownScale && panel.scale_panel) {
    pen.text(truncate(pen, fill(texts.same_scale, { panel: panel.scale_panel }), fullWidth), plot.x, plot.y + plot.height + 15, { colour: theme.muted });
  } else if (appearance.ownScale) {
    const masked = panel.masked ? texts.masked : null;
    drawLegend(pen, plot.x, plot.y + plot.height + 6, fullWidth, appearance.scale(panel), appearance, { masked, bare: true });
  }
}

/**
 * Draw lines between groups of rows and columns.
 * @param {Pen} pen
 * @param {Panel} panel
 * @param {Geometry} geometry
 * @param {string} colour
 */
function drawBorders(pen, panel, geometry, colour) {
  if (!panel.borders.length) return;
  const { x, y, width, height } = geometry.plot;
  pen.clip(x, y, width, height, () => {
    for (const i of panel.borders) {
      const corner = cellRect(geometry, i, i);
      pen.line(x, corner.y, x + width, corner.y, colour, 0.5);
      pen.line(corner.x, y, corner.x, y + height, colour, 0.5);
    }
  });
}

/**
 * Return texts and colours for values beyond the ends of a scale; null for an end without such values.
 * @param {Scale} scale
 * @param {Appearance} appearance
 */
export function beyondItems({ top, over, under }, { texts, palette, percent }) {
  const fillTemplate = (/** @type {string} */ template, /** @type {number} */ end, /** @type {number} */ largest) =>
    fill(template, { end: formatTick(end, percent), most: formatTick(largest, percent) });
  return [
    over ? { text: fillTemplate(texts.over, top, over), colour: css(palette.over) } : null,
    under ? { text: fillTemplate(texts.under, -top, under), colour: css(palette.under) } : null,
  ].filter((each) => each !== null);
}

/**
 * Return the positions in a scale's legend: swatches are next to the bar, or below it if they do not fit.
 * @param {Pen} pen
 * @param {number} width
 * @param {Scale} scale
 * @param {Appearance} appearance
 * @param {LegendOptions} options
 */
export function legendLayout(pen, width, scale, appearance, { masked, bare = false }) {
  const names = [...beyondItems(scale, appearance).map(({ text }) => text), ...(masked ? [masked] : [])];
  const longest = bare ? Infinity : scale.signed ? 360 : 280;
  const swatches = names.map((name) => ({ length: 19 + pen.measure(name), gap: 16 }));
  const beside = wrapItems(swatches, Infinity);
  if (bare || width - beside.width >= MIN_BAR) {
    const bar = Math.min(longest, width - beside.width);
    const positions = beside.positions.map(({ x, y }) => ({ x: x + bar + 16, y }));
    return { bar, positions, width: bar + 16 + beside.width, height: LEGEND_HEIGHT };
  }
  const below = wrapItems(swatches, width);
  const positions = below.positions.map(({ x, y }) => ({ x, y: y + LEGEND_HEIGHT - 13 }));
  return { bar: Math.min(longest, width), positions, width, height: LEGEND_HEIGHT + 4 + below.height };
}

/**
 * Draw a bar with numbers, values beyond its ends, and a masked cell. `bare` omits the name.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {Scale} scale
 * @param {Appearance} appearance
 * @param {LegendOptions} options
 */
export function drawLegend(pen, x, y, width, scale, appearance, options) {
  const { theme, palette } = appearance;
  const { masked, bare = false } = options;
  const { bar, positions } = legendLayout(pen, width, scale, appearance, options);
  const top = bare ? y + 4 : y + 17;
  if (!bare) pen.text(truncate(pen, legendName(scale, appearance), width, 11, 600), x, y + 6, { colour: theme.muted, weight: 600 });
  drawBar(pen, x, top, bar, scale, appearance);
  const beyond = beyondItems(scale, appearance);
  positions.forEach((position, i) => {
    const [left, high] = [x + position.x, top + position.y];
    if (i < beyond.length) pen.rect(left, high, 14, 10, beyond[i].colour);
    else pen.hatch(left, high, 14, 10, palette.hatch);
    pen.frame(left + 0.5, high + 0.5, 13, 9, theme.border);
    pen.text(beyond[i]?.text ?? masked ?? "", left + 19, high + 5, { colour: theme.muted });
  });
}

/**
 * @param {Pick<Scale, "transform">} scale
 * @param {Appearance} appearance
 */
export const legendName = ({ transform }, { texts }) => [texts.unit, texts.transforms[transform]].filter(Boolean).join(" · ");

/**
 * Return the notes under the panels; `pooled` is the largest number of cells that share a pixel.
 * @param {number} pooled
 * @param {Appearance} appearance
 */
export const noteText = (pooled, { texts }) =>
  [pooled > 1 && fill(texts.pooled, { count: String(pooled) }), texts.note].filter(Boolean).join(" ");

/**
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {Scale} scale
 * @param {Appearance} appearance
 */
function drawBar(pen, x, y, width, scale, { theme, palette, unsigned, percent }) {
  const hasZeroBox = scale.transform === "log" && !scale.signed; // a logarithmic axis has no zero, so zero has a box next to it
  const start = x + (hasZeroBox ? 20 : 0);
  const length = width - (hasZeroBox ? 20 : 0);
  const colours = rampColours(scale, palette);
  pen.gradient(start, y, length, 10, hasZeroBox ? colours.slice(Math.round(255 * LOG_START)) : colours);
  pen.frame(start + 0.5, y + 0.5, length - 1, 9, theme.border);
  if (hasZeroBox) {
    pen.rect(x, y, 14, 10, css(colours[0]));
    pen.frame(x + 0.5, y + 0.5, 13, 9, theme.border);
  }
  const xOf = (/** @type {number} */ position, /** @type {1 | -1} */ sign) => {
    if (scale.signed) return start + (length * (1 + sign * position)) / 2;
    return start + (hasZeroBox ? length * Math.max(0, (position - LOG_START) / (1 - LOG_START)) : length * position);
  };
  const barTicks = [{ tickX: scale.signed ? xOf(0, 1) : hasZeroBox ? x + 7 : start, label: "0" }];
  for (const magnitude of tickMagnitudes(scale)) {
    const under = hasZeroBox && magnitude === scale.floor && scale.smallest < scale.floor ? "≤" : "";
    const position = scale.position(magnitude);
    barTicks.push({ tickX: xOf(position, 1), label: under + formatTick(magnitude, percent) });
    if (scale.signed) barTicks.push({ tickX: xOf(position, -1), label: formatTick(unsigned ? magnitude : -magnitude, percent) });
  }
  /** @type {[number, number][]} */
  const usedSpans = [];
  for (const { tickX, label } of barTicks) {
    const labelWidth = pen.measure(label);
    const left = Math.min(x + width - labelWidth, Math.max(label === "0" ? x : start, tickX - labelWidth / 2));
    if (usedSpans.some(([from, to]) => left < to + 7 && left + labelWidth > from - 7)) continue;
    usedSpans.push([left, left + labelWidth]);
    pen.line(tickX, y + 10, tickX, y + 13, theme.border);
    pen.text(label, left, y + 20, { colour: theme.text });
  }
}
