// Makes scrollable areas without controls and Plotly's chart buttons reachable by keys.

import { CODE_BLOCKS } from "./selectors.js";

const SCROLLING = `.katex-display, ${CODE_BLOCKS}`;
const DRAWN = ".updatemenu-button"; // Plotly's class
const CALM = 200; // milliseconds to wait, as a page that is being drawn changes many times

export function reachByKeys() {
  /** @type {number | undefined} */
  let due;
  const look = () => {
    due = undefined;
    for (const region of document.querySelectorAll(SCROLLING)) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
    for (const button of document.querySelectorAll(DRAWN)) {
      button.setAttribute("tabindex", "0");
      button.setAttribute("role", "button");
    }
  };
  const soon = () => (due ??= setTimeout(look, CALM));
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", soon);
  document.fonts.addEventListener("loadingdone", soon); // text of another width, with no other change on the page
  addEventListener("keydown", (event) => {
    const button = event.target instanceof Element && event.target.closest(DRAWN);
    if (!button || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault(); // a space would scroll the page
    button.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  soon();
}
