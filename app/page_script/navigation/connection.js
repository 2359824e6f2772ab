// Reruns the whole page after a lost connection is restored. The browser may now be connected to another server, or its
// session may have ended. The new session has not drawn any fragment (a part that reruns alone), so it could not rerun a
// fragment that the visitor changes.

import { CONNECTED, CONNECTION } from "../selectors.js";
import { server } from "../server.js";

/** Request a run of the whole page when the connection is restored. */
export function watchConnection() {
  const app = document.querySelector(`[${CONNECTION}]`);
  if (!app) return;
  let wasLost = false;
  new MutationObserver(() => {
    const connected = app.getAttribute(CONNECTION) === CONNECTED;
    if (connected && wasLost) server.setStateValue("returned", Date.now());
    wasLost = !connected;
  }).observe(app, { attributeFilter: [CONNECTION] });
}
