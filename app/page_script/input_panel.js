// Handles the link from a page's input line to the input panel, which may be folded.

const WAY = "#input";
const UNFOLD = '[data-testid="stExpandSidebarButton"]';
const CHOICES = '[data-testid="stSidebar"] :is(button, input, textarea)';
const UNFOLDED = 400; // milliseconds that the panel takes to unfold

export function leadToInput() {
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link || link.hash !== WAY) return;
    event.preventDefault(); // the address describes the screen and must not change
    const button = /** @type {HTMLElement | null} */ (document.querySelector(UNFOLD));
    button?.click();
    setTimeout(enter, button ? UNFOLDED : 0);
  });
}

/** Focus the panel's first control, skipping the button that folds it. */
function enter() {
  const choices = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(CHOICES));
  [...choices].find((choice) => !choice.closest('[data-testid="stSidebarHeader"]'))?.focus();
}
