// Scrolls the figure that a lesson's step asks about into view, when the step opens and when its answer is shown.

import { FIGURES, MAIN, PAGE_BODY, TABLES } from "../page_script/selectors.js";

const CARD = ".st-key-lesson";
/** The smallest height of a figure in pixels; components with less height are scripts and controls. */
const MIN_HEIGHT = 120;
/** Pixels that Streamlit's header covers. */
const HEADER = 64;

/**
 * Return whether a component is a figure. Scripts, controls and the strips of text above a board are not figures.
 * @param {Element} host
 */
function isFigure(host) {
  return host.getBoundingClientRect().height >= MIN_HEIGHT && !host.shadowRoot?.querySelector(".strips");
}

/**
 * On a narrow screen, keep an open question in view while the page scrolls, and scroll to the card when it is answered.
 * @param {Element} card
 */
function showQuestion(card) {
  const question = card.querySelector(".ask");
  const isOpen = question && !card.querySelector(".answer");
  const above = question ? question.getBoundingClientRect().top - card.getBoundingClientRect().top : 0;
  document.documentElement.style.setProperty("--lesson-top", isOpen ? `${HEADER - above}px` : "auto");
  if (!isOpen) card.scrollIntoView({ block: "start" });
}

/**
 * Scroll to the figure at each new step and each answer. In style.css, their elements have an animation, so the browser
 * reports the start of an animation whenever such an element is added.
 */
export function showFigures() {
  const observer = new ResizeObserver(show);

  function show() {
    const card = document.querySelector(CARD);
    if (!card) return;
    if (getComputedStyle(card).position !== "fixed") {
      showQuestion(card);
      return;
    }
    const table = card.querySelector("[data-figure=table]") && document.querySelector(TABLES);
    const figure = table ?? [...document.querySelectorAll(FIGURES)].find(isFigure);
    if (!figure) return;
    const { top, bottom } = figure.getBoundingClientRect();
    // Scroll little, so that the sentence above a figure stays in view: it often contains the answer.
    document.querySelector(MAIN)?.scrollBy(0, Math.min(bottom - innerHeight, top - HEADER));
  }

  function watch() {
    const page = document.querySelector(PAGE_BODY);
    if (page) observer.observe(page); // calls `show` immediately, and whenever the page grows while it is drawn
  }

  addEventListener("animationstart", ({ animationName }) => {
    if (animationName === "lesson-step") watch();
  });
  for (const type of ["wheel", "pointerdown", "keydown"]) {
    // after any input, the page no longer scrolls by itself
    addEventListener(type, () => observer.disconnect(), { capture: true, passive: true });
  }
  if (document.querySelector(CARD)) watch();
}
