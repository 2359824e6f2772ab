// Fills values into translated sentences in the browser. This module does not use the DOM.

// The blocks of right-to-left scripts and Arabic digits, and the right-to-left mark.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const ISOLATED = /\u2068[^\u2068\u2069]*\u2069/g;

/**
 * Return words so that they can be part of a sentence: right-to-left words swap places with the numbers and quotation
 * marks next to them unless they are isolated. `isolate` in app/words/isolation.py does the same in Python.
 * @param {string} text
 */
export const isolated = (text) => (RIGHT_TO_LEFT.test(text.replace(ISOLATED, "")) ? `\u2068${text}\u2069` : text);

// In a Chinese template, a Unicode noncharacter replaces the spaces next to placeholders. After the values are inserted,
// it is removed between two Chinese characters or punctuation marks, and becomes a space elsewhere. `_` in app/words/i18n.py does the same in Python.
const NEXT_TO_VALUE = / (?=\{)|(?<=\}) /g;
const HAN = /[\u3400-\u4dbf\u4e00-\u9fff]/;
const WIDE = "[\u3400-\u4dbf\u4e00-\u9fff\u3001-\u3011\uff01-\uff60“”]";
const SUPERFLUOUS = new RegExp(`(?<=${WIDE})\ufdd0(?=${WIDE})`, "g");

/**
 * Return a template with its `{name}` places filled in. Each value appears exactly as given: a value that holds `$&` or
 * `{name}` changes nothing else. Right-to-left values are isolated. A Chinese template has spaces next to its values,
 * because there is a space between a Chinese and a Latin word. Spaces between two Chinese words are removed.
 * @param {string} template
 * @param {Record<string, string>} values
 */
export const fill = (template, values) =>
  (HAN.test(template) ? template.replace(NEXT_TO_VALUE, "\ufdd0") : template)
    .replace(/\{(\w+)\}/g, (whole, name) => (name in values ? isolated(values[name]) : whole))
    .replace(SUPERFLUOUS, "")
    .replaceAll("\ufdd0", " ");
