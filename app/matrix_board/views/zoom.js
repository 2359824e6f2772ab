// The view: the visible part of a board's matrices after zooming, as fractions of their sides. Panels of the same shape
// have the same view. Also finds the cell at a point of the screen.
/** @import { Geometry, Panel, View } from "../messages" */
/** @import { Board } from "./board.js" */

import { clamp } from "../drawing/elements.js";
import { cellSpans, findStrongest } from "../drawing/pen.js";

/** @type {View} */
export const WHOLE_VIEW = { x: 0, y: 0, width: 1, height: 1 }; // the whole matrix

export class Views {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<string, View>} */
    this.byShape = new Map();
  }

  /** @param {Panel} panel */
  viewOf(panel) {
    return this.byShape.get(panel.shape) ?? WHOLE_VIEW;
  }

  get isZoomed() {
    return [...this.byShape.values()].some((view) => view !== WHOLE_VIEW);
  }

  /**
   * Delete the views of shapes that no longer exist.
   * @param {Panel[]} panels
   */
  removeUnused(panels) {
    for (const shape of this.byShape.keys()) {
      if (!panels.some((panel) => panel.shape === shape)) this.byShape.delete(shape);
    }
  }

  /**
   * @param {Panel} panel
   * @param {View} view
   */
  setView(panel, { x, y, width, height }) {
    const isWhole = width >= 0.999 && height >= 0.999;
    const view = { x: clamp(x, 0, 1 - width), y: clamp(y, 0, 1 - height), width, height };
    this.byShape.set(panel.shape, isWhole ? WHOLE_VIEW : view);
    this.board.schedule("paint");
  }

  resetViews() {
    this.byShape.clear();
    this.board.schedule("paint");
  }

  /**
   * Return the view's size after a zoom: at least four cells stay visible.
   * @param {Panel} panel
   * @param {number} factor
   */
  resize(panel, factor) {
    const { width, height } = this.viewOf(panel);
    return {
      width: clamp(width / factor, Math.min(1, 4 / panel.cols), 1),
      height: clamp(height / factor, Math.min(1, 4 / panel.rows), 1),
    };
  }

  /**
   * Zoom so that the point under the pointer stays in place, although labels may move the plot.
   * @param {Panel} panel
   * @param {number} factor
   * @param {number} clientX
   * @param {number} clientY
   */
  zoomAt(panel, factor, clientX, clientY) {
    const view = this.viewOf(panel);
    const pointer = this.plotPosition(panel, panel.geometry, clientX, clientY);
    const [x, y] = [view.x + pointer.across * view.width, view.y + pointer.down * view.height];
    const size = this.resize(panel, factor);
    const { across, down } = this.plotPosition(panel, this.board.geometryOf(panel, { x: 0, y: 0, ...size }), clientX, clientY);
    this.setView(panel, { x: x - across * size.width, y: y - down * size.height, ...size });
  }

  /**
   * Zoom the views of all panels without a pointer: around the current cell in panels of the same shape as its panel,
   * else around the pinned row, else around the middle.
   * @param {number} factor
   */
  zoomAll(factor) {
    const { board } = this;
    const { panels, cell, activeShape, pinned } = board;
    for (const panel of new Map(panels.map((other) => [other.shape, other])).values()) {
      const view = this.viewOf(panel);
      const activeCell = activeShape === panel.shape ? cell : null;
      const row = activeCell?.row ?? (board.hasPinnedRow(panel) ? pinned : null);
      const y = row === null ? view.y + view.height / 2 : (row + 0.5) / panel.rows;
      // The largest weights of a row are often near the diagonal.
      const x = activeCell ? (activeCell.col + 0.5) / panel.cols : row === null ? view.x + view.width / 2 : y;
      const { width, height } = this.resize(panel, factor);
      const [across, down] = [(x - view.x) / view.width, (y - view.y) / view.height];
      this.setView(panel, { x: x - across * width, y: y - down * height, width, height });
    }
  }

  /**
   * Scroll a cell into view.
   * @param {Panel} panel
   * @param {number} row
   * @param {number} col
   */
  scrollTo(panel, row, col) {
    const view = this.viewOf(panel);
    /**
     * @param {number} start
     * @param {number} share
     * @param {number} index
     * @param {number} count
     */
    const nearestStart = (start, share, index, count) => clamp(start, (index + 1) / count - share, index / count);
    const x = nearestStart(view.x, view.width, col, panel.cols);
    const y = nearestStart(view.y, view.height, row, panel.rows);
    if (x !== view.x || y !== view.y) this.setView(panel, { ...view, x, y });
  }

  /**
   * Return a screen point's position on a panel's plot, as fractions of its sides.
   * @param {Panel} panel
   * @param {Geometry} geometry
   * @param {number} clientX
   * @param {number} clientY
   */
  plotPosition(panel, { plot }, clientX, clientY) {
    const frame = panel.picture.getBoundingClientRect();
    return { across: (clientX - frame.x - plot.x) / plot.width, down: (clientY - frame.y - plot.y) / plot.height };
  }

  /**
   * Return the cell drawn at a point of the screen. If several cells share a pixel, it is the cell whose colour is drawn.
   * @param {Panel} panel
   * @param {number} clientX
   * @param {number} clientY
   */
  cellAt(panel, clientX, clientY) {
    const { across, down } = this.plotPosition(panel, panel.geometry, clientX, clientY);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
    const view = this.viewOf(panel);
    const { plot } = panel.geometry;
    const [wide, high] = [plot.width, plot.height].map((length) => Math.round(length * devicePixelRatio));
    const [left, right] = cellSpans(panel.cols, view.x, view.width, wide);
    const [top, bottom] = cellSpans(panel.rows, view.y, view.height, high);
    const [x, y] = [Math.floor(across * wide), Math.floor(down * high)];
    const index = findStrongest(panel.codes, panel.cols, top[y], bottom[y], left[x], right[x]);
    return { panel: this.board.panels.indexOf(panel), row: Math.floor(index / panel.cols), col: index % panel.cols };
  }
}
