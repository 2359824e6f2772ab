// The second, small channel of a board: words, scale and pin travel here, so that a click does not send the matrices again.

const SETTINGS = Symbol.for("attention-lab.settings");

export default function ({ data }) {
  (globalThis[SETTINGS] ??= new Map()).set(data.board, { text: JSON.stringify(data) });
  dispatchEvent(new CustomEvent("attention-lab:settings", { detail: data.board }));
}
