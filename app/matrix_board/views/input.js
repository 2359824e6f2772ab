// Pointer and keyboard input on a board of matrices: point, pin, drag, pinch, wheel and keys.
/** @import { Panel, View } from "../messages" */
/** @import { Board } from "./board.js" */

import { boardPng, boardSvg, download } from "../drawing/export.js";
import { clamp, listenTo, runKeyAction } from "../drawing/elements.js";
import { WHOLE_VIEW } from "./zoom.js";

const SAME_SPOT = 24; // a second tap within this many pixels is on the first tap's cell, because fingers are wider than cells
const DOUBLE_CLICK = 250; // milliseconds before a click is reported, because it may be the first of a double click

/** @typedef {{ panel: Panel, x: number, y: number, view: View | null, hasMoved: boolean }} Drag */

export class PointerInput {
  isTouch = false; // whether the last input was a finger or a stylus
  /** @type {Drag | undefined} */
  drag;
  /** @type {PointerEvent | undefined} */
  lastTap;
  /** @type {number | null} */
  pinBeforeClick = null;

  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<number, PointerEvent>} */
    this.pointers = new Map(); // the pointers that are down, by id
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    const listen = listenTo(board.grid, signal);
    listen("pointerdown", (event) => this.pointerDown(event));
    listen("pointermove", (event) => this.pointerMove(event));
    listen("pointerup", (event) => this.pointerUp(event));
    listen("pointercancel", (event) => this.removePointer(event));
    listen("pointerleave", (event) => {
      if (event.pointerType === "mouse") board.setCell(null);
    });
    listen("mousedown", (event) => {
      if (event.detail === 1) this.pinBeforeClick = board.pinned; // restored if this is the first click of a double click
    });
    listen("dblclick", (event) => this.doubleClick(event));
    listen("wheel", (event) => this.zoomByWheel(event), { passive: false });
    listen("keydown", (event) => this.handleKey(event));
    const onPress = (/** @type {Event} */ event) => this.handlePress(/** @type {Element} */ (event.target).closest("[data-act]"));
    board.buttons.addEventListener("click", onPress, { signal });
    listen("click", onPress);
  }

  /** @param {Event} event */
  panelOf({ target }) {
    const plot = target instanceof Element && target.closest(".plot");
    return plot ? this.board.panels?.find((panel) => panel.picture.parentElement === plot && panel.geometry) : undefined;
  }

  /** @param {PointerEvent} event */
  pointerDown(event) {
    const { board } = this;
    const panel = this.panelOf(event);
    if (!panel || event.button) return;
    this.isTouch = event.pointerType !== "mouse";
    this.pointers.set(event.pointerId, event);
    const { clientX: x, clientY: y } = event;
    if (this.pointers.size === 2) {
      this.drag = { panel, x, y, view: null, hasMoved: true };
      return;
    }
    this.drag = { panel, x, y, view: board.views.viewOf(panel), hasMoved: false };
  }

  /** @param {PointerEvent} event */
  pointerMove(event) {
    if (!event.buttons) this.removePointer(event); // released outside the board
    const { board, drag } = this;
    if (!drag || !this.pointers.has(event.pointerId)) {
      const panel = this.panelOf(event);
      if (event.pointerType === "mouse") {
        this.isTouch = false;
        board.setCell(panel ? board.views.cellAt(panel, event.clientX, event.clientY) : null);
      }
      return;
    }
    const previous = [...this.pointers.values()];
    this.pointers.set(event.pointerId, event);
    const [a, b] = this.pointers.values();
    if (this.pointers.size === 2) {
      const distance = (/** @type {PointerEvent[]} */ [one, other]) =>
        Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      board.views.zoomAt(drag.panel, distance([a, b]) / distance(previous), (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.hasMoved && Math.hypot(dx, dy) > 5) {
      drag.hasMoved = true;
      board.grid.setPointerCapture(event.pointerId);
    }
    if (drag.hasMoved && drag.view && drag.view !== WHOLE_VIEW) {
      const { panel, view } = drag;
      const { width, height } = panel.geometry.plot;
      board.views.setView(panel, { ...view, x: view.x - (dx / width) * view.width, y: view.y - (dy / height) * view.height });
    }
  }

  /** @param {PointerEvent} event */
  pointerUp(event) {
    const { board, drag } = this;
    const isSinglePointer = this.pointers.size === 1;
    this.removePointer(event);
    if (!isSinglePointer || !drag || drag.hasMoved) return;
    const cell = board.views.cellAt(drag.panel, event.clientX, event.clientY);
    if (!cell) return;
    if (!this.isTouch) {
      board.setCell(cell);
      board.pin(drag.panel, cell.row, DOUBLE_CLICK);
      return;
    }
    const tapDistance = this.lastTap && Math.hypot(event.clientX - this.lastTap.clientX, event.clientY - this.lastTap.clientY);
    if (board.cell && board.cell.panel === cell.panel && tapDistance !== undefined && tapDistance < SAME_SPOT) {
      board.pin(drag.panel, board.cell.row);
    } else {
      this.lastTap = event;
      board.setCell(cell);
    }
  }

  /** @param {PointerEvent} event */
  removePointer(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.drag = undefined;
  }

  /** @param {MouseEvent} event */
  doubleClick(event) {
    const { board } = this;
    const panel = this.panelOf(event);
    if (!panel || this.isTouch || !board.views.cellAt(panel, event.clientX, event.clientY)) return;
    board.setPin(this.pinBeforeClick, 0);
    board.views.zoomAt(panel, 2, event.clientX, event.clientY);
  }

  /** @param {WheelEvent} event */
  zoomByWheel(event) {
    const panel = this.panelOf(event);
    if (!panel || !(event.ctrlKey || event.metaKey)) return; // a wheel without a modifier scrolls the page
    event.preventDefault();
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    this.board.views.zoomAt(panel, Math.exp(clamp(-pixels / 200, -0.7, 0.7)), event.clientX, event.clientY);
  }

  /** @param {Element | null} button */
  handlePress(button) {
    if (!(button instanceof HTMLElement)) return;
    const { board } = this;
    const { act } = button.dataset;
    if (act === "play") board.play();
    if (act === "open") board.open(button);
    if (act === "in") board.views.zoomAll(2);
    if (act === "reset") board.views.resetViews();
    if (act === "png") boardPng(board).then((blob) => download(blob, `${board.settings.file_name}.png`));
    if (act === "svg") boardSvg(board).then((blob) => download(blob, `${board.settings.file_name}.svg`));
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    const { board } = this;
    if (event.target !== board.grid || !board.appearance) return;
    const panel = board.panels[board.cell?.panel ?? 0];
    const { row, col } = board.cell ?? { row: board.hasPinnedRow(panel) ? (board.pinned ?? 0) : 0, col: 0 };
    const move = (/** @type {number} */ toRow, /** @type {number} */ toCol) =>
      this.moveCell(panel, board.cell ? toRow : row, board.cell ? toCol : col);
    this.isTouch = false;
    runKeyAction(event, {
      ArrowUp: () => move(row - 1, col),
      ArrowDown: () => move(row + 1, col),
      ArrowLeft: () => move(row, col - 1),
      ArrowRight: () => move(row, col + 1),
      PageUp: () => move(row - 10, col),
      PageDown: () => move(row + 10, col),
      Home: () => move(row, 0),
      End: () => move(row, panel.cols - 1),
      n: () => this.moveToPanel(panel, row, col, 1),
      p: () => this.moveToPanel(panel, row, col, -1),
      Enter: () => board.cell && board.pin(panel, row),
      Escape: () => (board.pinned === null ? board.setCell(null) : board.setPin(null, 0)),
      "+": () => board.views.zoomAll(2),
      "=": () => board.views.zoomAll(2),
      "-": () => board.views.zoomAll(0.5),
      0: () => board.views.resetViews(),
    });
  }

  /**
   * Move the current cell, and scroll the view with it.
   * @param {Panel} panel
   * @param {number} toRow
   * @param {number} toCol
   */
  moveCell(panel, toRow, toCol) {
    const { board } = this;
    const row = clamp(toRow, 0, panel.rows - 1);
    const col = clamp(toCol, 0, panel.cols - 1);
    board.views.scrollTo(panel, row, col);
    board.setCell({ panel: board.panels.indexOf(panel), row, col });
  }

  /**
   * Move the current cell to another panel, which may have another shape.
   * @param {Panel} panel
   * @param {number} row
   * @param {number} col
   * @param {number} step
   */
  moveToPanel(panel, row, col, step) {
    const { panels } = this.board;
    const target = panels[(panels.indexOf(panel) + step + panels.length) % panels.length];
    this.moveCell(target, row, col);
    target.picture.scrollIntoView({ block: "nearest" });
  }

  /** Cancel the current gesture, because the matrices have changed. */
  cancelGesture() {
    this.pointers.clear();
    this.drag = undefined;
  }

  destroy() {
    this.cancelGesture();
    this.listeners.abort();
  }
}
