// Moves the query word along the sentence once, when the page opens, to show the visitor that it can move.

// The tour lasts at most 1.3 seconds, because the texts already describe the word at which it ends.
const DELAY = 300; // milliseconds before the first word
const PACE = 120; // milliseconds per word
const MAX_WORDS = 8; // the tour starts at most this many words before the chosen word
const INPUT = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

export class Tour {
  isMoving = false;
  isDone = matchMedia("(prefers-reduced-motion: reduce)").matches;
  /** @type {number | undefined} */
  timer;

  /** @param {(word: number | null) => void} show called with each word, and with null at the end */
  constructor(show) {
    this.show = show;
    this.onInput = (/** @type {Event} */ event) => {
      // Browsers also report a pointer move if the page changes under a resting pointer.
      if (event instanceof PointerEvent && event.type === "pointermove" && !event.movementX && !event.movementY) return;
      this.stop();
    };
    if (!this.isDone) for (const type of INPUT) addEventListener(type, this.onInput, { capture: true, passive: true });
  }

  /**
   * Start the tour, unless the visitor prefers no motion, has used the page already, or has seen the tour.
   * @param {number} chosen the word at which the tour ends
   */
  start(chosen) {
    if (this.isDone || this.isMoving || !chosen) return;
    this.isMoving = true;
    let word = Math.max(0, chosen - MAX_WORDS);
    const step = () => {
      if (word === chosen) return this.stop();
      this.show(word++);
      this.timer = setTimeout(step, PACE);
    };
    this.timer = setTimeout(step, DELAY);
  }

  /** End the tour permanently, at the chosen word. */
  stop() {
    if (this.isDone) return;
    this.isDone = true;
    clearTimeout(this.timer);
    for (const type of INPUT) removeEventListener(type, this.onInput, { capture: true });
    if (!this.isMoving) return;
    this.isMoving = false;
    this.show(null);
  }
}
