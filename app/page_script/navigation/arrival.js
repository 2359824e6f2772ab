// Scrolls a panel into view when it opens on the Claims page, and keeps it in view while the page is drawn.

import { PAGE_BODY } from "../selectors.js";

const NEW_PANEL = '[class*="st-key-claims-panel-"]';

/** Scroll new panels into view. The style sheet animates each new panel, and the start of this animation is observed. */
export function scrollToNewPanels() {
  /** @type {Element | null} */
  let newPanel = document.querySelector(NEW_PANEL);
  const observer = new ResizeObserver(scrollIntoPlace);

  function scrollIntoPlace() {
    if (!newPanel?.isConnected) return;
    const { top } = newPanel.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) newPanel.scrollIntoView();
  }

  function observePage() {
    const page = newPanel?.closest(PAGE_BODY);
    if (page) observer.observe(page); // calls `scrollIntoPlace` immediately
  }

  addEventListener("animationstart", ({ animationName, target }) => {
    if (animationName !== "arrival" || !(target instanceof Element)) return;
    newPanel = target;
    observePage();
  });
  for (const act of ["wheel", "pointerdown", "keydown"]) {
    // after any input, the page no longer scrolls by itself
    addEventListener(act, () => observer.disconnect(), { capture: true, passive: true });
  }
  observePage();
}
