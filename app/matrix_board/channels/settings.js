// The component that receives a board's texts, colour scale and pinned row, separately from its matrices. A click therefore
// does not send the matrices again.

import { SETTINGS_CHANGED, lastSettings } from "./channel.js";

/** @param {import("../messages").Mounted<Uint8Array>} mounted */
export default function ({ data }) {
  const settings = new TextDecoder().decode(data);
  const { board } = JSON.parse(settings);
  lastSettings.set(board, settings);
  dispatchEvent(new CustomEvent(SETTINGS_CHANGED, { detail: board }));
}
