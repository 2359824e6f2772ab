// What Streamlit calls at each rerun and theme change; the cleanup it is handed runs once, at the end.

const shown = new WeakMap(); // shadow root -> what it shows
const SETTINGS = Symbol.for("attention-lab.settings"); // filled by settings.js

/** The message: length of the header, header as JSON, payload (copied, so that 16-bit numbers lie at even places). */
function unpack(message) {
  const length = new DataView(message.buffer, message.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(message.subarray(4, 4 + length)));
  return { header, payload: message.slice(4 + length).buffer };
}

export default function ({ data, parentElement, setTriggerValue }) {
  let one = shown.get(parentElement);
  const { header, payload } = one?.message === data ? one : unpack(data);
  if (!one) {
    const face = header.kind === "heads" ? new Thumbnails(parentElement) : new Board(parentElement);
    one = { face, ears: new AbortController() };
    shown.set(parentElement, one);
    addEventListener("attention-lab:settings", ({ detail }) => detail === one.header.key && one.adjust(), {
      signal: one.ears.signal,
    });
    one.adjust = () => {
      const settings = globalThis[SETTINGS]?.get(one.header.key);
      if (!settings || settings.text === one.text) return; // a rerun that says nothing new leaves what hands did
      one.text = settings.text;
      face.show(JSON.parse(settings.text));
    };
  }
  const fresh = one.header?.digest !== header.digest;
  Object.assign(one, { header, payload, message: data });
  one.face.send = setTriggerValue;
  one.face.root.dataset.board = header.key;
  one.face.retheme();
  if (fresh) one.face.receive(header, header.kind === "heads" ? new Uint8Array(payload) : new Uint16Array(payload));
  one.adjust();
  return () => {
    one.ears.abort();
    one.face.destroy();
    shown.delete(parentElement);
  };
}
