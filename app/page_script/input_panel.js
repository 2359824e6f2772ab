// From the line that says what a page looks at to the panel where that is chosen, which may be folded away.

const WAY = "#input";
const UNFOLD = '[data-testid="stExpandSidebarButton"]';
const CHOICES = '[data-testid="stSidebar"] :is(button, input, textarea)';
const UNFOLDED = 400; // milliseconds that the panel takes to come in

export function leadToInput() {
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link || link.hash !== WAY) return;
    event.preventDefault(); // the address holds what is on screen
    const button = /** @type {HTMLElement | null} */ (document.querySelector(UNFOLD));
    button?.click();
    setTimeout(enter, button ? UNFOLDED : 0);
  });
}

/** Be where the first choice is, the way it is folded away again passed over. */
function enter() {
  const choices = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(CHOICES));
  [...choices].find((choice) => !choice.closest('[data-testid="stSidebarHeader"]'))?.focus();
}
