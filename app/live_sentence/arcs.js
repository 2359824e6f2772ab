// Computes the shape of the arc between two words from their positions, and its width from the attention weight. This
// module does not use the DOM.
/** @import { WordBox } from "./sentence_messages" */

const FLAT = 14; // the height of the arc to a neighbour, in pixels
const STEEP = 0.1; // added height per pixel of distance
const LOOP = 13; // half the width of a loop from a word to itself
const THICK = 11; // the width of an arc with weight one
const CLEAR = 4; // pixels between the highest arcs and what is above them

/** The height of a Bézier curve's inner points relative to its peak, if both inner points have the same height. */
const REACH = 4 / 3;

/**
 * Return the path of the arc from one word to another or to itself. The arc is above the words if both are in the same
 * line of text; otherwise it is in the space between their lines of text. It does not cover the numbers below a line.
 * @param {WordBox} from
 * @param {WordBox} to
 */
export function arcPath(from, to) {
  const [x, y] = [from.middle, from.top];
  const highest = REACH * (from.room - CLEAR - THICK / 2);
  if (from === to) {
    const rise = Math.min(highest, 2 * FLAT);
    return `M${x - 5} ${y}C${x - LOOP} ${y - rise} ${x + LOOP} ${y - rise} ${x + 5} ${y}`;
  }
  if (from.top === to.top) {
    const rise = Math.min(highest, REACH * (FLAT + STEEP * Math.abs(to.middle - x)));
    return `M${x} ${y}C${x} ${y - rise} ${to.middle} ${y - rise} ${to.middle} ${y}`;
  }
  const [start, end] = from.top > to.top ? [y, to.bottom + THICK / 2] : [from.bottom + THICK / 2, to.top];
  const bend = (end - start) / 2;
  return `M${x} ${start}C${x} ${start + bend} ${to.middle} ${end - bend} ${to.middle} ${end}`;
}

/**
 * Return the width and opacity of a weight's arc, and the shade (0 to 1) of the word that the arc leads to. They depend
 * only on the weight, so rows, words and sentences can be compared.
 * @param {number} weight
 */
export function arcStroke(weight) {
  const size = Math.min(1.2, Math.abs(weight)); // signed weights can exceed one
  if (!(size >= 0.005)) return { width: 0, opacity: 0, shade: 0 };
  return { width: 0.6 + (THICK - 0.6) * size, opacity: Math.min(1, 0.25 + 0.75 * Math.sqrt(size)), shade: Math.min(1, size) };
}
