// What Python sends to the reading board (reading.py).

export interface SentReading {
  name: string;
  numbers: string[];
  losses: number[]; // of every token but the first; empty while it is read
}

export interface ReadingHeader {
  kind: "reading";
  key: string;
  digest: string;
  tokens: string[];
  labels: string[]; // the tokens, repeats numbered
  columns: string[];
  rows: SentReading[]; // the model as it is, then the changed ones
}

/** Sentences; what stands in braces is filled in. */
export interface ReadingWords {
  who: string;
  help: string;
  rows: string;
  told: string;
  first: string;
  waiting: string;
  ask: string;
  scale: string;
}

export interface ReadingSettings {
  shown: number; // of the changed readings, from 0
  token: number; // the one chosen, or negative
  words: ReadingWords;
}
