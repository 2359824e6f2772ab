// What Streamlit calls at each rerun and theme change; the cleanup it is handed runs once, at the end.
/** @import { BoardHeader, Face, HeadsHeader, Mounted } from "./types" */

import { Board } from "./board.js";
import { TOLD, told } from "./channel.js";
import { Thumbnails } from "./thumbnails.js";

/** @typedef {{ message: Uint8Array, header: BoardHeader | HeadsHeader, payload: ArrayBuffer }} Received */
/** @typedef {Received & { face: Face, ears: AbortController, adjust(): void }} Shown */

/** @type {WeakMap<object, Shown>} */
const shown = new WeakMap(); // shadow root -> what it shows

/**
 * The message: length of the header, header as JSON, payload (copied, so that 16-bit numbers lie at even places).
 * @param {Uint8Array} message
 * @returns {Received}
 */
function unpack(message) {
  const length = new DataView(message.buffer, message.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(message.subarray(4, 4 + length)));
  return { message, header, payload: message.slice(4 + length).buffer };
}

/** @param {Mounted<Uint8Array>} mounted */
export default function ({ data, parentElement, setTriggerValue }) {
  const before = shown.get(parentElement);
  const received = before?.message === data ? before : unpack(data);
  const one = before ?? show(parentElement, received);
  const fresh = before?.header.digest !== received.header.digest;
  const { message, header, payload } = received;
  Object.assign(one, { message, header, payload });
  one.face.send = setTriggerValue;
  one.face.root.dataset.board = header.key;
  one.face.retheme();
  if (fresh) one.face.receive(header, payload);
  one.adjust();
  return () => {
    one.ears.abort();
    one.face.destroy();
    shown.delete(parentElement);
  };
}

/**
 * @param {HTMLElement | ShadowRoot} host
 * @param {Received} received
 * @returns {Shown}
 */
function show(host, received) {
  /** @type {Face} */
  const face = received.header.kind === "heads" ? new Thumbnails(host) : new Board(host);
  const ears = new AbortController();
  /** @type {string | undefined} */
  let last;
  const adjust = () => {
    const settings = told.get(one.header.key);
    if (!settings || settings === last) return; // a rerun that says nothing new leaves what hands did
    last = settings;
    face.show(JSON.parse(settings));
  };
  /** @type {Shown} */
  const one = { ...received, face, ears, adjust };
  shown.set(host, one);
  const hear = (/** @type {Event} */ event) => {
    if (/** @type {CustomEvent<string>} */ (event).detail === one.header.key) adjust();
  };
  addEventListener(TOLD, hear, { signal: ears.signal });
  return one;
}
