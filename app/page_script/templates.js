// Sentences with places for values, filled in the browser. No DOM.

// The blocks of right-to-left scripts and Arabic digits, and the right-to-left mark.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const ISOLATED = /\u2068[^\u2068\u2069]*\u2069/g;

/**
 * Return words so that they can stand inside a sentence: right-to-left words swap places with the numbers and quotation
 * marks next to them unless they are isolated. `isolated` in app/words/isolation.py does the same in Python.
 * @param {string} words
 */
export const isolated = (words) => (RIGHT_TO_LEFT.test(words.replace(ISOLATED, "")) ? `\u2068${words}\u2069` : words);

/**
 * Return a template with its `{name}` places filled in. Each value appears exactly as given: a value that holds `$&` or
 * `{name}` changes nothing else. Right-to-left values are isolated.
 * @param {string} template
 * @param {Record<string, string>} values
 */
export const fill = (template, values) =>
  template.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? isolated(values[name]) : whole));
