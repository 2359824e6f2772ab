// The component that receives a board's numbers at each rerun and theme change, and passes them to the page's script, which
// draws them. The drawing code is not in the component, because Streamlit sends a component's script with each of its
// messages.
/** @import { Mounted } from "../messages" */

import { channel } from "./channel.js";

/** @param {Mounted<Uint8Array>} mounted */
export default function (mounted) {
  const host = mounted.parentElement;
  if (channel.drawing) channel.drawing.draw(mounted);
  else channel.waiting.set(host, mounted);
  return () => {
    channel.waiting.delete(host);
    channel.drawing?.unmount(host);
  };
}
