// The boards on the page by their keys, for what shows the same numbers in another way.

/** @type {Map<string, import("./board.js").Board>} */
export const boards = new Map();

/** The event that says which board was painted or marked anew. */
export const PAINTED = "attention-lab:drawn";
