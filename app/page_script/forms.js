// Reports the form that was opened last: the server builds no other.

const NAMED = "st-key-";
/** @type {(name: string) => void} */
let report;
let opened = "";

/**
 * Report each form that is opened.
 * @param {(name: string) => void} send
 */
export function watchForms(send) {
  const first = !report;
  report = send;
  if (first) addEventListener("click", notice, { capture: true });
}

/** @param {Event} event */
function notice({ target }) {
  const button = target instanceof Element && target.closest('[data-testid="stPopoverButton"]');
  const named = button && button.closest(`[class*="${NAMED}"]`);
  const name = named && [...named.classList].find((each) => each.startsWith(NAMED))?.slice(NAMED.length);
  if (!name || name === opened) return;
  opened = name;
  report(name);
}
