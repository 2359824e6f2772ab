// After reconnecting to another server or an ended session, the server has not drawn anything yet, so a change in a
// fragment would rerun a fragment that does not exist. The whole page is therefore rerun from its address.

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
