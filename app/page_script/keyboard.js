// Makes scrollable areas without controls and Plotly's chart buttons reachable by keys.

import { CODE_BLOCKS } from "./selectors.js";

const SCROLL_AREAS = `.katex-display, ${CODE_BLOCKS}`;
const CHART_BUTTON = ".updatemenu-button"; // Plotly's class
const UPDATE_DELAY = 200; // milliseconds to wait, as a page that is being drawn changes many times

export function makeFocusable() {
  /** @type {number | undefined} */
  let timer;
  const update = () => {
    timer = undefined;
    for (const region of document.querySelectorAll(SCROLL_AREAS)) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
    for (const button of document.querySelectorAll(CHART_BUTTON)) {
      button.setAttribute("tabindex", "0");
      button.setAttribute("role", "button");
    }
  };
  const scheduleUpdate = () => (timer ??= setTimeout(update, UPDATE_DELAY));
  new MutationObserver(scheduleUpdate).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", scheduleUpdate);
  document.fonts.addEventListener("loadingdone", scheduleUpdate); // text of another width, with no other change on the page
  addEventListener("keydown", (event) => {
    const button = event.target instanceof Element && event.target.closest(CHART_BUTTON);
    if (!button || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault(); // a space would scroll the page
    button.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  scheduleUpdate();
}
