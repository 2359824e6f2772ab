// Draws all boards of a page (views of matrices, heads or images) from the data that Streamlit passes to their components.
/** @import { SentTile } from "../../picture_board/pictures_messages" */
/** @import { Component, Mounted, Received, SentPanel } from "../messages" */

import { Board } from "../views/board.js";
import { boards, dragSenders } from "./boards.js";
import { SETTINGS_CHANGED, channel, lastSettings } from "./channel.js";
import { Strips } from "../views/strips.js";
import { unpack, unpackPanels } from "./unpack.js";
import { Thumbnails } from "../views/thumbnails.js";

/** @typedef {Received & { component: Component, listeners: AbortController, drawnDigest: string, applySettings(): void }} MountedComponent */

/** @type {Record<string, new (host: HTMLElement | ShadowRoot) => Component>} */
const componentClasses = { board: Board, heads: Thumbnails, strips: Strips };
/** @type {Map<object, MountedComponent>} */
const components = new Map(); // shadow root of a component -> what is drawn in it
/** @type {Map<object, Received<SentPanel | SentTile>>} */
const parts = new Map(); // shadow root of a component that received one panel of a board -> this panel

/** @type {Map<object, Received<import("../messages").DraggedHeader>>} */
const dragAnswers = new Map(); // shadow root -> the last answer of Python to a dragged knob (a slider on a panel)

/**
 * Register the drawing code of the page's boards, and draw the boards whose data arrived before.
 * @param {typeof componentClasses} others further components, by the `kind` in the header of their messages
 */
export function startDrawing(others) {
  Object.assign(componentClasses, others);
  channel.drawing ??= { draw, unmount };
  channel.waiting.forEach(channel.drawing.draw);
  channel.waiting.clear();
}

/** @param {Mounted<Uint8Array>} mounted */
function draw({ data, parentElement, setTriggerValue }) {
  const previous = components.get(parentElement) ?? parts.get(parentElement) ?? dragAnswers.get(parentElement);
  const received = previous?.message === data ? previous : unpack(data);
  const { message, header, payload } = received;
  if (header.kind === "part") {
    parts.set(parentElement, { message, header, payload });
    components.forEach(drawIfComplete);
    return;
  }
  if (header.kind === "dragged") {
    dragAnswers.set(parentElement, { message, header, payload });
    dragSenders.set(header.key, setTriggerValue);
    const part = previous !== received && payload.byteLength && unpack(new Uint8Array(payload));
    if (part) for (const other of components.values()) if (other.header.key === header.key) other.component.redraw?.(part, header.last_turn);
    return;
  }
  const mounted = components.get(parentElement) ?? mountComponent(parentElement, received);
  Object.assign(mounted, { message, header, payload });
  if (header.settings) lastSettings.set(header.key, JSON.stringify(header.settings));
  mounted.component.send = setTriggerValue;
  mounted.component.root.dataset.board = header.key;
  if (mounted.component instanceof Board) boards.set(header.key, mounted.component);
  mounted.component.retheme();
  drawIfComplete(mounted);
  mounted.applySettings();
}

/**
 * Draw a board once all its panels have arrived.
 * @param {MountedComponent} mounted
 */
function drawIfComplete(mounted) {
  const { header } = mounted;
  if (header.digest === mounted.drawnDigest) return;
  const digests = "digests" in header ? header.digests : [];
  const partByDigest = new Map([...parts.values(), ...unpackPanels(mounted)].map((part) => [part.header.digest, part]));
  const panels = digests.map((digest) => partByDigest.get(digest)).filter((part) => part !== undefined);
  if (panels.length < digests.length) return;
  mounted.drawnDigest = header.digest;
  mounted.component.receive(mounted, panels);
}

/** @param {object} host */
function unmount(host) {
  const mounted = components.get(host);
  mounted?.listeners.abort();
  if (mounted && boards.get(mounted.header.key) === mounted.component) boards.delete(mounted.header.key);
  mounted?.component.destroy();
  components.delete(host);
  parts.delete(host);
  dragSenders.delete(dragAnswers.get(host)?.header.key ?? "");
  dragAnswers.delete(host);
}

/**
 * @param {HTMLElement | ShadowRoot} host
 * @param {Received} received
 * @returns {MountedComponent}
 */
function mountComponent(host, received) {
  const component = new componentClasses[received.header.kind](host);
  const listeners = new AbortController();
  /** @type {string | undefined} */
  let lastShown;
  const applySettings = () => {
    const settings = lastSettings.get(mounted.header.key);
    if (!settings || settings === lastShown) return; // a rerun without changes keeps the visitor's input
    lastShown = settings;
    component.show(JSON.parse(settings));
  };
  /** @type {MountedComponent} */
  const mounted = { ...received, component, listeners, drawnDigest: "", applySettings };
  components.set(host, mounted);
  const onSettings = (/** @type {Event} */ event) => {
    if (/** @type {CustomEvent<string>} */ (event).detail === mounted.header.key) applySettings();
  };
  addEventListener(SETTINGS_CHANGED, onSettings, { signal: listeners.signal });
  return mounted;
}
