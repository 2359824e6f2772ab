// Keeps one entry per action of the visitor in the browser's history, so that one step back undoes one action. Streamlit
// adds an entry for a new page and another entry for the query that the app writes, in either order. Here, an address that
// follows without an action of the visitor replaces the previous address.

/** Replace ``history.pushState``. */
export function keepHistory() {
  let hasActed = false; // whether the visitor has acted since the last entry
  const noteAction = () => (hasActed = true);
  for (const act of ["pointerdown", "keydown", "click", "change"]) addEventListener(act, noteAction, { capture: true });
  addEventListener("popstate", () => (hasActed = false), { capture: true });
  const push = history.pushState.bind(history);
  history.pushState = (...entry) => {
    (hasActed ? push : history.replaceState.bind(history))(...entry);
    hasActed = false;
  };
}
