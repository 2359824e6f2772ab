// Words, scale and pin travel apart from the matrices, through two components that share no script, only the page.

const KEPT = Symbol.for("attention-lab.settings");
const shared = /** @type {{ [KEPT]?: Map<string, string> }} */ (globalThis);

/** The settings told last for each board, as JSON, by its key. */
export const told = (shared[KEPT] ??= new Map());

/** The event that says for which board some were told. */
export const TOLD = "attention-lab:settings";
