// Numbers to words: what one sees of a word under several variants. No DOM.
/** @import { Looks, StoryWords } from "./types" */

import { fill } from "../page_script/templates.js";

const MOSTLY = 0.5; // of a word's weight on one other: more than all the rest together
const MOST = 0.25;
const SAME = 0.05; // weights that differ by less are told as the same
const BELOW = -0.1; // from which on a weight below zero is told of whatever word has it
const HEARD = 3; // words told to who cannot see the arcs

/**
 * A share as people read it.
 * @param {number} share
 */
export function percent(share) {
  const size = Math.abs(share);
  const told = size > 0 && size < 0.005 ? "<1" : String(Math.round(100 * size));
  return (share <= -0.005 ? "\u2212" : "") + told + "%";
}

/**
 * What one sees: where the word looks in the first row, and what the others make of that.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {number} word
 * @param {Looks[]} rows
 */
export function story(words, labels, word, [first, ...others]) {
  const target = first.weights.reduce((best, weight, j) => (weight > first.weights[best] ? j : best), 0);
  const weight = first.weights[target];
  const kind = target === word ? "itself" : weight >= MOSTLY ? "mostly" : weight >= MOST ? "most" : "spread";
  const told = { word: labels[word], target: labels[target], weight: percent(weight) };
  return [fill(words[kind], told), ...others.flatMap((row) => beside(words, labels, row, target, weight))].join(" ");
}

/**
 * What a row makes of the first one's largest weight, and of what it turns negative beside.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {Looks} row
 * @param {number} target
 * @param {number} reference
 */
function beside(words, labels, { name, weights }, target, reference) {
  const weight = weights[target];
  const told = { row: name, weight: percent(weight) };
  const least = weights.reduce((lowest, each, j) => (each < (weights[lowest] || 0) ? j : lowest), target);
  const below = { other: labels[least], least: percent(weights[least]) };
  return [
    fill(words[made(weight, reference)], told),
    ...(least !== target && weights[least] <= BELOW ? [fill(words.below, below)] : []),
  ];
}

/**
 * @param {number} weight
 * @param {number} reference
 */
function made(weight, reference) {
  if (Number.isNaN(weight)) return "masked";
  if (Math.abs(weight - reference) <= SAME) return "kept";
  if (weight <= -0.005) return "negative";
  return weight < reference ? "lost" : "gained";
}

/**
 * What the arcs of all rows say, the largest first.
 * @param {StoryWords} words
 * @param {string[]} labels
 * @param {number} word
 * @param {Looks[]} rows
 */
export function heard(words, labels, word, rows) {
  return rows
    .map(({ name, weights }) => {
      const list = weights
        .map((weight, j) => ({ weight, target: labels[j] }))
        .filter(({ weight }) => Math.abs(weight) >= 0.005)
        .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
        .slice(0, HEARD)
        .map(({ weight, target }) => fill(words.seen, { target, weight: percent(weight) }))
        .join(", ");
      return fill(list ? words.looks : words.nowhere, { row: name, word: labels[word], list });
    })
    .join(" ");
}
