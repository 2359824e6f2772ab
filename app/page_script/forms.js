// Reports the form that was opened last: the server builds no other.

import { KEY_PREFIX, POPOVER_BUTTON } from "./selectors.js";

/** @type {(name: string) => void} */
let report;
let opened = "";

/**
 * Report each form that is opened.
 * @param {(name: string) => void} send
 */
export function watchForms(send) {
  const first = !report;
  report = send;
  if (first) addEventListener("click", notice, { capture: true });
}

/** @param {Event} event */
function notice({ target }) {
  const button = target instanceof Element && target.closest(POPOVER_BUTTON);
  const named = button && button.closest(`[class*="${KEY_PREFIX}"]`);
  const name = named && [...named.classList].find((each) => each.startsWith(KEY_PREFIX))?.slice(KEY_PREFIX.length);
  if (!name || name === opened) return;
  opened = name;
  report(name);
}
