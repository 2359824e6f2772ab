// The boards on the page by key, for components that show the same numbers in another form.

/** @type {Map<string, import("../views/board.js").Board>} */
export const boards = new Map();

/**
 * Functions by board key that send the value of a dragged knob to Python, which then sends only that knob's panel.
 * @type {Map<string, import("../messages").Send>}
 */
export const dragSenders = new Map();

/** The event that reports that a board was painted again. */
export const PAINTED = "attention-lab:drawn";
