// Explains glossary terms at their first occurrence on a page, to pointer, keyboard and touch.
//
// Streamlit keeps changing its text nodes. The original node therefore stays in place and keeps the words before the
// term. The term and the rest follow it, and both are removed when the node's text changes.

import { APP, SENTENCES } from "./selectors.js";

const OTHERWISE = "button, a, label, summary, pre, code, .katex, [role=tooltip]";
const QUOTED = /“[^”]*”/g; // quotation marks around what visitors typed
const TERM = "glossary-term";
const SIGNS = /[.*+?^${}()|[\]\\]/g;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
const SPACED = `(?!${UNSPACED.source})[\\p{L}\\p{N}_-]`;

/** @typedef {{ node: Text, text: string, term: HTMLElement, rest: Text }} Marked */

/** @typedef {[meaning: string, forms: string[]][]} Glossary */
/** @typedef {{ text: string, terms: { form: string, index: number }[] }} Found */

/** @type {Glossary | undefined} */
let shownTerms;
/** @type {Map<string, string>} */
const meanings = new Map();
let termPattern = /(?!)/gu;
/** The terms in each node. A page changes in many frames while it is drawn, and most of its text stays the same.
 * @type {WeakMap<Text, Found>} */
let foundTerms = new WeakMap();

/**
 * Explain the terms of this glossary, which is another one after the visitor has changed the language.
 * @param {Glossary} terms
 */
export function explainTerms(terms) {
  if (terms === shownTerms) return;
  const first = !shownTerms;
  shownTerms = terms;
  meanings.clear();
  foundTerms = new WeakMap();
  for (const [meaning, forms] of terms) for (const form of forms) meanings.set(form.toLowerCase(), meaning);
  const forms = [...meanings.keys()].sort((a, b) => b.length - a.length);
  const [unspaced, spaced] = [true, false].map((kind) => forms.filter((form) => UNSPACED.test(form[0]) === kind));
  // The test that no letter precedes a term is slow, so one test serves all forms.
  const starts = spaced.length ? [`(?<!${SPACED})(?:${spaced.map(closed).join("|")})`] : [];
  termPattern = new RegExp([...starts, ...unspaced.map(closed)].join("|"), "giu");
  if (first) watchTerms();
}

/**
 * Return a regular expression for a term and its end. A letter or digit after it makes it part of another word, except a
 * Chinese or Japanese one, as these scripts put no spaces between words.
 * @param {string} form
 */
function closed(form) {
  return form.replace(SIGNS, "\\$&") + (UNSPACED.test(form.at(-1) ?? "") ? "" : `(?!${SPACED})`);
}

/**
 * Return the terms in a node, except between quotation marks.
 * @param {Text} node
 */
function termsOf(node) {
  const known = foundTerms.get(node);
  if (known?.text === node.data) return known.terms;
  const open = node.data.replace(QUOTED, (words) => "“".repeat(words.length));
  const terms = [...open.matchAll(termPattern)].map(({ 0: form, index }) => ({ form, index }));
  foundTerms.set(node, { text: node.data, terms });
  return terms;
}

function watchTerms() {
  /** @type {Set<Marked>} */
  const marked = new Set();
  const bubble = makeBubble();
  /** @type {number | undefined} */
  let due;

  /** Remove the additions after nodes whose text has changed. */
  function mend() {
    for (const each of marked) {
      const { node, text, term, rest } = each;
      if (node.isConnected && node.data === text && node.nextSibling === term && term.nextSibling === rest) continue;
      marked.delete(each);
      term.remove();
      rest.remove();
    }
  }

  function look() {
    due = undefined;
    const known = new Set([...marked].map(({ term }) => meanings.get((term.textContent ?? "").toLowerCase())));
    for (const sentence of document.querySelectorAll(SENTENCES)) {
      if (sentence.closest(OTHERWISE)) continue;
      const texts = [sentence, ...sentence.querySelectorAll("strong, em")].flatMap(({ childNodes }) => [...childNodes]);
      for (const node of texts) if (node instanceof Text) mark(node, known);
    }
  }

  /**
   * @param {Text} node
   * @param {Set<string | undefined>} known
   */
  function mark(node, known) {
    for (const { form, index } of termsOf(node)) {
      const meaning = meanings.get(form.toLowerCase());
      if (known.has(meaning)) continue;
      known.add(meaning);
      const rest = node.splitText(index);
      const term = Object.assign(document.createElement("span"), { className: TERM, tabIndex: 0 });
      term.textContent = rest.data.slice(0, form.length);
      rest.data = rest.data.slice(form.length);
      rest.before(term);
      marked.add({ node, text: node.data, term, rest });
      return mark(rest, known); // the following terms, one by one
    }
  }

  new MutationObserver(() => {
    mend();
    due ??= requestAnimationFrame(look); // before the changed text is painted
  }).observe(document.body, { childList: true, characterData: true, subtree: true });

  /** @param {Event} event */
  const point = ({ target }) => {
    const term = target instanceof Element && /** @type {HTMLElement | null} */ (target.closest(`.${TERM}`));
    if (term) bubble.show(term, meanings.get((term.textContent ?? "").toLowerCase()) ?? "");
    else if (!(target instanceof Element && target.closest("[role=tooltip]"))) bubble.hide();
  };
  addEventListener("pointerover", point);
  addEventListener("focusin", point);
  addEventListener("focusout", () => bubble.hide());
  addEventListener("scroll", () => bubble.hide(), true);
  addEventListener("keydown", ({ key }) => key === "Escape" && bubble.hide());
  look();
}

/** Create the tooltip that all terms share. */
function makeBubble() {
  const bubble = Object.assign(document.createElement("div"), { id: "glossary-meaning", hidden: true });
  bubble.setAttribute("role", "tooltip");
  (document.querySelector(APP) ?? document.body).append(bubble);
  /** @type {HTMLElement | undefined} */
  let of;

  function hide() {
    of?.removeAttribute("aria-describedby");
    of = undefined;
    bubble.hidden = true;
  }

  /**
   * @param {HTMLElement} term
   * @param {string} meaning
   */
  function show(term, meaning) {
    if (term === of) return;
    hide();
    of = term;
    bubble.textContent = meaning;
    bubble.hidden = false;
    term.setAttribute("aria-describedby", bubble.id);
    const { left, top, bottom } = term.getBoundingClientRect();
    const { width, height } = bubble.getBoundingClientRect();
    bubble.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    bubble.style.top = `${bottom + height + 8 < innerHeight ? bottom + 2 : top - height - 2}px`;
  }

  return { show, hide };
}
