// When presenting to a class, the arrow keys go through a lesson's steps, unless the focused element uses them.

const HELD = "input, textarea, select, [contenteditable], [role=slider], [role=radio], [role=tab], [tabindex='0']";

/** Handle arrow keys. */
export function stepByArrows() {
  addEventListener("keydown", (event) => {
    const kind = { ArrowRight: "after", ArrowLeft: "before" }[event.key];
    if (!kind || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const [held] = event.composedPath(); // also in components
    if (held instanceof Element && held.matches(HELD)) return;
    const way = document.querySelector(`.lesson-head.present a.${kind}`);
    if (!(way instanceof HTMLElement)) return;
    event.preventDefault();
    way.click();
  });
}
