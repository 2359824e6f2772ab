// The data that Python sends to the picture board (pictures.py).

import type { Header, SentKnob } from "../matrix_board/messages";

export interface SentTile extends Header<"part"> {
  title: string;
  number: string;
  details: string;
  knob: SentKnob | null;
  note: string; // below the image and its slider
  tooltip: string; // the tooltip of the title
  settings_label: string; // name of the button that opens the settings; empty for no button
  has_error: boolean;
  maps: number; // the number of attention maps: one per cell, and possibly their mean as the last one; 0 for none
}

export interface PicturesHeader extends Header<"pictures"> {
  digests: string[];
  side: number; // of the images, in pixels
  channels: number;
  cell: number; // side of a cell of the attention maps, in pixels
  last_turn: number;
}

/** Sentences; the parts in braces are filled in. */
export type PicturesTexts = Record<
  "hint" | "touch_hint" | "at" | "largest" | "error" | "errors" | "image" | "legend" | "download" | "help",
  string
>;

export interface PicturesSettings {
  pinned: number | null; // a pixel
  file_name: string; // of a downloaded picture, without extension
  texts: PicturesTexts;
}

/** One image with its elements. */
export interface ShownTile extends SentTile {
  peaks: Float32Array | null; // the largest magnitude of a weight in each map
  levels: Int8Array | null; // the maps one after another, one level per cell
  error: Uint8Array | null;
  pixels: Uint8Array;
  figure: HTMLElement;
}
