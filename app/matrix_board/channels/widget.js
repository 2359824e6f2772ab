// A board (matrices side by side) as a widget in a notebook. anywidget calls ``render`` for each place that shows the widget.
/** @import { Received, BoardHeader } from "../messages" */

import { make } from "../drawing/elements.js";
import { Board } from "../views/board.js";
import { unpack, unpackPanels } from "./unpack.js";

/* global CSS_OF_BOARD -- attention_lab/app_modules.py defines it above this script */

/**
 * @typedef {object} Model the widget's state, which is shared with Python
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(events: string, act: () => void) => void} on
 * @property {(events: string, act: () => void) => void} off
 */

/** @param {{ model: Model, el: HTMLElement }} place */
function render({ model, el }) {
  // The styles of the board and of the notebook do not reach each other through a shadow root.
  const shadow = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  shadow.replaceChildren(make("style", {}, CSS_OF_BOARD));
  el.dataset.lmSuppressShortcuts = "true"; // otherwise JupyterLab handles the keys itself
  const board = new Board(shadow);
  board.send = (event, value) => {
    if (event !== "pin") return;
    model.set("pinned", /** @type {{ row: number | null }} */ (value).row);
    model.save_changes();
  };
  const receive = () => {
    const { buffer, byteOffset, byteLength } = /** @type {DataView} */ (model.get("message"));
    const received = /** @type {Received<BoardHeader>} */ (unpack(new Uint8Array(buffer, byteOffset, byteLength)));
    board.receive(received, unpackPanels(received));
  };
  const applySettings = () => board.show({ ...model.get("settings"), pinned: model.get("pinned") });
  const observer = new MutationObserver(() => board.retheme());
  for (const each of [document.documentElement, document.body]) observer.observe(each, { attributes: true });
  model.on("change:message", receive);
  model.on("change:settings change:pinned", applySettings);
  receive();
  applySettings();
  board.retheme();
  return () => {
    model.off("change:message", receive);
    model.off("change:settings change:pinned", applySettings);
    observer.disconnect();
    board.destroy();
  };
}

export default { render };
