// Sentences with places for values, filled in the browser. No DOM.

/**
 * Return a template with its `{name}` places filled in. Each value appears exactly as given: a value that holds `$&` or
 * `{name}` changes nothing else.
 * @param {string} template
 * @param {Record<string, string>} values
 */
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
