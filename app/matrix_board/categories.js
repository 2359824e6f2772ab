// Boards whose numbers are categories instead of magnitudes: 1 is the first category, 0 is no category.
/** @import { Category, Look, Mode, Pen } from "./types" */

import { fromHex, HALF, LARGEST, packed, PALETTES } from "./color.js";
import { LEGEND_HEIGHT, swatchPlaces } from "./panel.js";

/**
 * Return the index of a code's category in the list, -1 for no category.
 * @param {number} code
 * @param {number} unit
 */
export const kindOf = (code, unit) => Math.round(HALF[code] * unit) - 1;

/**
 * Return the colour of each code of a panel with categories.
 * @param {Category[]} categories
 * @param {number} unit
 * @param {Mode} mode
 */
export function categoryTable(categories, unit, mode) {
  const table = new Uint32Array(65536);
  const colours = categories.map((category) => packed(fromHex(category[mode])));
  const none = packed(fromHex(PALETTES[mode].none));
  for (let code = 0; code <= LARGEST; code++) table[code] = colours[kindOf(code, unit)] ?? none;
  return table;
}

/**
 * Return the position of each name in a legend of categories, and the total height.
 * @param {Pen} pen
 * @param {number} width
 * @param {string[]} names
 */
export function legendPlaces(pen, width, names) {
  const { places, height } = swatchPlaces(pen, width, names);
  return { places, height: Math.max(LEGEND_HEIGHT, 16 + height) };
}

/** Return the categories that a legend lists. */
const listedOf = (/** @type {Look} */ { categories }) => (categories ?? []).filter(({ listed }) => listed);

/**
 * Return the names that a legend of categories shows.
 * @param {Look} look
 * @param {string | null} masked
 */
export const legendNames = (look, masked) =>
  [...listedOf(look).map(({ name }) => name), look.words.none, masked ?? ""].filter(Boolean);

/**
 * Draw swatches with names: the listed categories, "no category", and masked cells.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {Look} look
 * @param {string | null} masked
 */
export function drawCategories(pen, x, y, width, look, masked) {
  const { theme, palette, words } = look;
  pen.text(words.unit, x, y + 6, { colour: theme.muted, weight: 600 });
  const listed = listedOf(look);
  const names = legendNames(look, masked);
  legendPlaces(pen, width, names).places.forEach((place, i) => {
    const [left, top] = [x + place.x, y + 16 + place.y];
    if (i < listed.length) pen.rect(left, top, 14, 12, listed[i][theme.mode]);
    else if (names[i] === words.none) pen.rect(left, top, 14, 12, palette.none);
    else pen.hatch(left, top, 14, 12, palette.hatch);
    pen.frame(left + 0.5, top + 0.5, 13, 11, theme.border);
    pen.text(names[i], left + 19, top + 6, { colour: theme.text });
  });
}
