// Pointer and keyboard input on a board: point, pin, drag, pinch, wheel and keys.
/** @import { Panel, View } from "../messages" */
/** @import { Board } from "./board.js" */

import { boardPng, boardSvg, download } from "../drawing/export.js";
import { clamp, listenTo, perform } from "../drawing/elements.js";
import { CLEAR } from "./zoom.js";

const SAME_SPOT = 24; // pixels within which a second tap means the first tap's cell, as fingers are wider than cells
const DOUBLE_CLICK = 250; // milliseconds before a click is reported, as it may be half of a double click

/** @typedef {{ panel: Panel, x: number, y: number, view: View | null, moved: boolean }} Drag */

export class Hands {
  touched = false; // whether the last input was a finger or a stylus
  /** @type {Drag | undefined} */
  drag;
  /** @type {PointerEvent | undefined} */
  tapped;
  /** @type {number | null} */
  pinBefore = null;

  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<number, PointerEvent>} */
    this.pointers = new Map(); // the pointers that are down, by id
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    const on = listenTo(board.grid, signal);
    on("pointerdown", (event) => this.pointerDown(event));
    on("pointermove", (event) => this.pointerMove(event));
    on("pointerup", (event) => this.pointerUp(event));
    on("pointercancel", (event) => this.pointerGone(event));
    on("pointerleave", (event) => {
      if (event.pointerType === "mouse") board.setCell(null);
    });
    on("mousedown", (event) => {
      if (event.detail === 1) this.pinBefore = board.pinned; // restored if this is the first click of a double click
    });
    on("dblclick", (event) => this.doubleClick(event));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("keydown", (event) => this.key(event));
    const press = (/** @type {Event} */ event) => this.press(/** @type {Element} */ (event.target).closest("[data-act]"));
    board.buttons.addEventListener("click", press, { signal });
    on("click", press);
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
    this.touched = event.pointerType !== "mouse";
    this.pointers.set(event.pointerId, event);
    const { clientX: x, clientY: y } = event;
    if (this.pointers.size === 2) {
      this.drag = { panel, x, y, view: null, moved: true };
      return;
    }
    this.drag = { panel, x, y, view: board.views.of(panel), moved: false };
  }

  /** @param {PointerEvent} event */
  pointerMove(event) {
    if (!event.buttons) this.pointerGone(event); // released outside the board
    const { board, drag } = this;
    if (!drag || !this.pointers.has(event.pointerId)) {
      const panel = this.panelOf(event);
      if (event.pointerType === "mouse") {
        this.touched = false;
        board.setCell(panel ? board.views.cellAt(panel, event.clientX, event.clientY) : null);
      }
      return;
    }
    const before = [...this.pointers.values()];
    this.pointers.set(event.pointerId, event);
    const [a, b] = this.pointers.values();
    if (this.pointers.size === 2) {
      const apart = (/** @type {PointerEvent[]} */ [one, other]) =>
        Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      board.views.zoomAt(drag.panel, apart([a, b]) / apart(before), (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) > 5) {
      drag.moved = true;
      board.grid.setPointerCapture(event.pointerId);
    }
    if (drag.moved && drag.view && drag.view !== CLEAR) {
      const { panel, view } = drag;
      const { width, height } = panel.geometry.plot;
      board.views.lookAt(panel, { ...view, x: view.x - (dx / width) * view.width, y: view.y - (dy / height) * view.height });
    }
  }

  /** @param {PointerEvent} event */
  pointerUp(event) {
    const { board, drag } = this;
    const alone = this.pointers.size === 1;
    this.pointerGone(event);
    if (!alone || !drag || drag.moved) return;
    const cell = board.views.cellAt(drag.panel, event.clientX, event.clientY);
    if (!cell) return;
    if (!this.touched) {
      board.setCell(cell);
      board.pin(drag.panel, cell.row, DOUBLE_CLICK);
      return;
    }
    const again = this.tapped && Math.hypot(event.clientX - this.tapped.clientX, event.clientY - this.tapped.clientY);
    if (board.cell && board.cell.panel === cell.panel && again !== undefined && again < SAME_SPOT) {
      board.pin(drag.panel, board.cell.row);
    } else {
      this.tapped = event;
      board.setCell(cell);
    }
  }

  /** @param {PointerEvent} event */
  pointerGone(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.drag = undefined;
  }

  /** @param {MouseEvent} event */
  doubleClick(event) {
    const { board } = this;
    const panel = this.panelOf(event);
    if (!panel || this.touched || !board.views.cellAt(panel, event.clientX, event.clientY)) return;
    board.setPin(this.pinBefore, 0);
    board.views.zoomAt(panel, 2, event.clientX, event.clientY);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const panel = this.panelOf(event);
    if (!panel || !(event.ctrlKey || event.metaKey)) return; // a wheel without a modifier scrolls the page
    event.preventDefault();
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    this.board.views.zoomAt(panel, Math.exp(clamp(-pixels / 200, -0.7, 0.7)), event.clientX, event.clientY);
  }

  /** @param {Element | null} pressed */
  press(pressed) {
    if (!(pressed instanceof HTMLElement)) return;
    const { board } = this;
    const { act } = pressed.dataset;
    if (act === "play") board.play();
    if (act === "open") board.open(pressed);
    if (act === "in") board.views.zoomAll(2);
    if (act === "reset") board.views.reset();
    if (act === "png") boardPng(board).then((blob) => download(blob, `${board.settings.file_name}.png`));
    if (act === "svg") boardSvg(board).then((blob) => download(blob, `${board.settings.file_name}.svg`));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { board } = this;
    if (event.target !== board.grid || !board.look) return;
    const panel = board.panels[board.cell?.panel ?? 0];
    const { row, col } = board.cell ?? { row: board.pins(panel) ? (board.pinned ?? 0) : 0, col: 0 };
    const go = (/** @type {number} */ toRow, /** @type {number} */ toCol) =>
      this.step(panel, board.cell ? toRow : row, board.cell ? toCol : col);
    this.touched = false;
    perform(event, {
      ArrowUp: () => go(row - 1, col),
      ArrowDown: () => go(row + 1, col),
      ArrowLeft: () => go(row, col - 1),
      ArrowRight: () => go(row, col + 1),
      PageUp: () => go(row - 10, col),
      PageDown: () => go(row + 10, col),
      Home: () => go(row, 0),
      End: () => go(row, panel.cols - 1),
      n: () => this.turn(panel, row, col, 1),
      p: () => this.turn(panel, row, col, -1),
      Enter: () => board.cell && board.pin(panel, row),
      Escape: () => (board.pinned === null ? board.setCell(null) : board.setPin(null, 0)),
      "+": () => board.views.zoomAll(2),
      "=": () => board.views.zoomAll(2),
      "-": () => board.views.zoomAll(0.5),
      0: () => board.views.reset(),
    });
  }

  /**
   * Move the cell, and scroll the view with it.
   * @param {Panel} panel
   * @param {number} toRow
   * @param {number} toCol
   */
  step(panel, toRow, toCol) {
    const { board } = this;
    const row = clamp(toRow, 0, panel.rows - 1);
    const col = clamp(toCol, 0, panel.cols - 1);
    board.views.follow(panel, row, col);
    board.setCell({ panel: board.panels.indexOf(panel), row, col });
  }

  /**
   * Move the cell to another panel, which may have another shape.
   * @param {Panel} panel
   * @param {number} row
   * @param {number} col
   * @param {number} by
   */
  turn(panel, row, col, by) {
    const { panels } = this.board;
    const to = panels[(panels.indexOf(panel) + by + panels.length) % panels.length];
    this.step(to, row, col);
    to.picture.scrollIntoView({ block: "nearest" });
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
