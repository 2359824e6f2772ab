// Words, scale and pin travel apart from the matrices, and what draws both apart from either: the components of a board
// share no script, only the page.
/** @import { Mounted } from "./types" */

/** @typedef {{ draw(mounted: Mounted<Uint8Array>): void, drop(host: object): void }} Drawing */

const KEPT = Symbol.for("attention-lab.board");
/** @type {{ told: Map<string, string>, waiting: Map<object, Mounted<Uint8Array>>, drawing?: Drawing }} */
export const channel = /** @type {any} */ (globalThis)[KEPT] ??= { told: new Map(), waiting: new Map() };

/** The settings told last for each board, as JSON, by its key. */
export const told = channel.told;

/** The event that says for which board some were told. */
export const TOLD = "attention-lab:settings";
