// After reconnecting to another server or an ended session, the server has not drawn anything yet, so a change in a
// fragment would rerun a fragment that does not exist. The whole page is therefore rerun from its address.

import { CONNECTED, CONNECTION } from "../selectors.js";

/** @type {((time: number) => void) | undefined} */
let askAgain;

/** @param {(time: number) => void} drawAgain requests a run of the whole page */
export function watchConnection(drawAgain) {
  const watched = askAgain !== undefined;
  askAgain = drawAgain;
  const app = document.querySelector(`[${CONNECTION}]`);
  if (watched || !app) return;
  let lost = false;
  new MutationObserver(() => {
    const connected = app.getAttribute(CONNECTION) === CONNECTED;
    if (connected && lost) askAgain?.(Date.now());
    lost = !connected;
  }).observe(app, { attributeFilter: [CONNECTION] });
}
