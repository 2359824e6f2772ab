// Whoever finds another server, or a session that has ended, stands before one that has drawn nothing yet: a move on a
// part of the page asks for that part alone, which is not there. So the whole page is drawn again, from its address.

const LINKED = "data-test-connection-state";
const IS_THERE = "CONNECTED";

/** @type {((time: number) => void) | undefined} */
let askAgain;

/** @param {(time: number) => void} drawAgain asks for the whole page */
export function watchConnection(drawAgain) {
  const watched = askAgain !== undefined;
  askAgain = drawAgain;
  const app = document.querySelector(`[${LINKED}]`);
  if (watched || !app) return;
  let lost = false;
  new MutationObserver(() => {
    const connected = app.getAttribute(LINKED) === IS_THERE;
    if (connected && lost) askAgain?.(Date.now());
    lost = !connected;
  }).observe(app, { attributeFilter: [LINKED] });
}
