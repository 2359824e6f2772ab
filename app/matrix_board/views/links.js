// Linked highlights: a token or landmark that is pointed at is highlighted on every axis and in texts.
/** @import { Band, BoardTexts, Cell, Panel, Things } from "../messages" */

export const POINTED = "attention-lab.pointed";

/**
 * Return descriptions of a panel's rows and columns; equal descriptions mean equal things.
 * @param {Panel} panel
 * @param {BoardTexts} texts
 * @returns {[rows: Things, cols: Things]}
 */
export function thingsOf(panel, texts) {
  const of = (/** @type {string} */ title, /** @type {number} */ count, /** @type {string[]} */ labels = []) => ({
    count,
    named: labels.length > 0,
    says: [title, count, ...labels].join("\n"),
  });
  return [of(panel.row_title ?? texts.row, panel.rows, panel.rowLabels), of(panel.col_title ?? texts.col, panel.cols, panel.colLabels)];
}

/**
 * Return the rows and columns of a panel that represent the cell pointed at in another panel.
 * @param {Panel} pointed
 * @param {Cell} cell
 * @param {Panel} panel
 * @param {BoardTexts} texts
 * @returns {Band[]}
 */
export function bandsOf(pointed, { row, col }, panel, texts) {
  const [rows, cols] = thingsOf(panel, texts);
  const [ownRows, ownCols] = thingsOf(pointed, texts);
  /** @type {Band[]} */
  const found = [];
  for (const { says, at } of [{ ...ownRows, at: row }, { ...ownCols, at: col }]) {
    if (says === rows.says) found.push({ row: at, col: null });
    if (says === cols.says) found.push({ row: null, col: at });
  }
  return found;
}

/**
 * Return the rows and columns of a panel that represent a token pointed at in a text.
 * @param {Panel} panel
 * @param {{ count: number, at: number }} token
 * @param {BoardTexts} texts
 * @returns {Band[]}
 */
export function bandsOfToken(panel, { count, at }, texts) {
  const [rows, cols] = thingsOf(panel, texts).map((things) => things.named && things.count === count);
  return [...(rows ? [{ row: at, col: null }] : []), ...(cols ? [{ row: null, col: at }] : [])];
}

/** Report the token pointed at in texts with numbered tokens, and highlight tokens that boards point at. */
export function linkTexts() {
  addEventListener("pointerover", ({ target }) => {
    const token = target instanceof Element ? target.closest("[data-token]") : null;
    const text = token?.closest("[data-tokens]");
    const pointed = text && { count: Number(text.getAttribute("data-tokens")), at: Number(token?.getAttribute("data-token")) };
    dispatchEvent(new CustomEvent(POINTED, { detail: { token: pointed ?? null } }));
  });
  addEventListener(POINTED, (event) => {
    const { axes } = /** @type {CustomEvent} */ (event).detail;
    if (!axes) return;
    for (const lit of document.querySelectorAll("[data-token][data-lit]")) lit.removeAttribute("data-lit");
    for (const { things, at } of /** @type {{ things: Things, at: number }[]} */ (axes)) {
      if (!things.named) continue;
      for (const token of document.querySelectorAll(`[data-tokens="${things.count}"] [data-token="${at}"]`)) {
        token.setAttribute("data-lit", "");
      }
    }
  });
}
