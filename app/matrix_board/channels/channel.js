// The data that all components of the boards on a page share. Matrices, settings and the drawing code arrive in separate
// components, which share no script, so this data is a property of the page's global object.
/** @import { Mounted } from "../messages" */

/** @typedef {{ draw(mounted: Mounted<Uint8Array>): void, unmount(host: object): void }} Drawing */

const CHANNEL = Symbol.for("attention-lab.board");
/** @type {{ lastSettings: Map<string, string>, waiting: Map<object, Mounted<Uint8Array>>, drawing?: Drawing }} */
export const channel = /** @type {any} */ (globalThis)[CHANNEL] ??= { lastSettings: new Map(), waiting: new Map() };

/** The last settings of each board, as JSON, by the board's key. */
export const lastSettings = channel.lastSettings;

/** The event that reports new settings of a board. */
export const SETTINGS_CHANGED = "attention-lab:settings";
