// Handles the link from a page's input line to the input panel, which may be folded.

import { EXPAND_SIDEBAR, SIDEBAR_CONTROLS, SIDEBAR_HEADER } from "../selectors.js";

const WAY = "#input";
const REMEMBERED = /^stSidebarCollapsed-/; // Streamlit's keys in localStorage
const UNFOLDED = 400; // milliseconds that the panel takes to unfold

export function leadToInput() {
  // A panel that the browser opens again on the next visit would move the page while it loads.
  addEventListener("pagehide", () => {
    const names = Object.keys(localStorage).filter((name) => REMEMBERED.test(name));
    names.forEach((name) => localStorage.removeItem(name));
  });
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link || link.hash !== WAY) return;
    event.preventDefault(); // the address describes the screen and must not change
    const button = /** @type {HTMLElement | null} */ (document.querySelector(EXPAND_SIDEBAR));
    button?.click();
    setTimeout(enter, button ? UNFOLDED : 0);
  });
}

/** Focus the panel's first control, skipping the button that folds it. */
function enter() {
  const choices = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(SIDEBAR_CONTROLS));
  [...choices].find((choice) => !choice.closest(SIDEBAR_HEADER))?.focus();
}
