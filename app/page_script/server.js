// What the last run of the script on the server sent to the page, and the functions that report to the server.

/** @typedef {(name: string, value: unknown) => void} Report */
/** @typedef {{ code: string, tag: string, names: Record<string, string>, title: string, query: string }} Language */
/**
 * The current section and page of the menu, and the names of the button that opens the panel on the left, next to the
 * menu and in place of it. Of the language: all languages by their codes, and the query that keeps the language.
 * @typedef {{ section: string, page: string, input: string, menu: string, language: Language }} PageData
 */

/** @type {{ data: PageData, setStateValue: Report, setTriggerValue: Report }} */
export const server = /** @type {any} */ ({});
