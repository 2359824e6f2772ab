// The data that the last run on the server sent to the page's script, and the functions that report to the server.

/** @typedef {(name: string, value: unknown) => void} Report */
/** @typedef {{ code: string, tag: string, names: Record<string, string>, title: string, query: string }} Language */
/**
 * `section` and `page` are the current ones in the menu. The button that opens the sidebar has the name `menu` while
 * the sidebar contains the menu, and the name `input` otherwise. `language.names` holds the names of all languages by
 * code, and `language.query` keeps the language in links. `opening` is a query with the values that the app opened with,
 * if the address had no query; after the session's first run it is empty.
 * @typedef {{
 *   section: string, page: string, usesInput: boolean, isPresenting: boolean, input: string, menu: string,
 *   language: Language, opening: string
 * }} PageData
 */

/** @type {{ data: PageData, setStateValue: Report, setTriggerValue: Report }} */
export const server = /** @type {any} */ ({});
