// Opens links in Markdown and components within the session, like menu links: a new session would lose an uploaded
// file.

/** Handle clicks on links. */
export function followWays() {
  addEventListener("click", follow);
}

/** @param {MouseEvent} event */
function follow(event) {
  const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
  const way = event.composedPath().find((each) => each instanceof Element && each.matches("a.way")); // also in components
  if (!(way instanceof HTMLAnchorElement) || button || ctrlKey || metaKey || shiftKey || altKey) return;
  event.preventDefault();
  go(way.href);
}

/**
 * Go to an address of the app.
 * @param {string} address
 */
export function go(address) {
  history.pushState(null, "", framed(new URL(address, document.baseURI)));
  dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens the page at the address
  scrollTo(0, 0);
}

/**
 * Return the address in the form for the frame, if this page is embedded in another page.
 * @param {URL} there
 */
function framed(there) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "embed" || name === "embed_options") there.searchParams.append(name, value);
  }
  return there.href;
}
