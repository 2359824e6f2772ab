// Settings are sent separately from the matrices, and the drawing code separately from both. The components of a board
// share no script, only the page.
/** @import { Mounted } from "../messages" */

/** @typedef {{ draw(mounted: Mounted<Uint8Array>): void, drop(host: object): void }} Drawing */

const KEPT = Symbol.for("attention-lab.board");
/** @type {{ told: Map<string, string>, waiting: Map<object, Mounted<Uint8Array>>, drawing?: Drawing }} */
export const channel = /** @type {any} */ (globalThis)[KEPT] ??= { told: new Map(), waiting: new Map() };

/** The last settings of each board, as JSON, by the board's key. */
export const told = channel.told;

/** The event that reports new settings of a board. */
export const TOLD = "attention-lab:settings";
