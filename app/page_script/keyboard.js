// Makes two kinds of elements usable by keyboard: scrollable areas without controls, and Plotly's buttons in charts.

import { CODE_BLOCKS } from "./selectors.js";

const SCROLL_AREAS = `.katex-display, ${CODE_BLOCKS}`;
const CHART_BUTTON = ".updatemenu-button"; // Plotly's class
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
    for (const button of document.querySelectorAll(CHART_BUTTON)) {
      button.setAttribute("tabindex", "0");
      button.setAttribute("role", "button");
    }
  };
  const scheduleUpdate = () => (timer ??= setTimeout(update, UPDATE_DELAY));
  new MutationObserver(scheduleUpdate).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", scheduleUpdate);
  document.fonts.addEventListener("loadingdone", scheduleUpdate); // a new font changes the width of texts without changing elements
  addEventListener("keydown", (event) => {
    const button = event.target instanceof Element && event.target.closest(CHART_BUTTON);
    if (!button || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault(); // a space would scroll the page
    button.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  scheduleUpdate();
}
