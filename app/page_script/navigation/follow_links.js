// Opens links in Markdown and in components within the visitor's session, like links of the menu. Without this module, the
// browser would start a new session, in which an uploaded file is lost.

import { server } from "../server.js";

/** Handle clicks on links. */
export function followLinks() {
  addEventListener("click", follow);
}

const CHANGE_PREFIX = "#?"; // begins a link that changes only some values of the current address, such as "#?claim=drowning"

/** @param {MouseEvent} event */
function follow(event) {
  const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
  const selector = `a.way, a[href^="${CHANGE_PREFIX}"]`;
  const link = event.composedPath().find((each) => each instanceof Element && each.matches(selector)); // also inside a component's shadow root
  if (!(link instanceof HTMLAnchorElement) || button || ctrlKey || metaKey || shiftKey || altKey) return;
  event.preventDefault();
  openAddress(link.hash.startsWith(CHANGE_PREFIX) ? withChanges(link.hash.slice(CHANGE_PREFIX.length)) : link.href);
}

/**
 * Return the current address with other values. Without a query, the app opens with values that may differ from the
 * defaults. In an address with a query, all values that it omits are the defaults. If the current address has no query,
 * the result therefore also contains the values with which the app has opened.
 * @param {string} values as in a query; an empty value is removed from the address
 */
function withChanges(values) {
  const url = new URL(location.href);
  if (!location.search) url.search = server.data.opening;
  const changes = new URLSearchParams(values);
  for (const name of changes.keys()) url.searchParams.delete(name);
  for (const [name, value] of changes) if (value) url.searchParams.append(name, value);
  return url.href;
}

/**
 * Go to an address of the app.
 * @param {string} address
 */
export function openAddress(address) {
  history.pushState(null, "", withEmbedding(new URL(address, document.baseURI)));
  dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens the page at the address
  scrollTo(0, 0);
}

/**
 * Return the address, with Streamlit's parameters for embedding if this page is embedded in another page.
 * @param {URL} url
 */
function withEmbedding(url) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "embed" || name === "embed_options") url.searchParams.append(name, value);
  }
  return url.href;
}
