// Marks the current page's section in the menu, and labels the button that opens the panel on the left.

import { APP_HEADER, EXPAND_SIDEBAR, MENU, MENU_SECTIONS } from "../selectors.js";

/** @typedef {{ section: string, page: string, input: string, menu: string }} MenuWords */

/** @type {MenuWords} */
let menuWords;

/**
 * Mark and label with these words, also when Streamlit draws the menu again.
 * @param {MenuWords} words the current section and page, and the button's names next to the menu and in place of it
 */
export function markMenu(words) {
  const first = !menuWords;
  menuWords = words;
  nameMenu();
  const header = document.querySelector(APP_HEADER);
  if (first && header) new MutationObserver(nameMenu).observe(header, { childList: true, subtree: true });
}

function nameMenu() {
  /** @type {NodeListOf<HTMLElement>} */
  const sections = document.querySelectorAll(MENU_SECTIONS);
  for (const each of sections) {
    each.setAttribute("aria-current", String(each.textContent === menuWords.section));
    each.style.setProperty("--page", JSON.stringify(` · ${menuWords.page}`));
  }
  const name = document.querySelector(MENU) ? menuWords.input : menuWords.menu; // on a narrow screen the menu is in the panel
  const button = /** @type {HTMLElement | null} */ (document.querySelector(EXPAND_SIDEBAR));
  if (button) button.title = button.ariaLabel = name;
}
