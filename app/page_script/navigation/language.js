// Sets the language of the document, puts the choice of a language into the header, and adds the language to the menu's links.

import { MENU_LINKS, TOOLBAR_ACTIONS } from "../selectors.js";
import { server } from "../server.js";

/** @type {HTMLSelectElement | undefined} */
let languageChoice;

/** Show which language is used, and offer the others if there are any. */
export function showLanguage() {
  const { code, tag, names, title } = server.data.language;
  document.documentElement.lang = tag;
  const codes = Object.keys(names);
  if (codes.length < 2) return;
  if (!languageChoice) {
    const choice = Object.assign(document.createElement("select"), { className: "language-choice" });
    choice.append(...codes.map((each) => Object.assign(new Option(names[each], each), { lang: each })));
    choice.addEventListener("change", () => server.setTriggerValue("language", choice.value));
    for (const act of ["pointerover", "focusin"]) addEventListener(act, completeLink);
    languageChoice = choice;
  }
  languageChoice.title = languageChoice.ariaLabel = title;
  languageChoice.value = code;
  placeChoice();
}

/** Put the choice of a language into the header. */
export function placeChoice() {
  if (languageChoice && !languageChoice.isConnected) document.querySelector(TOOLBAR_ACTIONS)?.after(languageChoice);
}

/**
 * Add the language to a link of the menu, which a visitor may open in another tab.
 * @param {Event} event
 */
function completeLink({ target }) {
  const link = target instanceof Element && target.closest(MENU_LINKS);
  if (link instanceof HTMLAnchorElement) link.search = server.data.language.query;
}
