// Handles the link in a page's header that leads to the input in the sidebar: opens the sidebar if it is folded.

import { EXPAND_SIDEBAR, SIDEBAR_CONTROLS, SIDEBAR_HEADER } from "../selectors.js";

const INPUT_LINK = "#input";
const FOLDED_KEY = /^stSidebarCollapsed-/; // Streamlit's keys in localStorage
const UNFOLD_TIME = 400; // milliseconds that the sidebar takes to unfold

export function watchInputLink() {
  // Streamlit stores whether the sidebar is open. If it opened again on the next visit, the page would move while it loads.
  addEventListener("pagehide", () => {
    const names = Object.keys(localStorage).filter((name) => FOLDED_KEY.test(name));
    names.forEach((name) => localStorage.removeItem(name));
  });
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link || link.hash !== INPUT_LINK) return;
    event.preventDefault(); // the address describes the screen and must not change
    const button = /** @type {HTMLElement | null} */ (document.querySelector(EXPAND_SIDEBAR));
    button?.click();
    setTimeout(focusFirstControl, button ? UNFOLD_TIME : 0);
  });
}

/** Focus the first control in the sidebar, skipping the button that folds it. */
function focusFirstControl() {
  const choices = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(SIDEBAR_CONTROLS));
  [...choices].find((choice) => !choice.closest(SIDEBAR_HEADER))?.focus();
}
