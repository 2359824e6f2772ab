// The boards on the page by their keys, for what shows the same numbers in another way.

/** @type {Map<string, import("./board.js").Board>} */
export const boards = new Map();

/**
 * What tells Python of a knob that is held, for the boards that are answered with its panel alone.
 * @type {Map<string, import("./types").Send>}
 */
export const holders = new Map();

/** The event that says which board was painted or marked anew. */
export const PAINTED = "attention-lab:drawn";
