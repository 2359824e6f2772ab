// After reconnecting to another server or an ended session, the server has not drawn anything yet, so a change in a
// fragment would rerun a fragment that does not exist. The whole page is therefore rerun from its address.

const LINKED = "data-test-connection-state";
const IS_THERE = "CONNECTED";

/** @type {((time: number) => void) | undefined} */
let askAgain;

/** @param {(time: number) => void} drawAgain requests a run of the whole page */
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
