// The visible part of the matrices, as fractions of their sides; panels of one shape share it. Also finds cells.
/** @import { Geometry, Panel, View } from "../messages" */
/** @import { Board } from "./board.js" */

import { clamp } from "../drawing/elements.js";
import { spans, strongestAt } from "../drawing/pen.js";

/** @type {View} */
export const CLEAR = { x: 0, y: 0, width: 1, height: 1 }; // the whole matrix

export class Views {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<string, View>} */
    this.byShape = new Map();
  }

  /** @param {Panel} panel */
  of(panel) {
    return this.byShape.get(panel.shape) ?? CLEAR;
  }

  get zoomed() {
    return [...this.byShape.values()].some((view) => view !== CLEAR);
  }

  /**
   * Delete the views of shapes that no longer exist.
   * @param {Panel[]} panels
   */
  keep(panels) {
    for (const shape of this.byShape.keys()) {
      if (!panels.some((panel) => panel.shape === shape)) this.byShape.delete(shape);
    }
  }

  /**
   * @param {Panel} panel
   * @param {View} view
   */
  lookAt(panel, { x, y, width, height }) {
    const whole = width >= 0.999 && height >= 0.999;
    const view = { x: clamp(x, 0, 1 - width), y: clamp(y, 0, 1 - height), width, height };
    this.byShape.set(panel.shape, whole ? CLEAR : view);
    this.board.schedule("paint");
  }

  reset() {
    this.byShape.clear();
    this.board.schedule("paint");
  }

  /**
   * Return the view's size after a zoom: at least four cells stay visible.
   * @param {Panel} panel
   * @param {number} factor
   */
  resized(panel, factor) {
    const { width, height } = this.of(panel);
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
    const view = this.of(panel);
    const before = this.onPlot(panel, panel.geometry, clientX, clientY);
    const [x, y] = [view.x + before.across * view.width, view.y + before.down * view.height];
    const size = this.resized(panel, factor);
    const { across, down } = this.onPlot(panel, this.board.geometryOf(panel, { x: 0, y: 0, ...size }), clientX, clientY);
    this.lookAt(panel, { x: x - across * size.width, y: y - down * size.height, ...size });
  }

  /**
   * Zoom without a pointer, around the current cell or the middle; all shapes on the board follow.
   * @param {number} factor
   */
  zoomAll(factor) {
    const { panels, cell, shape } = this.board;
    for (const panel of new Map(panels.map((one) => [one.shape, one])).values()) {
      const view = this.of(panel);
      const here = shape === panel.shape ? cell : null;
      const x = here ? (here.col + 0.5) / panel.cols : view.x + view.width / 2;
      const y = here ? (here.row + 0.5) / panel.rows : view.y + view.height / 2;
      const { width, height } = this.resized(panel, factor);
      const [across, down] = [(x - view.x) / view.width, (y - view.y) / view.height];
      this.lookAt(panel, { x: x - across * width, y: y - down * height, width, height });
    }
  }

  /**
   * Scroll a cell into view.
   * @param {Panel} panel
   * @param {number} row
   * @param {number} col
   */
  follow(panel, row, col) {
    const view = this.of(panel);
    /**
     * @param {number} start
     * @param {number} share
     * @param {number} index
     * @param {number} count
     */
    const near = (start, share, index, count) => clamp(start, (index + 1) / count - share, index / count);
    const x = near(view.x, view.width, col, panel.cols);
    const y = near(view.y, view.height, row, panel.rows);
    if (x !== view.x || y !== view.y) this.lookAt(panel, { ...view, x, y });
  }

  /**
   * Return a screen point's position on a panel's plot, as fractions of its sides.
   * @param {Panel} panel
   * @param {Geometry} geometry
   * @param {number} clientX
   * @param {number} clientY
   */
  onPlot(panel, { plot }, clientX, clientY) {
    const frame = panel.picture.getBoundingClientRect();
    return { across: (clientX - frame.x - plot.x) / plot.width, down: (clientY - frame.y - plot.y) / plot.height };
  }

  /**
   * Return the cell drawn at a screen point: if several share a pixel, the one that gave it its colour.
   * @param {Panel} panel
   * @param {number} clientX
   * @param {number} clientY
   */
  cellAt(panel, clientX, clientY) {
    const { across, down } = this.onPlot(panel, panel.geometry, clientX, clientY);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
    const view = this.of(panel);
    const pixels = Math.round(panel.geometry.plot.width * devicePixelRatio);
    const [left, right] = spans(panel.cols, view.x, view.width, pixels);
    const [top, bottom] = spans(panel.rows, view.y, view.height, pixels);
    const [x, y] = [Math.floor(across * pixels), Math.floor(down * pixels)];
    const at = strongestAt(panel.codes, panel.cols, top[y], bottom[y], left[x], right[x]);
    return { panel: this.board.panels.indexOf(panel), row: Math.floor(at / panel.cols), col: at % panel.cols };
  }
}
