// The data that the last run on the server sent to the page's script, and the functions that report to the server.

/** @typedef {(name: string, value: unknown) => void} Report */
/** @typedef {{ code: string, tag: string, names: Record<string, string>, title: string, query: string }} Language */
/**
 * The current section and page of the menu, and two names of the button that opens the sidebar: `menu` while the menu is in
 * the sidebar, else `input`. `names` of the language holds all languages by code, and `query` keeps the language in links.
 * `opening` is the query of the screen at an empty address, on a first visit to this address; otherwise empty.
 * @typedef {{
 *   section: string, page: string, usesInput: boolean, isPresenting: boolean, input: string, menu: string,
 *   language: Language, opening: string
 * }} PageData
 */

/** @type {{ data: PageData, setStateValue: Report, setTriggerValue: Report }} */
export const server = /** @type {any} */ ({});
