// Marks the current page's section in the menu, and labels the button that opens the sidebar.

import { APP_HEADER, EXPAND_SIDEBAR, MENU, MENU_SECTIONS } from "../selectors.js";
import { server } from "../server.js";
import { placeChoice } from "./language.js";

/** Complete the header whenever Streamlit draws it again. */
export function watchHeader() {
  const header = document.querySelector(APP_HEADER);
  const complete = () => {
    markMenu();
    placeChoice();
  };
  if (header) new MutationObserver(complete).observe(header, { childList: true, subtree: true });
}

/** Mark the current section in the menu, and label the button that opens the sidebar. */
export function markMenu() {
  const { section, page, input, menu } = server.data;
  /** @type {NodeListOf<HTMLElement>} */
  const sections = document.querySelectorAll(MENU_SECTIONS);
  for (const each of sections) {
    each.setAttribute("aria-current", String(each.textContent === section));
    each.style.setProperty("--page", JSON.stringify(` · ${page}`));
  }
  const button = /** @type {HTMLElement | null} */ (document.querySelector(EXPAND_SIDEBAR));
  if (button) button.title = button.ariaLabel = document.querySelector(MENU) ? input : menu; // on a narrow screen, the menu is in the sidebar
}
