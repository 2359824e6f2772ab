// Scrolls a panel that opens in its place into view, and keeps it there while the page is drawn.

import { PAGE_BODY } from "../selectors.js";

const ARRIVES = '[class*="st-key-claims-panel-"]';

/** Scroll new panels into view; the style sheet's animation reports them. */
export function showArrivals() {
  /** @type {Element | null} */
  let arrived = document.querySelector(ARRIVES);
  const drawn = new ResizeObserver(show);

  function show() {
    if (!arrived?.isConnected) return;
    const { top } = arrived.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) arrived.scrollIntoView();
  }

  function watch() {
    const page = arrived?.closest(PAGE_BODY);
    if (page) drawn.observe(page); // reports its size immediately
  }

  addEventListener("animationstart", ({ animationName, target }) => {
    if (animationName !== "arrival" || !(target instanceof Element)) return;
    arrived = target;
    watch();
  });
  for (const act of ["wheel", "pointerdown", "keydown"]) {
    addEventListener(act, () => drawn.disconnect(), { capture: true, passive: true }); // the visitor scrolls now
  }
  watch();
}
