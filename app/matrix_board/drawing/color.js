// Maps numbers to colours: decodes half floats, and makes palettes, colour scales and their ticks. This module does not
// use the DOM.
/** @import { Palette, Rgb, Scale, Transform } from "../messages" */

export const MASKED = 0x7e00; // the only NaN code that is sent: this query cannot attend to this key
export const LARGEST = 0x7bff; // 65504, the largest code a panel can contain

/** The value of each of the 65,536 half-float codes. */
export const HALF = Float64Array.from({ length: 65536 }, (_, code) => {
  const exponent = (code >> 10) & 31;
  const mantissa = code & 1023;
  const size = exponent === 31 ? NaN : exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
  return code & 0x8000 ? -size : size;
});

/**
 * Return a number as text, rounded to significant digits.
 * @param {number} value
 */
export function formatNumber(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(size.toPrecision(digits));
  const text =
    rounded < 1e-4 || rounded >= 1e6
      ? rounded.toExponential(digits - 1)
      : rounded.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(rounded))));
  return (value < 0 ? "\u2212" : "") + text.replace(/e[+]?(.*)/, (_, size) => `\u00a0×\u00a010${toSuperscript(size)}`);
}

/**
 * Return an exponent as superscript digits.
 * @param {string} size
 */
function toSuperscript(size) {
  return size.replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)] ?? sign);
}

/**
 * Return a tick's number without trailing zeros.
 * @param {number} value
 * @param {boolean} [percent]
 */
export function formatTick(value, percent = false) {
  const text = formatNumber(percent ? 100 * value : value);
  return (text.includes(".") ? text.replace(/\.?0+(?=\u00a0|$)/, "") : text) + (percent && value ? "%" : "");
}

/**
 * Convert OKLCH to 8-bit sRGB. Equal steps of lightness look equal, unlike in RGB ramps.
 * @param {number[]} colour
 * @returns {Rgb}
 */
function oklch([lightness, chroma, hue]) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((c) => Math.round(255 * Math.min(1, Math.max(0, c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055))));
}

/**
 * Return 256 colours through evenly spaced anchors [lightness, chroma, hue].
 * @param {number[][]} anchors
 */
function ramp(anchors) {
  return Array.from({ length: 256 }, (_, i) => {
    const position = (i / 255) * (anchors.length - 1);
    const k = Math.min(anchors.length - 2, Math.floor(position));
    return oklch(anchors[k].map((v, j) => v + (anchors[k + 1][j] - v) * (position - k)));
  });
}

// Positive numbers use the same ramp of colours on every panel, and negative numbers use another. Zero is close to the
// page's background, in the light and in the dark theme. Lightness changes evenly along a ramp: it falls in the light
// theme and rises in the dark theme. The order of values is therefore visible with colour blindness and in grey print. Blue
// and orange differ under all common kinds of colour blindness. Values beyond the end of a scale have the hue of this end,
// but are visibly darker, or lighter in the dark theme. Masked cells are closer to the background than any weight.
/** @type {Record<import("../messages").Mode, Palette>} */
export const PALETTES = {
  light: {
    positive: ramp([
      [0.945, 0.012, 225],
      [0.855, 0.055, 213],
      [0.76, 0.09, 219],
      [0.66, 0.115, 233],
      [0.555, 0.14, 250],
      [0.445, 0.155, 265],
    ]),
    negative: ramp([[0.945, 0.012, 75], [0.84, 0.08, 72], [0.72, 0.122, 63], [0.59, 0.14, 51], [0.455, 0.12, 38]]),
    over: oklch([0.22, 0.085, 278]),
    under: oklch([0.24, 0.065, 32]),
    zero: "#f4f4f1",
    hatch: ["#ffffff", "#e2e5eb"],
    mark: "#c2186b", // the colour of chosen cells: magenta, which no ramp contains
    onMark: "#ffffff",
  },
  dark: {
    positive: ramp([
      [0.27, 0.015, 270],
      [0.38, 0.09, 270],
      [0.49, 0.125, 260],
      [0.605, 0.125, 247],
      [0.72, 0.115, 229],
      [0.83, 0.095, 210],
    ]),
    // The first stop is lighter than zero, so that small negative values are visible.
    negative: ramp([[0.31, 0.055, 45], [0.42, 0.1, 47], [0.55, 0.125, 53], [0.69, 0.135, 63], [0.83, 0.115, 76]]),
    over: oklch([0.985, 0.015, 205]),
    under: oklch([0.97, 0.06, 95]),
    zero: "#1d1f27",
    hatch: ["#171614", "#2e2c2a"],
    mark: "#ff74b4",
    onMark: "#000000",
  },
};

export const css = (/** @type {Rgb} */ [r, g, b]) => `rgb(${r},${g},${b})`;
export const fromHex = (/** @type {string} */ hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
export const packColour = (/** @type {Rgb} */ [r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r; // the byte order of canvas memory on little-endian machines

export const LOG_START = 0.1; // the position of the smallest visible magnitude on a log scale, so that it differs from zero

/**
 * Return the map from magnitudes to positions on a colour ramp, from 0 for zero to 1 for the end of the scale. The end
 * is `ceiling` if it is set and a value reaches it; otherwise it is the largest magnitude. A log scale starts near
 * `smallest`, the smallest magnitude above zero, but not more than six decades below its end. `highest` and `lowest` are
 * the numbers farthest from zero on either side.
 * @param {{ highest: number, lowest: number, smallest: number, transform: Transform, signed: boolean, ceiling?: number }} facts
 * @returns {Scale}
 */
export function makeScale({ highest, lowest, smallest, transform, signed, ceiling = 0 }) {
  const largest = Math.max(highest, -lowest);
  const top = Math.min(largest, ceiling || Infinity) || 1;
  const power = Math.ceil(Math.log10(top) - 1e-9);
  const lowestPower = Math.min(power - 1, Math.max(power - 6, Math.floor(Math.log10(Math.min(smallest, top)) + 1e-9)));
  const floor = Number(`1e${lowestPower}`);
  const decades = Math.log10(top / floor);
  /** @type {Record<Transform, (share: number) => number>} */
  const bends = {
    linear: (share) => share,
    sqrt: Math.sqrt,
    log: (share) => (share > 0 ? LOG_START + (1 - LOG_START) * Math.max(0, 1 + Math.log10(share) / decades) : 0),
  };
  const bend = bends[transform];
  const isBeyond = (/** @type {number} */ magnitude) => magnitude > top * (1 + 2 ** -10); // the tolerance is needed because half floats round the top value itself
  return {
    top,
    transform,
    signed,
    floor,
    smallest,
    over: isBeyond(highest) ? highest : 0,
    under: isBeyond(-lowest) ? lowest : 0,
    name: [top, transform, floor].join(),
    position: (magnitude) => bend(Math.min(1, magnitude / top)),
    isBeyond,
  };
}

/**
 * Return the colours of a scale from its lower to its upper end: one ramp, or two that meet at zero.
 * @param {Scale} scale
 * @param {Palette} palette
 */
export function rampColours(scale, palette) {
  return scale.signed ? [...palette.negative.toReversed(), ...palette.positive] : palette.positive;
}

/**
 * Return the colour of each half-float code of a panel; masked cells are transparent over a hatch pattern.
 * @param {Scale} scale
 * @param {number} unit the power of two that scales the panel's half floats
 * @param {Palette} palette
 */
export function colourTable(scale, unit, palette) {
  const table = new Uint32Array(65536);
  const [positiveColours, negativeColours] = [palette.positive.map(packColour), palette.negative.map(packColour)];
  const [over, under] = [packColour(palette.over), packColour(palette.under)];
  for (let code = 0; code <= LARGEST; code++) {
    const magnitude = HALF[code] * unit;
    const step = Math.round(255 * scale.position(magnitude));
    const isOutside = scale.isBeyond(magnitude);
    table[code] = isOutside ? over : positiveColours[step];
    table[code | 0x8000] = isOutside ? under : negativeColours[step];
  }
  return table;
}

/**
 * Return candidate legend magnitudes, most important first: the largest, then round numbers.
 * @param {Scale} scale
 */
export function tickMagnitudes(scale) {
  const { top, transform, floor } = scale;
  if (transform === "log") {
    const tens = [];
    for (let ten = Math.floor(Math.log10(top)); ten >= Math.log10(floor) + 0.5; ten--) tens.push(Number(`1e${ten}`));
    return [top, floor, ...tens];
  }
  if (transform === "sqrt") {
    const round = [];
    for (let ten = Math.floor(Math.log10(top)); round.length < 8; ten--) {
      round.push(...[5, 2, 1].map((first) => Number(`${first}e${ten}`)).filter((value) => value < top));
    }
    return [top, ...round];
  }
  const rough = top / 4;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5].find((first) => first * ten >= rough * 0.999) ?? 10);
  const steps = [];
  for (let k = 1; k * step < top * 0.999; k++) steps.push(k * step);
  return [top, ...steps];
}
