// While a lesson is presented to a class, the left and right arrow keys go to its previous and next step, unless the
// focused element uses these keys.

const USES_ARROWS = "input, textarea, select, [contenteditable], [role=slider], [role=radio], [role=tab], [tabindex='0']";

/** Handle arrow keys. */
export function stepByArrows() {
  addEventListener("keydown", (event) => {
    const kind = { ArrowRight: "after", ArrowLeft: "before" }[event.key];
    if (!kind || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const [focused] = event.composedPath(); // the focused element, also inside a component's shadow root
    if (focused instanceof Element && focused.matches(USES_ARROWS)) return;
    const link = document.querySelector(`.lesson-head.present a.${kind}`);
    if (!(link instanceof HTMLElement)) return;
    event.preventDefault();
    link.click();
  });
}
