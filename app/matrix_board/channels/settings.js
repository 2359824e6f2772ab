// The second, small channel of a board: texts, scale and pin, so that a click does not send the matrices again.

import { TOLD, told } from "./channel.js";

/** @param {import("../messages").Mounted<Uint8Array>} mounted */
export default function ({ data }) {
  const settings = new TextDecoder().decode(data);
  const { board } = JSON.parse(settings);
  told.set(board, settings);
  dispatchEvent(new CustomEvent(TOLD, { detail: board }));
}
