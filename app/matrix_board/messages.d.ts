// The types shared by the board's modules, and the data that Python sends them (board.py and thumbnails.py).

import type { SketchHeader, SketchSettings } from "../lessons/sketch/sketch_messages";
import type { SentenceHeader, SentenceSettings } from "../live_sentence/sentence_messages";
import type { PicturesHeader, PicturesSettings, SentTile } from "../picture_board/pictures_messages";
import type { ReadingHeader, ReadingSettings } from "../reading_board/types";

/** A drawing interface for the screen and PNG, or for SVG. Lengths are CSS pixels. */
export interface Pen {
  font: string;
  /** Device pixels per CSS pixel. */
  ratio: number;
  rect(x: number, y: number, width: number, height: number, colour: string): void;
  frame(x: number, y: number, width: number, height: number, colour: string, thickness?: number): void;
  line(x1: number, y1: number, x2: number, y2: number, colour: string, thickness?: number): void;
  /** Draw text whose vertical middle is y; `rotation` is in degrees, clockwise. */
  text(text: string, x: number, y: number, style: TextStyle): void;
  /** Return the width of a text. */
  measure(text: string, size?: number, weight?: number): number;
  gradient(x: number, y: number, width: number, height: number, colours: Rgb[]): void;
  hatch(x: number, y: number, width: number, height: number, colours: string[]): void;
  /** Draw the visible part of a matrix: on a canvas, the largest cell of each device pixel. */
  matrix(panel: Panel, table: Uint32Array, view: View, plot: Rectangle): void;
  /** Draw with a moved origin. */
  translate(x: number, y: number, draw: () => void): void;
  /** Draw inside a rectangle only. */
  clip(x: number, y: number, width: number, height: number, draw: () => void): void;
}
export type Mode = "light" | "dark";
export type Transform = "linear" | "sqrt" | "log";
/** Red, green and blue, 0 to 255. */
export type Rgb = number[];

export type Rectangle = Record<"x" | "y" | "width" | "height", number>;
/** The visible part of a matrix, as fractions of its sides. */
export type View = Rectangle;

export interface Category {
  name: string;
  light: string;
  dark: string;
  listed: boolean;
  group: string;
  frame: number;
}

export interface Palette {
  positive: Rgb[];
  negative: Rgb[];
  over: Rgb;
  under: Rgb;
  zero: string;
  hatch: string[];
  mark: string;
  onMark: string;
}

/** The map from magnitudes to ramp positions; `over` and `under` are the farthest numbers beyond its ends, 0 for none. */
export interface Scale {
  top: number;
  transform: Transform;
  signed: boolean;
  floor: number;
  smallest: number;
  over: number;
  under: number;
  name: string;
  position(magnitude: number): number;
  isBeyond(magnitude: number): boolean;
}

/** The colours, and the font, of the page's theme. */
export type Theme = { mode: Mode } & Record<"mark" | "onMark" | "background" | "text" | "muted" | "border" | "grid" | "halo" | "font", string>;

export interface TextStyle {
  size?: number;
  weight?: number;
  colour: string;
  align?: "left" | "center" | "right";
  rotation?: number;
}

/** One axis of a panel. It shows the `share` of its cells that begins at `from`, on `length` pixels from `start`. */
export interface Axis {
  start: number;
  length: number;
  count: number;
  from: number;
  share: number;
  /** Pixels per cell. */
  cell: number;
  /** The labels if there is room for them; otherwise round numbers are written. */
  labels: string[] | undefined;
  /** The space and the font size of a label. */
  room: number;
  size: number;
  flat?: boolean;
}

/** The geometry of a panel for a view, and how many cells share a pixel. */
export interface Geometry {
  view: View;
  plot: Rectangle;
  /** The width for the plot and its legend, in pixels. */
  fullWidth: number;
  rows: Axis;
  cols: Axis;
  pooled: number;
}

/** A knob: a setting with a slider on its panel. `stops` are the possible values, in order. */
export interface SentKnob {
  name: string;
  stops: number[];
  value: number;
}

/** A board whose panels have knobs. */
export interface Turnable {
  panels: { key: string; title: string; knob: SentKnob | null; frames?: string[] }[];
  root: HTMLElement;
  send: Send;
  showFrame?(frame: number): void;
}

/** One panel as Python describes it: the attributes of `Panel` in app/board_messages/panel.py, and facts about its codes. */
export interface SentPanel
  extends Header<"part">,
    Record<"title" | "caption" | "details" | "tooltip" | "settings_label" | "mark" | "scale_panel" | "group" | "sign", string>,
    Record<"rows" | "cols" | "full_side" | "exponent" | "highest" | "lowest" | "smallest", number> {
  row_labels: string[] | null;
  col_labels: string[] | null;
  row_title: string | null;
  col_title: string | null;
  borders: number[];
  frames: string[];
  knob: SentKnob | null;
  signed: boolean;
  masked: boolean;
}

/** A description of an axis; `identity` is equal for axes with the same tokens or other items in the same order. */
export interface AxisDescription {
  count: number;
  hasLabels: boolean;
  identity: string;
}

/** A whole row or a whole column. */
export type Band = { row: number; col: null } | { row: null; col: number };

/** One panel on the board; `geometry` is that of its last painting. */
export interface Panel extends SentPanel {
  codes: Uint16Array; // half floats
  unit: number; // the power of two that scales the half floats
  shape: string; // panels of the same shape share crosshair and zoom
  sharesRows: boolean; // whether its rows are the board's rows, so that it shows the pinned row
  rowLabels: string[] | undefined;
  colLabels: string[] | undefined;
  value: HTMLElement; // shows the value of the cell under the pointer
  picture: HTMLCanvasElement;
  marks: HTMLCanvasElement; // the crosshair and the pinned row, over the picture
  repeats: boolean; // whether all panels have the same row title, which is then drawn only in the first column
  geometry: Geometry;
}

export interface Cell {
  panel: number;
  row: number;
  col: number;
}

/** The texts of a board; app/board_messages/board_texts.py writes them. */
export type BoardTexts = { transforms: Record<Transform, string> } & Record<
  | ("unit" | "rows" | "cols" | "row" | "col" | "zero" | "upcoming" | "masked" | "note" | "link" | "over" | "under" | "own_scale")
  | ("same_scale" | "play" | "stop" | "zoom_in" | "reset" | "download" | "pooled" | "reading" | "touch_reading" | "swipe" | "hint" | "touch_hint" | "help"),
  string
>;

export interface BoardSettings {
  pinned: number | null;
  scale: "shared" | "panel";
  ceiling: number;
  unsigned: boolean; // numbers are written without their signs, which only select the side of the colour scale
  percent: boolean; // numbers are written as percentages
  transform: Transform;
  categories: Category[] | null;
  panel_size: number;
  pins: boolean;
  turns: boolean;
  frame: number;
  last_frame: number;
  file_name: string;
  text: string; // the visitor's text, which pictures show; empty to show the labels of the rows
  address: string; // of the link after the note
  texts: BoardTexts;
}

/** The settings for painting panels. */
export interface Appearance {
  theme: Theme;
  palette: Palette;
  texts: BoardTexts;
  categories: Category[] | null;
  ownScale: boolean;
  unsigned: boolean;
  percent: boolean;
  scale(panel: Panel): Scale;
  table(panel: Panel): Uint32Array;
}

/** The beginning of the header of every message. */
export interface Header<Kind extends string> {
  kind: Kind;
  key: string;
  digest: string;
}

export interface BoardHeader extends Header<"board"> {
  digests: string[];
  inline_lengths: number[];
  row_labels: string[] | null;
  col_labels: string[] | null;
  last_turn: number; // the number of the last change of a knob that the panels show
}

/** The answer to a dragged knob; its payload is the message of the panel, or empty. */
export interface DraggedHeader extends Header<"dragged"> {
  last_turn: number;
}

/** A chart; its payload is the figure as JSON. */
export interface ChartHeader extends Header<"chart"> {
  alt: string;
  file: string;
  save: string;
}

export interface HeadsHeader extends Header<"heads"> {
  layers: number;
  heads: number;
  size: number;
}

/** A layer and a head; null is the whole layer. */
export type HeadOrLayer = [layer: number, head: number | null];

export interface HeadsSettings {
  selected: HeadOrLayer | null;
  height: number;
  max_size: number;
  heads: [layer: number, head: number, note: string, text: string][];
  in_order: boolean;
  reveal: boolean;
  texts: Record<"place" | "layer_mark" | "head_mark" | "help", string>;
}

export interface StripsHeader extends Header<"strips"> {
  board: string;
  tokens: string[];
  queries: string[] | null;
  /** One flag per token: whether it only continues the character of the token before it. */
  joined: boolean[];
}

export interface StripsSettings {
  pinned: number | null;
  unfolded: string | null;
  strips: { key: string; note: string }[];
  texts: Record<"heading" | "none" | "unfold" | "fold" | "help", string>;
}

/** Reports an action of the visitor to Python. */
export type Send = (event: string, value: unknown) => void;

/** An unpacked message of numbers. */
export interface Received<Header = BoardHeader | ChartHeader | DraggedHeader | HeadsHeader | PicturesHeader | ReadingHeader | SentenceHeader | SketchHeader | StripsHeader | SentPanel | SentTile> {
  message: Uint8Array;
  header: Header & { settings?: object };
  payload: ArrayBuffer;
}

/** What is drawn from one message: a board with its panels, its strips, a model's heads, or a sentence. */
export interface Component {
  root: HTMLElement;
  send: Send;
  receive(received: Received<any>, parts: Received<any>[]): void;
  /** Draw the answer to a dragged knob. */
  redraw?(part: Received<any>, lastTurn: number): void;
  show(settings: BoardSettings | HeadsSettings | PicturesSettings | ReadingSettings | SentenceSettings | SketchSettings | StripsSettings): void;
  retheme(): void;
  destroy(): void;
}

/** The data that Streamlit passes to a component. */
export interface Mounted<Data> {
  data: Data;
  parentElement: HTMLElement | ShadowRoot;
  setTriggerValue: Send;
}
