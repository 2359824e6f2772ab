// The entry point of the script that every page loads. It starts all other modules of the script.

import { scrollToNewPanels } from "./navigation/arrival.js";
import { Chart } from "./charts/chart.js";
import { watchConnection } from "./navigation/connection.js";
import { watchForms } from "./forms.js";
import { explainTerms } from "./glossary.js";
import { keepHistory } from "./navigation/history.js";
import { showLanguage } from "./navigation/language.js";
import { markMenu, watchHeader } from "./navigation/menu.js";
import { watchInputLink } from "./navigation/to_input.js";
import { makeFocusable } from "./keyboard.js";
import { server } from "./server.js";
import { stepByArrows } from "../lessons/arrows.js";
import { showFigures } from "../lessons/figure.js";
import { Sketch } from "../lessons/sketch/sketch.js";
import { Sentence } from "../live_sentence/sentence.js";
import { linkTexts } from "../matrix_board/views/links.js";
import { startDrawing } from "../matrix_board/channels/main.js";
import { PictureBoard } from "../picture_board/pictures.js";
import { ReadingBoard } from "../reading_board/reading.js";
import { followLinks } from "./navigation/follow_links.js";

const MOUNTED = Symbol.for("attention-lab.page");
const VERSION = import.meta.url;
const browser = /** @type {{ [MOUNTED]?: string }} */ (globalThis);

/* global GLOSSARY -- the terms in each language, which app/page_script/mounting.py defines above this script */

/** @param {typeof server} page */
export default function ({ data, setStateValue, setTriggerValue }) {
  const mounted = browser[MOUNTED];
  // If the versions differ, the page is now connected to another server, whose messages need other scripts.
  if (mounted !== undefined && mounted !== VERSION) return location.reload();
  Object.assign(server, { data, setStateValue, setTriggerValue });
  // In style.css, these classes enlarge the page and hide the sidebar.
  document.documentElement.classList.toggle("presenting", data.isPresenting);
  document.documentElement.classList.toggle("no-input", !data.usesInput);
  markMenu();
  showLanguage();
  explainTerms(GLOSSARY[data.language.code]);
  if (mounted === VERSION) return;
  browser[MOUNTED] = VERSION;
  watchHeader();
  watchForms();
  watchConnection();
  keepHistory();
  followLinks();
  stepByArrows();
  showFigures();
  makeFocusable();
  watchInputLink();
  scrollToNewPanels();
  linkTexts();
  startDrawing({ chart: Chart, pictures: PictureBoard, reading: ReadingBoard, sentence: Sentence, sketch: Sketch });
}
