// Draws all boards of a page from the data that Streamlit passes to them.
/** @import { SentTile } from "../../picture_board/pictures_messages" */
/** @import { Face, Mounted, Received, SentPanel } from "../messages" */

import { Board } from "../views/board.js";
import { boards, holders } from "./boards.js";
import { SETTINGS_CHANGED, channel, lastSettings } from "./channel.js";
import { Strips } from "../views/strips.js";
import { unpack, within } from "./unpack.js";
import { Thumbnails } from "../views/thumbnails.js";

/** @typedef {Received & { face: Face, listeners: AbortController, drawn: string, adjust(): void }} Shown */

/** @type {Record<string, new (host: HTMLElement | ShadowRoot) => Face>} */
const faces = { board: Board, heads: Thumbnails, strips: Strips };
/** @type {Map<object, Shown>} */
const shown = new Map(); // shadow root -> its view
/** @type {Map<object, Received<SentPanel | SentTile>>} */
const parts = new Map(); // shadow root -> its panel, which any board on the page may use

/** @type {Map<object, Received<import("../messages").HeldHeader>>} */
const held = new Map(); // shadow root -> the last answer to a dragged knob

/**
 * Register as the drawing code of the page's boards, and draw those that arrived before.
 * @param {typeof faces} others further views by the kind in their header
 */
export function offer(others) {
  Object.assign(faces, others);
  channel.drawing ??= { draw, drop };
  channel.waiting.forEach(channel.drawing.draw);
  channel.waiting.clear();
}

/** @param {Mounted<Uint8Array>} mounted */
function draw({ data, parentElement, setTriggerValue }) {
  const before = shown.get(parentElement) ?? parts.get(parentElement) ?? held.get(parentElement);
  const received = before?.message === data ? before : unpack(data);
  const { message, header, payload } = received;
  if (header.kind === "part") {
    parts.set(parentElement, { message, header, payload });
    shown.forEach(complete);
    return;
  }
  if (header.kind === "held") {
    held.set(parentElement, { message, header, payload });
    holders.set(header.key, setTriggerValue);
    const part = before !== received && payload.byteLength && unpack(new Uint8Array(payload));
    if (part) for (const one of shown.values()) if (one.header.key === header.key) one.face.redraw?.(part, header.last_turn);
    return;
  }
  const one = shown.get(parentElement) ?? show(parentElement, received);
  Object.assign(one, { message, header, payload });
  if (header.settings) lastSettings.set(header.key, JSON.stringify(header.settings));
  one.face.send = setTriggerValue;
  one.face.root.dataset.board = header.key;
  if (one.face instanceof Board) boards.set(header.key, one.face);
  one.face.retheme();
  complete(one);
  one.adjust();
}

/**
 * Draw a board once all its parts have arrived.
 * @param {Shown} one
 */
function complete(one) {
  const { header } = one;
  if (header.digest === one.drawn) return;
  const asked = "digests" in header ? header.digests : [];
  const known = new Map([...parts.values(), ...within(one)].map((part) => [part.header.digest, part]));
  const found = asked.map((digest) => known.get(digest)).filter((part) => part !== undefined);
  if (found.length < asked.length) return;
  one.drawn = header.digest;
  one.face.receive(one, found);
}

/** @param {object} host */
function drop(host) {
  const one = shown.get(host);
  one?.listeners.abort();
  if (one && boards.get(one.header.key) === one.face) boards.delete(one.header.key);
  one?.face.destroy();
  shown.delete(host);
  parts.delete(host);
  holders.delete(held.get(host)?.header.key ?? "");
  held.delete(host);
}

/**
 * @param {HTMLElement | ShadowRoot} host
 * @param {Received} received
 * @returns {Shown}
 */
function show(host, received) {
  const face = new faces[received.header.kind](host);
  const listeners = new AbortController();
  /** @type {string | undefined} */
  let last;
  const adjust = () => {
    const settings = lastSettings.get(one.header.key);
    if (!settings || settings === last) return; // a rerun without changes keeps the visitor's input
    last = settings;
    face.show(JSON.parse(settings));
  };
  /** @type {Shown} */
  const one = { ...received, face, listeners, drawn: "", adjust };
  shown.set(host, one);
  const onSettings = (/** @type {Event} */ event) => {
    if (/** @type {CustomEvent<string>} */ (event).detail === one.header.key) adjust();
  };
  addEventListener(SETTINGS_CHANGED, onSettings, { signal: listeners.signal });
  return one;
}
