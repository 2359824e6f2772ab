// Opens links in Markdown and components within the session, like menu links: a new session would lose an uploaded
// file.

/** Handle clicks on links. */
export function followWays() {
  addEventListener("click", follow);
}

const CHANGE = "#?"; // begins a link that changes only some values of the current address, such as "#?claim=drowning"

/** @param {MouseEvent} event */
function follow(event) {
  const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
  const wanted = `a.way, a[href^="${CHANGE}"]`;
  const way = event.composedPath().find((each) => each instanceof Element && each.matches(wanted)); // also in components
  if (!(way instanceof HTMLAnchorElement) || button || ctrlKey || metaKey || shiftKey || altKey) return;
  event.preventDefault();
  go(way.hash.startsWith(CHANGE) ? changed(way.hash.slice(CHANGE.length)) : way.href);
}

/**
 * Return the current address with other values.
 * @param {string} values as in a query
 */
function changed(values) {
  const there = new URL(location.href);
  const given = new URLSearchParams(values);
  for (const name of given.keys()) there.searchParams.delete(name);
  for (const [name, value] of given) there.searchParams.append(name, value);
  return there.href;
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
