// The boards (matrices side by side) on the page, by key, for other components that show the numbers of a board.

/** @type {Map<string, import("../views/board.js").Board>} */
export const boards = new Map();

/**
 * Functions that send the value of a dragged knob (a slider on a panel) to Python, by the board's key. Python then sends
 * only the panel of this knob.
 * @type {Map<string, import("../messages").Send>}
 */
export const dragSenders = new Map();

/** The event that reports that a board was painted again. */
export const PAINTED = "attention-lab:drawn";
