// Numbers to colours: half floats, palettes, scales, legend ticks. No DOM.
/** @import { Palette, Rgb, Scale, Transform } from "./types" */

export const MASKED = 0x7e00; // the only NaN that is sent: this query may not look at this key
export const LARGEST = 0x7800; // 2^15, the code of the largest magnitude a panel can hold

/** The number behind each of the 65,536 half-float codes. */
export const HALF = Float64Array.from({ length: 65536 }, (_, code) => {
  const exponent = (code >> 10) & 31;
  const mantissa = code & 1023;
  const size = exponent === 31 ? NaN : exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
  return code & 0x8000 ? -size : size;
});

/**
 * A weight as people read it: three significant digits, fewer where fewer were sent.
 * @param {number} value
 */
export function numeral(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(size.toPrecision(digits));
  const text =
    rounded < 1e-4 || rounded >= 1e6
      ? rounded.toExponential(digits - 1)
      : rounded.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(rounded))));
  return (value < 0 ? "\u2212" : "") + text.replace("e-", "e\u2212").replace("e+", "e");
}

/**
 * A tick's number, without trailing zeros.
 * @param {number} value
 */
export function tickNumeral(value) {
  const text = numeral(value);
  return text.includes(".") ? text.replace(/\.?0+(?=e|$)/, "") : text;
}

/**
 * OKLCH to 8-bit sRGB: equal steps of lightness look equal, which no RGB ramp gives.
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
 * 256 colours through evenly spaced anchors [lightness, chroma, hue].
 * @param {number[][]} anchors
 */
function ramp(anchors) {
  return Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (anchors.length - 1);
    const k = Math.min(anchors.length - 2, Math.floor(place));
    return oklch(anchors[k].map((v, j) => v + (anchors[k + 1][j] - v) * (place - k)));
  });
}

// Zero melts into the page and the peaks stand out, on white paper and on a dark wall alike: lightness falls in the light
// theme and rises in the dark one, evenly, so the order of values survives colour blindness and grey printing. Positive
// is blue in the diverging scales too, negative orange, the pair that all common kinds of colour blindness tell apart.
/** @type {Record<import("./types").Mode, Palette>} */
export const PALETTES = {
  light: {
    sequential: ramp([
      [0.985, 0.012, 105],
      [0.9, 0.075, 125],
      [0.79, 0.11, 160],
      [0.665, 0.105, 200],
      [0.54, 0.115, 240],
      [0.41, 0.13, 268],
      [0.27, 0.1, 285],
    ]),
    positive: ramp([[0.985, 0, 245], [0.8, 0.09, 245], [0.59, 0.135, 252], [0.31, 0.12, 270]]),
    negative: ramp([[0.985, 0, 65], [0.82, 0.1, 65], [0.62, 0.14, 50], [0.35, 0.1, 38]]),
    none: "#f4f4f1",
    hatch: ["#e6e7ea", "#d3d5db"],
    mark: "#c2186b", // of what is chosen: magenta, as no ramp here passes through it
    onMark: "#ffffff",
  },
  dark: {
    sequential: ramp([
      [0.2, 0.02, 285],
      [0.36, 0.12, 278],
      [0.49, 0.13, 255],
      [0.62, 0.11, 220],
      [0.74, 0.115, 180],
      [0.86, 0.13, 140],
      [0.975, 0.09, 108],
    ]),
    positive: ramp([[0.2, 0, 262], [0.42, 0.11, 262], [0.66, 0.13, 245], [0.93, 0.06, 215]]),
    negative: ramp([[0.2, 0, 45], [0.42, 0.1, 45], [0.67, 0.14, 58], [0.94, 0.08, 90]]),
    none: "#1d1f27",
    hatch: ["#33363f", "#454954"],
    mark: "#ff74b4",
    onMark: "#000000",
  },
};

export const css = (/** @type {Rgb} */ [r, g, b]) => `rgb(${r},${g},${b})`;
export const packed = (/** @type {Rgb} */ [r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r; // canvas memory order on little-endian machines

export const LOG_START = 0.1; // where the smallest visible magnitude starts on a log scale, so that it differs from zero

/**
 * How magnitudes map to places along a colour ramp, 0 for zero and 1 for the largest.
 * `least` is the smallest magnitude above zero, which sets where a log scale starts: six decades down at most.
 * @param {{ largest: number, least: number, transform: Transform, signed: boolean }} facts
 * @returns {Scale}
 */
export function makeScale({ largest, least, transform, signed }) {
  const top = largest || 1;
  const highest = Math.ceil(Math.log10(top) - 1e-9);
  const lowest = Math.min(highest - 1, Math.max(highest - 6, Math.floor(Math.log10(Math.min(least, top)) + 1e-9)));
  const floor = Number(`1e${lowest}`);
  const decades = Math.log10(top / floor);
  /** @type {Record<Transform, (share: number) => number>} */
  const bends = {
    linear: (share) => share,
    sqrt: Math.sqrt,
    log: (share) => (share > 0 ? LOG_START + (1 - LOG_START) * Math.max(0, 1 + Math.log10(share) / decades) : 0),
  };
  const bend = bends[transform];
  return {
    top,
    transform,
    signed,
    floor,
    least,
    name: [top, transform, floor, signed].join(),
    place: (magnitude) => bend(Math.min(1, magnitude / top)),
  };
}

/**
 * Colours of a ramp from its first to its last place: one arm, or two that meet at zero.
 * @param {Scale} scale
 * @param {Palette} palette
 */
export function rampColours(scale, palette) {
  return scale.signed ? [...palette.negative.toReversed(), ...palette.positive] : palette.sequential;
}

/**
 * The colour of each code of a panel; masked cells stay transparent, over the hatch.
 * @param {Scale} scale
 * @param {number} unit
 * @param {Palette} palette
 */
export function colourTable(scale, unit, palette) {
  const table = new Uint32Array(65536);
  const up = (scale.signed ? palette.positive : palette.sequential).map(packed);
  const down = palette.negative.map(packed);
  for (let code = 0; code <= LARGEST; code++) {
    const step = Math.round(255 * scale.place(HALF[code] * unit));
    table[code] = up[step];
    table[code | 0x8000] = down[step];
  }
  return table;
}

/**
 * Candidate legend magnitudes, most important first: the largest, then round numbers.
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
