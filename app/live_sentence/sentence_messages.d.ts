// The data that Python sends to the sentence (sentence.py), and the types shared by its modules.

import type { Header } from "../matrix_board/messages";

/** Sentences on the reasons for a smaller, nearly equal or larger weight, negative weights, and other weights at the last step. */
export type Reasons = { less?: string; even?: string; more?: string; negative?: string; unaveraged?: string };

/** The sentence under one variant; lists have one entry for each step of its slider. */
export interface SentRow {
  key: string;
  title: string;
  knob: string;
  note: string;
  why: Reasons;
  settings: (number | null)[];
  variant_words: string[];
  errors: number[][]; // of each word
  growths: number[];
}

export interface SentenceHeader extends Header<"sentence"> {
  tokens: string[];
  labels: string[]; // the tokens, with numbered repeats
  rows: SentRow[];
}

/** Sentences; the parts in braces are filled in. */
export interface StoryTexts {
  most: string;
  itself: string;
  others: string; // the weights in the other rows
  gives: string; // the first of these weights
  further: string; // each other of these weights
  same: string;
  attends: string;
  nowhere: string;
  target: string;
  items: string; // how two items of a list are joined
  list: string; // how the last item of a list is joined to the others
  sentences: string; // how two sentences are joined
}

export interface SentenceTexts extends StoryTexts {
  title: string;
  help: string;
  unshown: string; // the query word's weight on tokens that are not drawn
  legend: string;
  negative: string; // shown after the legend while an arc has the colour of negative weights
  headings: string[]; // of the error and the growth of the cost
  caption: string;
  open: string;
  notes_label: string;
  notes: string[];
}

export interface SentenceSettings {
  word: number;
  steps: Record<string, number>;
  link: string;
  row_parameter: string;
  unshown: number[]; // of each word: the share of its weight on tokens that are not drawn
  texts: SentenceTexts;
}

/** The weights of one query word under one variant: one per word, NaN where the query cannot attend. */
export interface RowSummary {
  name: string; // with the setting
  title: string; // without it
  setting: string;
  why: Reasons;
  weights: number[];
}

/** A word's position including the number below it, in pixels from the corner of its text. */
export interface WordBox {
  middle: number;
  top: number;
  bottom: number;
  /** The pixels between its line of text and the numbers of the line above. */
  room: number;
}
