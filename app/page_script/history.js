// Streamlit adds one entry to the browser's history for a page and another for the query that the script writes for it,
// in either order, so that "back" would first lead to a half-way place. Here an address that follows without the visitor
// having done anything in between takes the place of the one before: whatever one does is undone by one step back.

/** Keep the history in steps. */
export function keepHistory() {
  let acted = false; // since the entry that stands last
  const note = () => (acted = true);
  for (const act of ["pointerdown", "keydown", "click", "change"]) addEventListener(act, note, { capture: true });
  addEventListener("popstate", () => (acted = false), { capture: true });
  const push = history.pushState.bind(history);
  history.pushState = (...entry) => {
    (acted ? push : history.replaceState.bind(history))(...entry);
    acted = false;
  };
}
