// Makes scrollable areas without controls usable by keyboard.

import { CODE_BLOCKS } from "./selectors.js";

const SCROLL_AREAS = `.katex-display, ${CODE_BLOCKS}`;
const UPDATE_DELAY = 200; // milliseconds to wait, because a page that is being drawn changes many times

export function makeFocusable() {
  /** @type {number | undefined} */
  let timer;
  const update = () => {
    timer = undefined;
    for (const region of document.querySelectorAll(SCROLL_AREAS)) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
  };
  const scheduleUpdate = () => (timer ??= setTimeout(update, UPDATE_DELAY));
  new MutationObserver(scheduleUpdate).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", scheduleUpdate);
  document.fonts.addEventListener("loadingdone", scheduleUpdate); // a new font changes the width of texts without changing elements
  scheduleUpdate();
}
