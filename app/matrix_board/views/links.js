// Linked highlights: the token under the pointer is highlighted on the axes of all panels of a board, and in texts.
/** @import { Band, BoardTexts, Cell, Panel, AxisDescription } from "../messages" */

export const POINTED = "attention-lab.pointed";

/**
 * Return descriptions of a panel's rows and columns; axes with equal descriptions have the same tokens.
 * @param {Panel} panel
 * @param {BoardTexts} texts
 * @returns {[rows: AxisDescription, cols: AxisDescription]}
 */
export function describeAxes(panel, texts) {
  const describe = (/** @type {string} */ title, /** @type {number} */ count, /** @type {string[]} */ labels = []) => ({
    count,
    hasLabels: labels.length > 0,
    identity: [title, count, ...labels].join("\n"),
  });
  return [describe(panel.row_title ?? texts.row, panel.rows, panel.rowLabels), describe(panel.col_title ?? texts.col, panel.cols, panel.colLabels)];
}

/**
 * Return the rows and columns of a panel that have the tokens of the cell under the pointer in another panel.
 * @param {Panel} pointed
 * @param {Cell} cell
 * @param {Panel} panel
 * @param {BoardTexts} texts
 * @returns {Band[]}
 */
export function bandsOf(pointed, { row, col }, panel, texts) {
  const [rows, cols] = describeAxes(panel, texts);
  const [ownRows, ownCols] = describeAxes(pointed, texts);
  /** @type {Band[]} */
  const bands = [];
  for (const { identity, index } of [{ ...ownRows, index: row }, { ...ownCols, index: col }]) {
    if (identity === rows.identity) bands.push({ row: index, col: null });
    if (identity === cols.identity) bands.push({ row: null, col: index });
  }
  return bands;
}

/**
 * Return the rows and columns of a panel that have the token under the pointer in a text.
 * @param {Panel} panel
 * @param {{ count: number, index: number }} token
 * @param {BoardTexts} texts
 * @returns {Band[]}
 */
export function bandsOfToken(panel, { count, index }, texts) {
  const [rows, cols] = describeAxes(panel, texts).map((axis) => axis.hasLabels && axis.count === count);
  return [...(rows ? [{ row: index, col: null }] : []), ...(cols ? [{ row: null, col: index }] : [])];
}

/** In texts with numbered tokens, report the token under the pointer, and highlight the tokens that boards report. */
export function linkTexts() {
  addEventListener("pointerover", ({ target }) => {
    const token = target instanceof Element ? target.closest("[data-token]") : null;
    const text = token?.closest("[data-tokens]");
    const pointed = text && { count: Number(text.getAttribute("data-tokens")), index: Number(token?.getAttribute("data-token")) };
    dispatchEvent(new CustomEvent(POINTED, { detail: { token: pointed ?? null } }));
  });
  addEventListener(POINTED, (event) => {
    const { axes } = /** @type {CustomEvent} */ (event).detail;
    if (!axes) return;
    for (const highlighted of document.querySelectorAll("[data-token][data-lit]")) highlighted.removeAttribute("data-lit");
    for (const { axis, index } of /** @type {{ axis: AxisDescription, index: number }[]} */ (axes)) {
      if (!axis.hasLabels) continue;
      for (const token of document.querySelectorAll(`[data-tokens="${axis.count}"] [data-token="${index}"]`)) {
        token.setAttribute("data-lit", "");
      }
    }
  });
}
