// Colours and legends for boards whose numbers are categories: 1 is the first category, 0 means no category.
/** @import { BoardSettings, Category, Appearance, Mode, Pen } from "../messages" */

import { fromHex, HALF, LARGEST, packColour, PALETTES } from "./color.js";
import { wrapItems } from "./pen.js";

const LEGEND_SIZE = 13; // the font size of a legend

/**
 * A heading or a swatch of a legend; a swatch without a colour is hatched.
 * @typedef {{ name: string, heading?: boolean, colour?: string }} Item
 */

/**
 * Return the index (from 0, in the list of categories) of the category that a half float encodes; -1 for no category.
 * @param {number} code
 * @param {number} unit the power of two that scales the panel's half floats
 */
const categoryIndex = (code, unit) => Math.round(HALF[code] * unit) - 1;

/**
 * Return the colour of each half-float code of a panel with categories.
 * @param {Category[]} categories
 * @param {number} unit the power of two that scales the panel's half floats
 * @param {Mode} mode
 * @param {number} frame the frame of the animation, 0 without one; categories of later frames have the colour of 0
 */
export function categoryTable(categories, unit, mode, frame) {
  const table = new Uint32Array(65536);
  const none = packColour(fromHex(PALETTES[mode].zero));
  const colours = categories.map((each) => (each[mode] && isShown(each, frame) ? packColour(fromHex(each[mode])) : none));
  for (let code = 0; code <= LARGEST; code++) table[code] = colours[categoryIndex(code, unit)] ?? none;
  return table;
}

/** Return whether a frame of the animation shows a category. */
const isShown = (/** @type {Category} */ category, /** @type {number} */ frame) => !frame || category.frame <= frame;

/**
 * Return the name of a code's category in the shown frame.
 * @param {number} code
 * @param {number} unit
 * @param {BoardSettings} settings
 */
export function categoryName(code, unit, { categories, texts, frame }) {
  const category = categories?.[categoryIndex(code, unit)];
  if (!category) return texts.zero;
  return isShown(category, frame) ? category.name : texts.upcoming;
}

/**
 * Return the items of a legend of categories: the groups with their listed categories, and masked cells.
 * @param {Appearance} appearance
 * @param {string | null} masked the name of masked cells; null if there are no such cells
 * @param {string[]} [omitted] the groups whose colours are explained above panels
 * @returns {Item[]}
 */
export function legendItems({ categories, texts, palette, theme }, masked, omitted = []) {
  const listed = (categories ?? []).filter((each) => each.listed && !omitted.includes(each.group));
  const groups = [...new Set([...(texts.zero ? [""] : []), ...listed.map(({ group }) => group)])];
  const items = groups.flatMap((group) => [
    { name: group || texts.unit, heading: true },
    ...listed.filter((each) => each.group === group).map((each) => ({ name: each.name, colour: each[theme.mode] || palette.zero })),
    ...(group || !texts.zero ? [] : [{ name: texts.zero, colour: palette.zero }]),
  ]);
  return masked ? [...items, { name: masked }] : items;
}

/**
 * Return the names of the first and the last category of a group, and the colours of all its categories.
 * @param {Appearance} appearance
 * @param {string} group
 */
export function groupColours({ categories, theme }, group) {
  const listed = (categories ?? []).filter((each) => each.listed && each.group === group && each[theme.mode]);
  return { names: [listed[0], ...listed.slice(1).slice(-1)].map(({ name }) => name), colours: listed.map((each) => each[theme.mode]) };
}

/** Return a legend of categories as text. */
export const legendText = (/** @type {Item[]} */ items) =>
  items.map(({ name, heading }, i) => (heading ? `${i ? "; " : ""}${name}: ` : `${items[i - 1]?.heading ? "" : ", "}${name}`)).join("");

/**
 * Return the position of each item of a legend, with line breaks, and the total height.
 * @param {Pen} pen
 * @param {number} width
 * @param {Item[]} items
 */
export function layoutCategories(pen, width, items) {
  const lengthOf = (/** @type {Item} */ { name, heading }) => (heading ? pen.measure(name, LEGEND_SIZE, 600) : 19 + pen.measure(name, LEGEND_SIZE));
  return wrapItems(items.map((item) => ({ length: lengthOf(item), gap: item.heading ? 8 : 12 })), width);
}

/**
 * Draw a legend of categories.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {Appearance} appearance
 * @param {Item[]} items
 */
export function drawCategories(pen, x, y, width, { theme, palette }, items) {
  layoutCategories(pen, width, items).positions.forEach((position, i) => {
    const { name, heading, colour } = items[i];
    const [left, top] = [x + position.x, y + 3 + position.y];
    if (heading) {
      pen.text(name, left, top + 6, { colour: theme.muted, size: LEGEND_SIZE, weight: 600 });
      return;
    }
    if (colour) pen.rect(left, top, 14, 12, colour);
    else pen.hatch(left, top, 14, 12, palette.hatch);
    pen.frame(left + 0.5, top + 0.5, 13, 11, theme.border);
    pen.text(name, left + 19, top + 6, { colour: theme.text, size: LEGEND_SIZE });
  });
}
