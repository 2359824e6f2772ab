// Writes the text about one word's attention weights under several attention variants. This module does not use the DOM.
/** @import { RowSummary, StoryTexts } from "./sentence_messages" */

import { fill } from "../page_script/templates.js";

const SIMILAR = 0.05; // weights that differ by less count as equal
const EVEN_RATIO = 2; // weights count as even if the largest is at most this multiple of 1/n, for n words
const NEGATIVE_LIMIT = -0.1; // weights below this are mentioned for any word
const SPOKEN_WORDS = 3; // the number of words mentioned to screen readers

/**
 * Return a fraction as a percentage.
 * @param {number} share
 * @param {number} [precision] significant digits below ten per cent; without them, the percentage is a whole number
 */
export function percent(share, precision) {
  const size = Math.abs(share);
  const fine = precision && size > 0 && size < 0.1 && (100 * size).toPrecision(precision);
  const digits = fine || (size > 0 && size < 0.005 ? "<1" : String(Math.round(100 * size)));
  return (share <= -0.005 ? "\u2212" : "") + digits + "%";
}

/**
 * Return the finding (the word that the query word attends to most in the first row, and its largest weight in the other
 * rows), and the reasons why its weight differs in the other rows.
 * @param {StoryTexts} texts
 * @param {string[]} labels
 * @param {number} word
 * @param {RowSummary[]} rows
 */
export function story(texts, labels, word, [first, ...others]) {
  const target = first.weights.reduce((best, weight, j) => (weight > first.weights[best] ? j : best), 0);
  const weight = first.weights[target];
  const kind = target === word ? "itself" : "most";
  const weightOnTarget = (/** @type {RowSummary} */ { weights }) => weights[target] || 0; // a masked word has the weight zero
  const [next, second] = [...others].sort((a, b) => weightOnTarget(b) - weightOnTarget(a));
  const largest = next && percent(weightOnTarget(next));
  const isLargest = second && percent(weightOnTarget(second)) !== largest; // compared as the percentages shown
  const masking = others.filter((row) => Number.isNaN(row.weights[target]));
  const weaker = masking.length === 1 && masking[0] !== next ? texts.removed : texts.weaker;
  const form = isLargest && weight - weightOnTarget(next) > SIMILAR ? weaker : texts.others;
  const comparison = next && fill(form, { removed: masking[0]?.title ?? "", row: next.title, weight: form === texts.others ? largest.replace("<", "") : largest }); // "at most <1%" would read oddly
  const areSimilar = others.every((row) => Math.abs(weightOnTarget(row) - weight) <= SIMILAR);
  const reasons = others.flatMap((row) => reasonsOf(labels, word, row, target, weight));
  const sentence = fill(texts[kind], { word: labels[word], target: labels[target], weight: percent(weight) });
  const finding = joinParts(texts.sentences, comparison ? [sentence, comparison] : [sentence]);
  return [finding, joinParts(texts.sentences, [...(areSimilar ? [fill(texts.same, { target: labels[target] })] : []), ...reasons])];
}

/**
 * Return why a row's weight on a word, the target, differs from the reference's weight, and why weights are negative.
 * @param {string[]} labels
 * @param {number} word
 * @param {RowSummary} row
 * @param {number} target
 * @param {number} reference
 */
function reasonsOf(labels, word, { title, setting, why, weights }, target, reference) {
  const difference = (weights[target] || 0) - reference;
  const lowestIndex = weights.reduce((lowest, each, j) => (each < (weights[lowest] || 0) ? j : lowest), target);
  const [low, high] = [Math.min(...weights), Math.max(...weights)];
  const lessReason = (high * weights.length <= EVEN_RATIO && why.even) || why.less;
  const values = {
    row: title,
    setting,
    target: labels[target],
    away: String(Math.abs(target - word)),
    low: percent(low),
    high: percent(high),
  };
  const negative = { row: title, other: labels[lowestIndex], least: percent(weights[lowestIndex]) };
  return [
    fill((difference < -SIMILAR && lessReason) || (difference > SIMILAR && why.more) || "", values),
    fill((weights[lowestIndex] <= NEGATIVE_LIMIT && why.negative) || "", negative),
  ].filter(Boolean);
}

/**
 * Return the sentence about the largest error if it exceeds the error of equal weights as shown; else about the latter.
 * @param {StoryTexts} texts
 * @param {{ title: string, error: number }[]} rows
 * @param {number} uniformError
 */
export function baseline(texts, rows, uniformError) {
  const worst = rows.reduce((most, row) => (row.error > most.error ? row : most));
  const [error, zero] = [worst.error, uniformError].map((each) => percent(each, 2));
  return fill(worst.error > uniformError && error !== zero ? texts.worse : texts.equal, { row: worst.title, error, zero });
}

/**
 * Return the largest weights of all rows as text for screen readers.
 * @param {StoryTexts} texts
 * @param {string[]} labels
 * @param {number} word
 * @param {RowSummary[]} rows
 */
export function spokenText(texts, labels, word, rows) {
  const sentences = rows.map(({ name, weights }) => {
    const targets = weights
      .map((weight, j) => ({ weight, target: labels[j] }))
      .filter(({ weight }) => Math.abs(weight) >= 0.005)
      .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
      .slice(0, SPOKEN_WORDS)
      .map(({ weight, target }) => fill(texts.target, { target, weight: percent(weight) }));
    const list = joinList(texts, targets);
    return fill(list ? texts.attends : texts.nowhere, { row: name, word: labels[word], list });
  });
  return joinParts(texts.sentences, sentences);
}

/**
 * Return the items as a list in the visitor's language.
 * @param {StoryTexts} texts
 * @param {string[]} items
 */
function joinList(texts, items) {
  const [last, others] = [items.at(-1) ?? "", joinParts(texts.items, items.slice(0, -1))];
  return others ? fill(texts.list, { others, last }) : last;
}

/**
 * Return the parts joined by what the visitor's language puts between two of them.
 * @param {string} pair the form for two parts, such as "{first}, {next}"
 * @param {string[]} parts
 */
export function joinParts(pair, parts) {
  return parts.length ? parts.reduce((first, next) => fill(pair, { first, next })) : "";
}
