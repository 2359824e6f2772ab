// The data that Python sends to the canvas of a lesson (sketch.py).

export interface SketchHeader {
  kind: "sketch";
  key: string;
  digest: string;
  x: number[]; // positions of the points, on a logarithmic axis
  high: number; // the upper end of the vertical axis, which starts at 0
  step: number; // the change of a height per press of an arrow key
  digits: number; // of heights, after the decimal point
  is_share: boolean; // whether heights are fractions, which are written as percentages
  colour: string; // of the measured curve
  drawn: number[] | null; // heights of the points, null before the visitor has moved one
  measured: [number, number][]; // empty before the answer
}

export interface SketchSettings {
  texts: {
    title: string;
    help: string;
    point: string;
    x: string;
    y: string;
    drawn: string;
    measured: string;
  };
}
