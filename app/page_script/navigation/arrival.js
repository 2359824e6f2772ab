// Scrolls a panel that opens in its place into view, and keeps it there while the page is drawn.

import { PAGE_BODY } from "../selectors.js";

const NEW_PANEL = '[class*="st-key-claims-panel-"]';

/** Scroll new panels into view; the style sheet's animation reports them. */
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
    if (page) observer.observe(page); // reports its size immediately
  }

  addEventListener("animationstart", ({ animationName, target }) => {
    if (animationName !== "arrival" || !(target instanceof Element)) return;
    newPanel = target;
    observePage();
  });
  for (const act of ["wheel", "pointerdown", "keydown"]) {
    addEventListener(act, () => observer.disconnect(), { capture: true, passive: true }); // the visitor scrolls now
  }
  observePage();
}
