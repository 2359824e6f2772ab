// Unpacks the messages that Python sends to a board.
/** @import { Received, SentPanel } from "../messages" */

/**
 * Unpack a message: header length, JSON header, payload (copied, so that 16-bit numbers are aligned).
 * @param {Uint8Array} message
 * @returns {Received}
 */
export function unpack(message) {
  const length = new DataView(message.buffer, message.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(message.subarray(4, 4 + length)));
  return { message, header, payload: message.slice(4 + length).buffer };
}

/**
 * Return the panels that were sent with their board, one message after another.
 * @param {Received} received
 * @returns {Received<SentPanel>[]}
 */
export function unpackPanels({ header, payload }) {
  let end = 0;
  const take = (/** @type {number} */ length) => new Uint8Array(payload, (end += length) - length, length);
  return header.kind === "board" ? header.inline_lengths.map((length) => /** @type {Received<SentPanel>} */ (unpack(take(length)))) : [];
}
