// Links inside Markdown and components lead on within the session, as those of the menu do: a new one would lose an uploaded file.

/** Follow them. */
export function followWays() {
  addEventListener("click", follow);
}

/** @param {MouseEvent} event */
function follow(event) {
  const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
  const way = event.composedPath().find((each) => each instanceof Element && each.matches("a.way")); // in components too
  if (!(way instanceof HTMLAnchorElement) || button || ctrlKey || metaKey || shiftKey || altKey) return;
  event.preventDefault();
  history.pushState(null, "", way.href);
  dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens what the address says
  scrollTo(0, 0);
}
