// Marks each glossary term at its first occurrence on a page, and shows its definition on hover, focus or touch. Also shows
// the names of links that consist of an icon or a number, as soon as the pointer is on them.
//
// Streamlit keeps changing its text nodes. The original text node therefore stays in place and keeps the words before the
// term. An element with the term and a node with the words after the term follow it. Both are removed when Streamlit
// changes the text of the original node.

import { APP, SENTENCES } from "./selectors.js";

const EXCLUDED = "button, a, label, summary, pre, code, .katex, [role=tooltip]";
const QUOTATION = /“[^”]*”/g; // quoted text, which visitors typed
const TERM = "glossary-term";
const NAMED_LINK = 'a[href^="#?"]'; // if it has a title, a phone may show only an icon or a number of it
const SPECIAL_CHARACTERS = /[.*+?^${}()|[\]\\]/g;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
const SPACED = `(?!${UNSPACED.source})[\\p{L}\\p{N}_-]`;

/** @typedef {{ node: Text, text: string, term: HTMLElement, textAfter: Text }} MarkedTerm */

/** @typedef {[meaning: string, forms: string[]][]} Glossary */
/** @typedef {{ text: string, terms: { form: string, index: number }[] }} NodeTerms */

/** @type {Glossary | undefined} */
let shownTerms;
/** @type {Map<string, string>} */
const meanings = new Map();
let termPattern = /(?!)/gu;
/** The terms in each node. A page changes in many frames while it is drawn, and most of its text stays the same.
 * @type {WeakMap<Text, NodeTerms>} */
let termsByNode = new WeakMap();

/**
 * Explain the terms of a glossary. Called again with another glossary when the visitor changes the language.
 * @param {Glossary} terms
 */
export function explainTerms(terms) {
  if (terms === shownTerms) return;
  const isFirst = !shownTerms;
  shownTerms = terms;
  meanings.clear();
  termsByNode = new WeakMap();
  for (const [meaning, forms] of terms) for (const form of forms) meanings.set(form.toLowerCase(), meaning);
  const forms = [...meanings.keys()].sort((a, b) => b.length - a.length);
  const [unspaced, spaced] = [true, false].map((kind) => forms.filter((form) => UNSPACED.test(form[0]) === kind));
  // The test that no letter precedes a term is slow, so one test is used for all terms together.
  const starts = spaced.length ? [`(?<!${SPACED})(?:${spaced.map(termSource).join("|")})`] : [];
  termPattern = new RegExp([...starts, ...unspaced.map(termSource)].join("|"), "giu");
  if (isFirst) watchTerms();
}

/**
 * Return a regular expression for a term that is not part of a longer word: no letter or digit may follow. Chinese and
 * Japanese have no spaces between words, so their characters may follow a term, and any letter may follow theirs.
 * @param {string} form
 */
function termSource(form) {
  return form.replace(SPECIAL_CHARACTERS, "\\$&") + (UNSPACED.test(form.at(-1) ?? "") ? "" : `(?!${SPACED})`);
}

/**
 * Return the terms in a node, except between quotation marks.
 * @param {Text} node
 */
function findTerms(node) {
  const cached = termsByNode.get(node);
  if (cached?.text === node.data) return cached.terms;
  const unquoted = node.data.replace(QUOTATION, (quotation) => "“".repeat(quotation.length));
  const terms = [...unquoted.matchAll(termPattern)].map(({ 0: form, index }) => ({ form, index }));
  termsByNode.set(node, { text: node.data, terms });
  return terms;
}

function watchTerms() {
  /** @type {Set<MarkedTerm>} */
  const marked = new Set();
  const bubble = makeBubble();
  /** @type {number | undefined} */
  let frame;

  /** Remove marked terms, with the text nodes after them, if their original text node has changed or moved. */
  function removeStale() {
    for (const each of marked) {
      const { node, text, term, textAfter } = each;
      if (node.isConnected && node.data === text && node.nextSibling === term && term.nextSibling === textAfter) continue;
      marked.delete(each);
      term.remove();
      textAfter.remove();
    }
  }

  function markTerms() {
    frame = undefined;
    for (const link of document.querySelectorAll(`${NAMED_LINK}[title]`)) nameLink(/** @type {HTMLElement} */ (link));
    const markedMeanings = new Set([...marked].map(({ term }) => meanings.get((term.textContent ?? "").toLowerCase())));
    for (const sentence of document.querySelectorAll(SENTENCES)) {
      if (sentence.closest(EXCLUDED)) continue;
      const texts = [sentence, ...sentence.querySelectorAll("strong, em")].flatMap(({ childNodes }) => [...childNodes]);
      for (const node of texts) if (node instanceof Text) markNode(node, markedMeanings);
    }
  }

  /**
   * @param {Text} node
   * @param {Set<string | undefined>} markedMeanings
   */
  function markNode(node, markedMeanings) {
    for (const { form, index } of findTerms(node)) {
      const meaning = meanings.get(form.toLowerCase());
      if (markedMeanings.has(meaning)) continue;
      markedMeanings.add(meaning);
      const textAfter = node.splitText(index);
      const term = Object.assign(document.createElement("span"), { className: TERM, tabIndex: 0 });
      term.textContent = textAfter.data.slice(0, form.length);
      textAfter.data = textAfter.data.slice(form.length);
      textAfter.before(term);
      // A term further on in this text may already be marked. The node directly before that term is now `textAfter`.
      for (const each of marked) if (each.node === node) Object.assign(each, { node: textAfter, text: textAfter.data });
      marked.add({ node, text: node.data, term, textAfter });
      return markNode(textAfter, markedMeanings); // mark the terms in the rest of the text
    }
  }

  new MutationObserver(() => {
    removeStale();
    frame ??= requestAnimationFrame(markTerms); // before the changed text is painted
  }).observe(document.body, { childList: true, characterData: true, subtree: true });

  /** @param {Event} event */
  const showMeaning = ({ target }) => {
    const term = target instanceof Element && /** @type {HTMLElement | null} */ (target.closest(`.${TERM}`));
    const link = target instanceof Element && /** @type {HTMLElement | null} */ (target.closest(`${NAMED_LINK}[aria-label]`));
    if (term) bubble.show(term, meanings.get((term.textContent ?? "").toLowerCase()) ?? "");
    else if (link) bubble.show(link, link.ariaLabel ?? "");
    else if (!(target instanceof Element && target.closest("[role=tooltip]"))) bubble.hide();
  };
  addEventListener("pointerover", showMeaning);
  addEventListener("focusin", showMeaning);
  addEventListener("focusout", () => bubble.hide());
  addEventListener("scroll", () => bubble.hideIfMoved(), true);
  addEventListener("keydown", ({ key }) => key === "Escape" && bubble.hide());
  markTerms();
}

/**
 * Make a link's tooltip its name for screen readers. A browser shows tooltips late, and screen readers may not read them.
 * @param {HTMLElement} link
 */
function nameLink(link) {
  link.ariaLabel = link.title;
  link.removeAttribute("title");
}

/** Create the tooltip that all terms and links share. */
function makeBubble() {
  const bubble = Object.assign(document.createElement("div"), { id: "glossary-meaning", hidden: true });
  bubble.setAttribute("role", "tooltip");
  (document.querySelector(APP) ?? document.body).append(bubble);
  /** @type {HTMLElement | undefined} */
  let shownTerm;
  let shownTop = 0;

  function hide() {
    shownTerm?.removeAttribute("aria-describedby");
    shownTerm = undefined;
    bubble.hidden = true;
  }

  /**
   * @param {HTMLElement} term
   * @param {string} meaning
   */
  function show(term, meaning) {
    if (term === shownTerm) return;
    hide();
    shownTerm = term;
    bubble.textContent = meaning;
    bubble.hidden = false;
    if (term.ariaLabel !== meaning) term.setAttribute("aria-describedby", bubble.id);
    const { left, top, bottom } = term.getBoundingClientRect();
    shownTop = top;
    const { width, height } = bubble.getBoundingClientRect();
    bubble.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    bubble.style.top = `${bottom + height + 8 < innerHeight ? bottom + 2 : top - height - 2}px`;
  }

  /** Hide the tooltip unless its term is where it was shown: the event of a scroll that brought it into view comes later. */
  function hideIfMoved() {
    if (shownTerm?.getBoundingClientRect().top !== shownTop) hide();
  }

  return { show, hide, hideIfMoved };
}
