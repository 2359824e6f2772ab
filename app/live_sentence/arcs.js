// From one word's place and weight to an arc's form. No DOM.
/** @import { WordBox } from "./types" */

const FLAT = 14; // pixels that the arc to a neighbour rises
const STEEP = 0.1; // and for each pixel of distance
const LOOP = 13; // half a loop's width, to a word itself
const THICK = 11; // of a weight of one
const BAND = 42; // pixels above a line of words that its arcs may take

/** A Bézier curve with both inner points at one height rises to three quarters of it. */
const REACH = 4 / 3;

/**
 * The path from one word to another, or from one to itself: above their line, or through the room between two lines.
 * @param {WordBox} from
 * @param {WordBox} to
 */
export function path(from, to) {
  const [x, y] = [from.middle, from.top];
  if (from === to) return `M${x - 5} ${y}C${x - LOOP} ${y - 2 * FLAT} ${x + LOOP} ${y - 2 * FLAT} ${x + 5} ${y}`;
  if (from.top === to.top) {
    const up = REACH * Math.min(BAND - THICK / 2, FLAT + STEEP * Math.abs(to.middle - x));
    return `M${x} ${y}C${x} ${y - up} ${to.middle} ${y - up} ${to.middle} ${y}`;
  }
  const [start, end] = from.top > to.top ? [y, to.bottom] : [from.bottom, to.top];
  const bend = (end - start) / 2;
  return `M${x} ${start}C${x} ${start + bend} ${to.middle} ${end - bend} ${to.middle} ${end}`;
}

/**
 * How thick and how opaque the arc of a weight is: the same for every row, every word and every sentence.
 * @param {number} weight
 */
export function stroke(weight) {
  const size = Math.min(1.2, Math.abs(weight)); // what is signed may be larger than one
  if (!(size >= 0.005)) return { width: 0, opacity: 0, shade: 0 };
  return { width: 0.6 + (THICK - 0.6) * size, opacity: Math.min(1, 0.25 + 0.75 * Math.sqrt(size)), shade: Math.min(1, size) };
}
