// Reports to the server which form the visitor opened last, because the server builds the content of this form only.

import { KEY_PREFIX, POPOVER_BUTTON } from "./selectors.js";
import { server } from "./server.js";

/** Report each form that is opened. */
export function watchForms() {
  let lastOpened = "";
  const report = (/** @type {Event} */ { target }) => {
    const button = target instanceof Element && target.closest(POPOVER_BUTTON);
    const keyed = button && button.closest(`[class*="${KEY_PREFIX}"]`);
    const name = keyed && [...keyed.classList].find((each) => each.startsWith(KEY_PREFIX))?.slice(KEY_PREFIX.length);
    if (!name || name === lastOpened) return;
    lastOpened = name;
    server.setStateValue("form", name);
  };
  addEventListener("click", report, { capture: true });
}
