// Helpers that create elements and canvases, make labels printable, and read the page's theme. Strings are always inserted
// as text, never as HTML.
/** @import { Rgb, Theme } from "../messages" */

import { css, PALETTES } from "./color.js";
import { contextOf, CanvasPen } from "./pen.js";

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/**
 * Create an element; children are elements or plain text.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} children
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Return an icon of two sliders. */
export function settingsIcon() {
  const [icon, path] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
  icon.setAttribute("viewBox", "0 0 16 16");
  icon.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M1 5h8m4 0h2M11 3v4M1 11h2m4 0h8M5 9v4");
  icon.append(path);
  return icon;
}

const HOVER = ["pointermove", "pointerover", "pointerleave"];

/**
 * Return a function that listens to an element's events until the signal aborts.
 *
 * If the page moves under a resting mouse, the browser sends events of the pointer too. After a key was pressed on the
 * element, such events are ignored until the mouse really moves over it: otherwise they would remove what the key chose.
 * @param {HTMLElement} element
 * @param {AbortSignal} signal
 * @returns {<Type extends keyof HTMLElementEventMap>(type: Type, act: (event: HTMLElementEventMap[Type]) => void, options?: AddEventListenerOptions) => void}
 */
export function listenTo(element, signal) {
  let usesKeys = false;
  element.addEventListener("keydown", () => (usesKeys = true), { signal });
  element.addEventListener("pointermove", ({ movementX, movementY }) => (usesKeys &&= !movementX && !movementY), { signal });
  return (type, act, options) =>
    element.addEventListener(type, (event) => !(usesKeys && HOVER.includes(type)) && act(event), { signal, ...options });
}

/**
 * Return the number in a data attribute of the element that contains a target; null outside such elements.
 * @param {EventTarget | null} target
 * @param {string} name
 */
export function readIndex(target, name) {
  const element = target instanceof Element && target.closest(`[data-${name}]`);
  return element instanceof HTMLElement ? Number(element.dataset[name]) : null;
}

/**
 * Make control characters and broken surrogates visible, as they would disappear on screen and break an SVG. Remove
 * characters that override the direction of the surrounding text.
 */
export const toPrintable = (/** @type {string} */ label) =>
  label
    .toWellFormed()
    .replace(/\p{Cc}/gu, (c) => (c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd"))
    .replace(/[\u202a-\u202e\u2066\u2067]/g, "")
    .replace(/[\ufffe\uffff]/g, "\ufffd");

/**
 * Return the colours and the font of the page's theme, as the element inherits them.
 * @param {Element} element
 * @returns {Theme}
 */
export function readTheme(element) {
  const style = getComputedStyle(element);
  const context = contextOf(document.createElement("canvas"), { willReadFrequently: true });
  /**
   * @param {string} name
   * @param {string} fallback
   * @returns {Rgb}
   */
  const rgb = (name, fallback) => {
    context.fillStyle = fallback;
    context.fillStyle = style.getPropertyValue(name).trim() || fallback;
    context.clearRect(0, 0, 1, 1);
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const [background, text] = [rgb("--st-background-color", "#ffffff"), rgb("--st-text-color", "#31333f")];
  const mix = (/** @type {number} */ share) => css(text.map((v, i) => Math.round(share * v + (1 - share) * background[i])));
  const mode = background[0] + background[1] + background[2] < 384 ? "dark" : "light";
  return {
    mode,
    mark: PALETTES[mode].mark,
    onMark: PALETTES[mode].onMark,
    background: css(background),
    text: css(text),
    muted: mix(0.72),
    border: mix(0.34),
    grid: mix(0.12),
    halo: `rgba(${background.join()},0.75)`,
    font: style.getPropertyValue("--st-font").trim() || "system-ui, sans-serif",
  };
}

/**
 * Set a canvas's size in CSS pixels, clear it, and return a pen.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {string} font
 */
export function preparePen(canvas, width, height, font) {
  const ratio = devicePixelRatio;
  const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) Object.assign(canvas, { width: pixelWidth, height: pixelHeight });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = new CanvasPen(contextOf(canvas), ratio, font);
  pen.context.clearRect(0, 0, width, height);
  return pen;
}

/**
 * Run a key's action, and stop the event: Streamlit has its own shortcuts, and keys scroll the page.
 * @param {KeyboardEvent} event
 * @param {Record<string, () => unknown>} actionByKey actions by the key's name; keys with modifiers are ignored, and the space key runs the action of Enter
 */
export function runKeyAction(event, actionByKey) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actionByKey[event.key === " " ? "Enter" : event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}
