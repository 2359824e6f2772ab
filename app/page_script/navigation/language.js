// Sets the language of the document, draws the choice of a language in the header, and keeps it in the menu's links.

import { APP_HEADER, MENU_LINKS, TOOLBAR_ACTIONS } from "../selectors.js";

/** @typedef {{ code: string, tag: string, names: Record<string, string>, title: string, query: string }} Language */

/** @type {HTMLSelectElement | undefined} */
let languageChoice;
/** @type {(code: string) => void} */
let reportLanguage;
let languageQuery = "";

/**
 * Show which language is used, and offer the others if there are any.
 * @param {Language} language the language in use; the names of all languages by their codes; the query that keeps it
 * @param {(code: string) => void} send reports the language that the visitor chooses
 */
export function chooseLanguage({ code, tag, names, title, query }, send) {
  document.documentElement.lang = tag;
  reportLanguage = send;
  languageQuery = query;
  const codes = Object.keys(names);
  if (codes.length < 2) return;
  if (!languageChoice) {
    languageChoice = Object.assign(document.createElement("select"), { className: "language-choice" });
    languageChoice.append(...codes.map((each) => Object.assign(new Option(names[each], each), { lang: each })));
    languageChoice.addEventListener("change", () => reportLanguage(languageChoice?.value ?? code));
    const header = document.querySelector(APP_HEADER);
    if (header) new MutationObserver(placeChoice).observe(header, { childList: true, subtree: true });
    for (const act of ["pointerover", "focusin"]) addEventListener(act, completeLink);
  }
  languageChoice.title = languageChoice.ariaLabel = title;
  languageChoice.value = code;
  placeChoice();
}

/** Put the choice into the header, also when Streamlit draws the header again. */
function placeChoice() {
  if (languageChoice && !languageChoice.isConnected) document.querySelector(TOOLBAR_ACTIONS)?.after(languageChoice);
}

/**
 * Add the language to a link of the menu, which a visitor may open in another tab.
 * @param {Event} event
 */
function completeLink({ target }) {
  const link = target instanceof Element && target.closest(MENU_LINKS);
  if (link instanceof HTMLAnchorElement) link.search = languageQuery;
}
