// The tooltip that describes the cell under the pointer; screen readers get its text once the pointer rests.
/** @import { BoardSettings, Cell, Panel } from "../messages" */
/** @import { Board } from "./board.js" */

import { categoryName } from "../drawing/categories.js";
import { HALF, MASKED, formatNumber } from "../drawing/color.js";
import { clamp, make } from "../drawing/elements.js";
import { cellRect } from "../drawing/panel.js";

/**
 * Return a cell as text: its weight, or the name of its category.
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 * @param {BoardSettings} settings
 */
export function cellText(panel, row, col, settings) {
  const code = panel.codes[row * panel.cols + col];
  if (code === MASKED) return settings.texts.masked;
  if (settings.categories) return categoryName(code, panel.unit, settings);
  const size = code & 0x7fff; // codes below 1024 are subnormal numbers, which have fewer digits
  const value = HALF[settings.unsigned ? size : code] * panel.unit;
  const digits = size >= 1000 ? 3 : size >= 100 ? 2 : 1;
  return settings.percent ? `${formatNumber(100 * value, digits)}%` : formatNumber(value, digits);
}

export class Readout {
  /** @type {number | undefined} */
  announceTimer;

  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    this.tip = make("div", { class: "tip", hidden: "", "aria-hidden": "true" });
    this.live = make("div", { class: "live", role: "status", "aria-live": "polite" });
  }

  /** Show the board's cell, or nothing without a cell. */
  show() {
    const { cell, panels, settings } = this.board;
    clearTimeout(this.announceTimer);
    this.tip.hidden = !cell;
    if (!cell) return;
    const { texts } = settings;
    const panel = panels[cell.panel];
    /**
     * @param {string} name
     * @param {number} index
     * @param {string | undefined} label
     */
    const describe = (name, index, label) => [`${name} ${index}`, ...(label === undefined ? [] : [" “", make("bdi", {}, label), "”"])];
    const row = describe(panel.row_title ?? texts.row, cell.row, panel.rowLabels?.[cell.row]);
    const position = make("div", { class: "where" }, ...row, " → ", ...describe(panel.col_title ?? texts.col, cell.col, panel.colLabels?.[cell.col]));
    const text = cellText(panel, cell.row, cell.col, settings);
    const isPlain = settings.categories || text === texts.masked;
    // On a board with a scale per panel, the unit is the heading of all scales, such as "Blue: positive".
    const name = settings.scale === "panel" ? panel.title : texts.unit;
    const value = make("div", { class: "what" }, isPlain ? text : `${name} ${text}`);
    this.tip.replaceChildren(position, value);
    this.positionTip(panel, cell);
    this.announceTimer = setTimeout(() => {
      const linked = panels.filter((other) => other.shape === panel.shape);
      const values = linked.map((other) => `${other.title} ${cellText(other, cell.row, cell.col, settings)}`);
      this.live.textContent = `${position.textContent}: ${values.join(", ")}`;
    }, 200);
  }

  /**
   * @param {Panel} panel
   * @param {Cell} cell
   */
  positionTip(panel, { row, col }) {
    const { tip, board } = this;
    const { root } = board;
    const { plot } = panel.geometry;
    const box = cellRect(panel.geometry, row, col);
    const [frame, picture] = [root.getBoundingClientRect(), panel.picture.getBoundingClientRect()];
    const x = picture.x - frame.x + clamp(box.x + box.width / 2, plot.x, plot.x + plot.width);
    const y = picture.y - frame.y + clamp(box.y + box.height / 2, plot.y, plot.y + plot.height);
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const left = x + 16 + width > root.clientWidth ? x - 16 - width : x + 16;
    const above = board.input.isTouch || y + 16 + height > root.clientHeight; // above the finger, which hides what is below it
    tip.style.left = `${clamp(left, 0, Math.max(0, root.clientWidth - width))}px`;
    tip.style.top = `${above ? y - 16 - height : y + 16}px`;
  }

  destroy() {
    clearTimeout(this.announceTimer);
  }
}
