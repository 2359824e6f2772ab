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
  go(way.href);
}

/**
 * Lead to an address of the app.
 * @param {string} address
 */
export function go(address) {
  history.pushState(null, "", framed(new URL(address, document.baseURI)));
  dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens what the address says
  scrollTo(0, 0);
}

/**
 * The address as the frame of another page opens it, where this one stands in such a frame.
 * @param {URL} there
 */
function framed(there) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "embed" || name === "embed_options") there.searchParams.append(name, value);
  }
  return there.href;
}
