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
 * Return the finding (the word that the query word attends to most in the first row, and its weight in the other rows), and
 * the reasons why its weight differs in the other rows.
 * @param {StoryTexts} texts
 * @param {string[]} labels
 * @param {number} word
 * @param {RowSummary[]} rows
 */
export function story(texts, labels, word, [first, ...others]) {
  const target = first.weights.reduce((best, weight, j) => (weight > first.weights[best] ? j : best), 0);
  const weight = first.weights[target];
  const values = { word: labels[word], target: labels[target], weight: percent(weight) };
  const most = fill(target === word ? texts.itself : texts.most, values);
  const finding = joinParts(texts.sentences, [most, otherWeights(texts, target, others)].filter(Boolean));
  const areSimilar = others.every((row) => Math.abs(weightOn(target, row) - weight) <= SIMILAR);
  const reasons = others.flatMap((row) => reasonsOf(labels, word, row, target, weight));
  return [finding, joinParts(texts.sentences, [...(areSimilar ? [fill(texts.same, { target: labels[target] })] : []), ...reasons])];
}

/**
 * Return a row's weight on a word; a masked word has the weight zero.
 * @param {number} target
 * @param {RowSummary} row
 */
function weightOn(target, { weights }) {
  return weights[target] || 0;
}

/**
 * Return the weights of rows on a word, the largest first.
 * @param {StoryTexts} texts
 * @param {number} target
 * @param {RowSummary[]} rows
 */
function otherWeights(texts, target, rows) {
  const sorted = [...rows].sort((a, b) => weightOn(target, b) - weightOn(target, a));
  const items = sorted.map((row, i) => fill(i ? texts.further : texts.gives, { row: row.title, weight: percent(weightOn(target, row)) }));
  return items.length ? fill(texts.others, { list: joinList(texts, items) }) : "";
}

/**
 * Return why a row has negative weights, or else why its weight on a word, the target, differs from the reference's weight.
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
  if (weights[lowestIndex] <= NEGATIVE_LIMIT && why.negative) return [fill(why.negative, negative)];
  const reason = (difference < -SIMILAR && lessReason) || (difference > SIMILAR && why.more);
  return reason ? [fill(reason, values)] : [];
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
function joinParts(pair, parts) {
  return parts.length ? parts.reduce((first, next) => fill(pair, { first, next })) : "";
}
