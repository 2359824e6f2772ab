// The second, small channel of a board: words, scale and pin travel here, so that a click does not send the matrices again.

import { TOLD, told } from "./channel.js";

/** @param {import("./types").Mounted<{ board: string }>} mounted */
export default function ({ data }) {
  told.set(data.board, JSON.stringify(data));
  dispatchEvent(new CustomEvent(TOLD, { detail: data.board }));
}
