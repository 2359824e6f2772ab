// Streamlit adds one entry to the browser's history for a page and another for the query that the script writes, in
// either order, so "back" would first lead to an intermediate state. Here an address that follows without an action of
// the visitor replaces the previous one. One step back then undoes one action.

/** Keep one history entry per action. */
export function keepHistory() {
  let hasActed = false; // since the last entry
  const noteAction = () => (hasActed = true);
  for (const act of ["pointerdown", "keydown", "click", "change"]) addEventListener(act, noteAction, { capture: true });
  addEventListener("popstate", () => (hasActed = false), { capture: true });
  const push = history.pushState.bind(history);
  history.pushState = (...entry) => {
    (hasActed ? push : history.replaceState.bind(history))(...entry);
    hasActed = false;
  };
}
