// From numbers to words: a text about one word under several variants. This module does not use the DOM.
/** @import { Looks, StoryWords } from "./sentence_messages" */

import { fill } from "../page_script/templates.js";

const MOSTLY = 0.5; // a larger weight on one word exceeds the weights on all other words together
const MOST = 0.25;
const SAME = 0.05; // weights that differ by less count as equal
const BELOW = -0.1; // weights below this are mentioned for any word
const HALF_OF_IT = 0.5; // the share of the reference's weight from which a variant counts in the finding
const SPOKEN = 3; // the number of words mentioned to screen readers

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
 * Return the finding (the word that the query attends to in the first row, and the other rows that attend to it too), and
 * the text about each of the other rows.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {number} word
 * @param {Looks[]} rows
 */
export function story(words, labels, word, [first, ...others]) {
  const target = first.weights.reduce((best, weight, j) => (weight > first.weights[best] ? j : best), 0);
  const weight = first.weights[target];
  const kind = target === word ? "itself" : weight >= MOSTLY ? "mostly" : weight >= MOST ? "most" : "spread";
  const kept = others.filter(({ weights }) => weights[target] >= HALF_OF_IT * weight);
  const counts = { count: String(kept.length), total: String(others.length), row: kept.length ? kept[0].name : "" };
  const values = { word: labels[word], target: labels[target], weight: percent(weight), ...counts };
  const most = kept.length === 0 ? "none" : kept.length === others.length ? "all" : kept.length === 1 ? "only" : "some";
  const finding = [words[kind], ...(others.length > 1 ? [words[most]] : [])];
  const compare = (/** @type {Looks} */ row) => compared(words, labels, word, row, target, weight);
  return [finding.map((each) => fill(each, values)), others.flatMap(compare)].map((each) => joined(words.sentences, each));
}

/**
 * Return the text about a row's weight on the word with the reference's largest weight, and its most negative weight.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {number} word
 * @param {Looks} row
 * @param {number} target
 * @param {number} reference
 */
function compared(words, labels, word, { name, less, weights }, target, reference) {
  const weight = weights[target];
  const away = String(Math.abs(target - word));
  const values = { row: name, target: labels[target], weight: percent(weight), away };
  const kind = sentenceOf(weight, reference);
  const least = weights.reduce((lowest, each, j) => (each < (weights[lowest] || 0) ? j : lowest), target);
  const below = { row: name, other: labels[least], least: percent(weights[least]) };
  return [
    fill((kind === "less" && less) || words[kind], values),
    ...(least !== target && weights[least] <= BELOW ? [fill(words.below, below)] : []),
  ];
}

/**
 * Return the key of the sentence about a weight.
 * @param {number} weight
 * @param {number} reference
 */
function sentenceOf(weight, reference) {
  if (Number.isNaN(weight)) return "masked";
  if (Math.abs(weight - reference) <= SAME) return "same";
  if (weight <= -0.005) return "negative";
  return weight < reference ? "less" : "more";
}

/**
 * Return the largest weights of all rows as text for screen readers.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {number} word
 * @param {Looks[]} rows
 */
export function spoken(words, labels, word, rows) {
  const sentences = rows.map(({ name, weights }) => {
    const seen = weights
      .map((weight, j) => ({ weight, target: labels[j] }))
      .filter(({ weight }) => Math.abs(weight) >= 0.005)
      .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
      .slice(0, SPOKEN)
      .map(({ weight, target }) => fill(words.seen, { target, weight: percent(weight) }));
    const [last, others] = [seen.at(-1) ?? "", joined(words.items, seen.slice(0, -1))];
    const list = others ? fill(words.list, { others, last }) : last;
    return fill(list ? words.looks : words.nowhere, { row: name, word: labels[word], list });
  });
  return joined(words.sentences, sentences);
}

/**
 * Return the parts joined by what the visitor's language puts between two of them.
 * @param {string} pair the form for two parts, such as "{first}, {next}"
 * @param {string[]} parts
 */
function joined(pair, parts) {
  return parts.length ? parts.reduce((first, next) => fill(pair, { first, next })) : "";
}
