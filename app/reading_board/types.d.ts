// The data that Python sends to the reading board (reading.py).

import type { Header } from "../matrix_board/messages";

/** The result of one model on the text: its row in the table above the text, and its losses. */
export interface SentReading {
  name: string;
  short: string; // its name in the choices of the colours
  numbers: string[];
  losses: number[]; // one per token except the first; empty until the text has been read
  note: string; // about the colours
}

export interface ReadingHeader extends Header<"reading"> {
  tokens: string[];
  columns: string[];
  rows: SentReading[]; // the unchanged model, then the changed ones
  floor: string[]; // name and numbers of a row without losses, or empty
}

/** Sentences; the parts in braces are filled in. */
export type ReadingTexts = Record<
  "help" | "rows" | "show" | "both" | "first" | "waiting" | "hint" | "baseline" | "largest" | "decrease" | "higher" | "lower" | "full",
  string
>;

export interface ReadingSettings {
  shown: number; // the index among the changed readings, from 0
  token: number; // the chosen token, or negative
  baseline: number; // the index of the reading that the shown one is compared with, among all readings
  texts: ReadingTexts;
}
