// A board: the attention matrices of a comparison side by side, one per panel. This file has its data, layout and painting.
/** @import { BoardHeader, BoardSettings, Cell, Geometry, Appearance, Panel, Pen, Received, Scale, Send, SentPanel, Theme, View } from "../messages" */

import { fill } from "../../page_script/templates.js";
import { PAINTED } from "../channels/boards.js";
import { categoryTable, drawCategories, legendItems, layoutCategories, legendText, groupColours } from "../drawing/categories.js";
import { colourTable, makeScale, PALETTES, formatTick } from "../drawing/color.js";
import { PointerInput } from "./input.js";
import { Knobs } from "./knobs.js";
import { bandsOf, bandsOfToken, POINTED, describeAxes } from "./links.js";
import { drawBand, drawMarks } from "../drawing/marks.js";
import { clamp, make, preparePen, toPrintable, readTheme, settingsIcon } from "../drawing/elements.js";
import { beyondItems, drawLegend, drawPanel, legendLayout, legendName, NAME_HEIGHT, noteText, panelGeometry, panelHeight, panelWidth } from "../drawing/panel.js";
import { contextOf, CanvasPen } from "../drawing/pen.js";
import { cellText, Readout } from "./readout.js";
import { Views } from "./zoom.js";

const GAP = 20;
const LINE_SIDE = 196; // smallest side at which four or more panels share one line, where they are easier to compare
const STEP_SIDE = 180; // the same for panels with a colour scale each, six of which fit a projector
const MAX_SHARE = 0.45; // largest share of the window's height for a panel, so that the text above it stays in view
const THREE_SHARE = 0.48; // the same for three panels, which would leave a part of the page empty
const SINGLE_SHARE = 0.58; // the same for a single panel, next to which the page is empty
const MIN_SIDE = 224; // smallest side of a panel otherwise: smaller panels are hard to read
const FRAME_TIME = 700; // milliseconds for each frame of an animation
const MIN_TEXT = 300; // smallest width of the legend and the notes to the right of a single panel; otherwise they are above and below
const EQUATION_WIDTH = 640; // a narrower board has two columns for an equation, so that all its panels are seen together
const PEEK = 36; // the visible pixels of the next panel on a narrow screen, where the visitor swipes panels

export class Board {
  // -- set by Python's first message and the first painting; `schedule` waits for both ------------------------------

  /** @type {Panel[]} */
  panels;
  /** @type {BoardSettings} */
  settings;
  /** @type {Send} */
  send;
  /** @type {Theme} */
  theme;
  /** @type {Appearance} */
  appearance;
  /** @type {number} */
  columns;
  /** @type {number} */
  side;
  narrows = false; // whether each panel is as narrow as its matrix
  /** @type {number} */
  textWidth; // the width of the legend and the notes
  /** @type {Scale | null} */
  sharedScale; // the scale of all panels; null if each panel has its own scale, or if the board shows categories
  /** @type {{ received: Received<BoardHeader>, parts: Received<SentPanel>[] } | undefined} */
  latest; // the latest message
  /** @type {{ count: number, index: number } | null | undefined} */
  token; // the token under the pointer in a text
  /** @type {number | undefined} */
  frame; // the request to paint before the browser's next frame
  /** @type {number | undefined} */
  reportTimer;
  /** @type {number | null} */
  reportedPin = null;
  /** @type {string | null} */
  activeShape = null; // the shape (rows × columns) of the panel that contains `cell`
  /** @type {number | undefined} */
  playTimer;

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {Cell | null} */
    this.cell = null; // the cell under the pointer, or chosen with the arrow keys
    /** @type {Map<string, Uint32Array>} */
    this.tables = new Map();
    this.views = new Views(this);
    this.readout = new Readout(this);
    this.knobs = new Knobs(this);
    /** @type {number | null} */
    this.pinned = null;
    this.paints = 0;
    /** @type {{ layout?: boolean, paint?: boolean, marks?: boolean }} */
    this.pendingWork = {};
    this.legend = make("canvas", { class: "legend", role: "img" });
    this.buttons = make("div", { class: "buttons" });
    this.player = make("button", { class: "play", type: "button", "data-act": "play" }); // next to the knob of the animated panel
    this.grid = make("div", { class: "grid", role: "application", tabindex: "0" });
    this.reading = make("span", { class: "reading" });
    this.swipe = make("span", { class: "reading" }); // names the panels outside a narrow screen
    this.hint = make("span", { class: "hint" });
    this.note = make("span", { class: "note" });
    this.link = make("a", {});
    this.root = make(
      "div",
      { class: "board" },
      make("div", { class: "bar" }, this.legend, this.reading, this.swipe),
      this.grid,
      make("div", { class: "foot" }, make("div", { class: "notes" }, this.hint, make("span", {}, this.note, " ", this.link)), this.buttons),
      this.readout.tip,
      this.readout.live,
    );
    this.root.style.cssText = "visibility: hidden; height: 0"; // hidden until the panels are arranged
    host.append(this.root);
    this.input = new PointerInput(this);
    this.listeners = new AbortController();
    this.resizeObserver = new ResizeObserver(() => this.schedule("layout"));
    this.resizeObserver.observe(this.root);
    this.watchDensity();
    const onPointed = (/** @type {Event} */ event) => this.highlightToken(/** @type {CustomEvent} */ (event).detail.token);
    addEventListener(POINTED, onPointed, { signal: this.listeners.signal });
    document.fonts.addEventListener("loadingdone", () => this.schedule("paint"), { signal: this.listeners.signal });
  }

  // -- messages from Python ----------------------------------------------------------------------------------------

  /**
   * Set new matrices. Zoom, pan and the current cell stay as long as the shapes of the panels are unchanged.
   * @param {Received<BoardHeader>} received
   * @param {Received<SentPanel>[]} parts
   */
  receive(received, parts) {
    this.knobs.markOutdated();
    this.setPanels(received, parts);
  }

  /**
   * @param {Received<BoardHeader>} received
   * @param {Received<SentPanel>[]} parts
   */
  setPanels(received, parts) {
    const { row_labels: rowLabels, col_labels: colLabels, last_turn: lastTurn } = received.header;
    this.latest = { received, parts };
    this.input.cancelGesture();
    this.build(parts.length);
    const toLabels = (/** @type {string[] | null} */ labels) => labels?.map(toPrintable);
    const [boardRows, boardCols] = [toLabels(rowLabels), toLabels(colLabels)];
    this.panels = parts.map(({ header: panel, payload }, i) => {
      const figure = /** @type {HTMLElement} */ (this.grid.children[i]);
      const [picture, marks] = figure.querySelectorAll("canvas");
      /** @type {NodeListOf<HTMLElement>} */
      const elements = figure.querySelectorAll(".title, .value, .caption, .knob");
      const [title, value, caption, knob] = elements;
      figure.dataset.panel = panel.key;
      title.textContent = toPrintable(panel.title);
      title.title = toPrintable(panel.tooltip || panel.title);
      const opener = /** @type {HTMLElement} */ (figure.querySelector(".open"));
      opener.hidden = !panel.settings_label;
      opener.title = opener.ariaLabel = toPrintable(panel.settings_label);
      title.toggleAttribute("data-opens", panel.settings_label !== "");
      caption.textContent = panel.caption.split("\n").map(toPrintable).join("\n");
      caption.title = toPrintable(panel.details || panel.caption);
      title.classList.toggle("marked", panel.mark !== "");
      title.style.setProperty("--mark", panel.mark);
      const newPanel = {
        ...panel,
        title: title.textContent,
        caption: caption.textContent,
        codes: new Uint16Array(payload),
        value,
        picture,
        marks,
        unit: 2 ** panel.exponent,
        shape: `${panel.rows} × ${panel.cols}`,
        sharesRows: !panel.row_labels && panel.rows === (rowLabels?.length ?? parts[0].header.rows),
        rowLabels: toLabels(panel.row_labels) ?? (boardRows?.length === panel.rows ? boardRows : undefined),
        colLabels: toLabels(panel.col_labels) ?? (boardCols?.length === panel.cols ? boardCols : undefined),
      };
      const fullPanel = /** @type {Panel} */ (newPanel); // its geometry is added when the panel is painted
      this.knobs.update(knob, fullPanel);
      if (panel.frames.length) knob.append(this.player);
      return fullPanel;
    });
    this.knobs.acknowledge(lastTurn);
    this.views.removeUnused(this.panels);
    const active = this.cell && this.panels[this.cell.panel];
    if (!active || active.shape !== this.activeShape) this.cell = null;
    this.schedule("layout");
  }

  /**
   * Redraw one matrix while its knob is dragged.
   * @param {Received<SentPanel>} part
   * @param {number} lastTurn
   */
  redraw(part, lastTurn) {
    if (!this.latest) return;
    const { received, parts } = this.latest;
    const newParts = parts.map((each) => (each.header.key === part.header.key ? part : each));
    this.setPanels({ ...received, header: { ...received.header, last_turn: lastTurn } }, newParts);
  }

  /**
   * Set new texts, scale or pinned row. The pinned row from Python replaces the visitor's.
   * @param {BoardSettings} settings
   */
  show(settings) {
    this.settings = settings;
    this.reportedPin = settings.pinned;
    if (this.reportTimer === undefined) this.pinned = settings.pinned;
    this.stopAnimation();
    const { texts } = settings;
    this.grid.setAttribute("aria-label", texts.help);
    this.grid.classList.toggle("turns", settings.turns);
    const isTouched = matchMedia("(hover: none)").matches;
    this.hint.textContent = isTouched ? texts.touch_hint : texts.hint;
    this.link.textContent = texts.link;
    this.link.setAttribute("href", settings.address);
    this.link.hidden = !texts.link;
    this.reading.textContent = isTouched ? texts.touch_reading : texts.reading;
    this.buttons.replaceChildren(
      ...[
        ["reset", "⤢", texts.reset],
        ["in", texts.zoom_in, texts.zoom_in],
        ["png", "PNG", texts.download],
        ["svg", "SVG", texts.download],
      ].map(([action, label, title]) => {
        const name = label === label.toUpperCase() && /[A-Z]/.test(label) ? `${title} ${label}` : title;
        return make("button", { type: "button", "data-act": action, title: name, "aria-label": name }, label);
      }),
    );
    this.player.hidden = settings.last_frame <= 1;
    this.schedule("layout");
  }

  /** Read the theme again, which may have changed. */
  retheme() {
    const theme = readTheme(this.root);
    if (JSON.stringify(theme) === JSON.stringify(this.theme)) return;
    this.theme = theme;
    this.schedule("paint");
  }

  /** Repaint when the window moves to a screen with another pixel density. */
  watchDensity() {
    const { signal } = this.listeners;
    const repaint = () => {
      this.schedule("paint");
      this.watchDensity();
    };
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", repaint, { once: true, signal });
  }

  // -- layout and painting ----------------------------------------------------------------------------------------

  /**
   * Create the elements of `count` panels.
   * @param {number} count
   */
  build(count) {
    while (this.grid.children.length > count) this.grid.lastChild?.remove();
    while (this.grid.children.length < count) {
      const plot = make("div", { class: "plot" }, make("canvas"), make("canvas"));
      const opener = make("button", { class: "open", type: "button", "data-act": "open" }, settingsIcon());
      const head = make("div", { class: "head" }, make("span", { class: "title", "data-act": "open" }), opener, make("span", { class: "value" }));
      const caption = make("figcaption", {}, head, make("div", { class: "key", "aria-hidden": "true" }), make("div", { class: "caption" }), this.knobs.build());
      this.grid.append(make("figure", {}, caption, make("div", {}, plot)));
    }
  }

  /**
   * Request work before the next frame: "layout" includes "paint", which includes "marks".
   * @param {"layout" | "paint" | "marks"} work
   */
  schedule(work) {
    this.pendingWork[work] = true;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (!this.panels || !this.settings || !this.theme || !this.root.clientWidth) return;
      const { pendingWork } = this;
      this.pendingWork = {};
      if (pendingWork.layout) this.layout();
      if (pendingWork.layout || pendingWork.paint) this.paint();
      this.paintMarks();
    });
  }

  layout() {
    const count = this.panels.length;
    const width = this.root.clientWidth;
    const countThatFit = (/** @type {number} */ side) => Math.floor((width + GAP) / (side + GAP));
    const isStep = this.settings.scale === "panel"; // a step of a story, whose panels are factors and their product
    const maxColumns = Math.min(count, isStep ? (count === 6 ? 3 : 6) : count > 8 ? 6 : count === 5 ? 5 : 4);
    this.columns = maxColumns >= 4 && countThatFit(isStep ? STEP_SIDE : LINE_SIDE) >= maxColumns ? maxColumns : clamp(countThatFit(MIN_SIDE), 1, maxColumns);
    const maxSide = Math.min(this.settings.panel_size, Math.max(innerHeight * ({ 1: SINGLE_SHARE, 3: THREE_SHARE }[count] ?? MAX_SHARE), MIN_SIDE));
    this.side = Math.floor(Math.min(maxSide, (width - GAP * (this.columns - 1)) / this.columns));
    const isEquation = this.panels.some((panel) => panel.sign);
    if (isEquation && width < EQUATION_WIDTH) {
      this.columns = 2;
      this.side = Math.floor((width - GAP) / 2);
    }
    const isSwiped = this.columns === 1 && count > 1;
    if (isSwiped) this.side = Math.min(this.settings.panel_size, width - PEEK);
    this.textWidth = count === 1 && !isStep && width - this.side - GAP >= MIN_TEXT ? width - this.side - GAP : width;
    this.root.classList.toggle("legend-right", this.textWidth < width);
    this.grid.classList.toggle("swiped", isSwiped);
    const others = this.panels.slice(1).map((panel) => toPrintable(panel.title));
    this.swipe.textContent = isSwiped ? `${fill(this.settings.texts.swipe, { names: others.join(" · ") })} \u2192` : "";
    this.grid.style.gridTemplateColumns = `repeat(${isSwiped ? count : this.columns}, ${this.side}px)`;
    this.narrows = isEquation && this.fitEquation(width, maxSide);
    this.grid.querySelectorAll(".plot").forEach((plot, i) => {
      /** @type {HTMLElement} */ (plot).dataset.sign = i % this.columns ? this.panels[i].sign : "";
    });
    this.root.style.cssText = "";
  }

  /**
   * Arrange the panels of an equation in one line, each as narrow as its matrix. Return whether the line is wide enough.
   * @param {number} width
   * @param {number} maxSide
   */
  fitEquation(width, maxSide) {
    for (let side = Math.floor(maxSide); side >= STEP_SIDE; side--) {
      const widths = this.panels.map((panel) => panelWidth(this.geometryOf(panel, this.views.viewOf(panel), side)));
      if (widths.reduce((sum, each) => sum + each + GAP, -GAP) > width) continue;
      [this.side, this.columns] = [side, widths.length];
      this.grid.style.gridTemplateColumns = widths.map((each) => `${each}px`).join(" ");
      return true;
    }
    return false;
  }

  paint() {
    const startTime = performance.now();
    const { settings, theme, panels } = this;
    const { categories } = settings;
    const ownScale = settings.scale === "panel" && !categories;
    const scaleOf = (/** @type {Panel[]} */ scaledPanels, ceiling = 0) =>
      makeScale({
        highest: Math.max(...scaledPanels.map((panel) => panel.highest)),
        lowest: Math.min(...scaledPanels.map((panel) => panel.lowest)),
        smallest: Math.min(...scaledPanels.map((panel) => panel.smallest || Infinity)),
        signed: scaledPanels.some((panel) => panel.signed),
        transform: settings.transform,
        ceiling,
      });
    this.sharedScale = ownScale || categories ? null : scaleOf(panels, settings.ceiling);
    const scales = new Map(panels.map((panel) => [panel, this.sharedScale ?? scaleOf([panel])]));
    const scale = (/** @type {Panel} */ panel) => /** @type {Scale} */ (scales.get(panel));
    const oldTables = this.tables;
    this.tables = new Map();
    this.appearance = {
      theme,
      palette: PALETTES[theme.mode],
      texts: settings.texts,
      categories,
      ownScale,
      unsigned: settings.unsigned,
      percent: settings.percent,
      scale,
      table: (panel) => {
        const name = [categories ? JSON.stringify([categories, settings.frame]) : scale(panel).name, panel.unit, theme.mode].join();
        const makeTable = () =>
          categories
            ? categoryTable(categories, panel.unit, theme.mode, settings.frame)
            : colourTable(scale(panel), panel.unit, this.appearance.palette);
        const table = this.tables.get(name) ?? oldTables.get(name) ?? makeTable();
        this.tables.set(name, table);
        return table;
      },
    };
    let pooled = 1;
    const haveSameRows = new Set(panels.map(({ row_title }) => row_title ?? settings.texts.rows)).size === 1;
    this.grid.classList.toggle("own-scales", ownScale);
    for (const [i, panel] of panels.entries()) {
      panel.repeats = haveSameRows && i % this.columns > 0;
      panel.geometry = this.geometryOf(panel, this.views.viewOf(panel));
      const pen = preparePen(panel.picture, this.widthOf(panel), panelHeight(this.side, ownScale), theme.font);
      drawPanel(pen, panel, panel.geometry, this.appearance);
      pooled = Math.max(pooled, panel.geometry.pooled);
    }
    panels.forEach(({ group }, i) => this.paintKey(/** @type {HTMLElement} */ (this.grid.children[i].querySelector(".key")), group));
    this.paintLegend();
    this.grid.classList.toggle("zoomed", this.views.isZoomed);
    this.note.textContent = noteText(pooled, this.appearance);
    this.root.dataset.paintMs = (performance.now() - startTime).toFixed(1);
    this.root.dataset.paints = String(++this.paints);
  }

  /**
   * @param {Panel} panel
   * @param {View} view
   * @param {number} [side]
   * @returns {Geometry}
   */
  geometryOf(panel, view, side = this.side) {
    const pen = new CanvasPen(contextOf(panel.picture), devicePixelRatio, this.theme.font);
    return panelGeometry(pen, panel, side, view);
  }

  /** @param {Panel} panel */
  widthOf(panel) {
    return this.narrows ? panelWidth(panel.geometry) : this.side;
  }

  /**
   * Write the key above a panel: the categories of one group, with their colours.
   * @param {HTMLElement} line the element for them
   * @param {string} group the heading of the categories; empty for none
   */
  paintKey(line, group) {
    line.replaceChildren();
    if (!group) return;
    const { names, colours } = groupColours(this.appearance, group);
    const swatches = colours.map((colour) => {
      const swatch = make("i");
      swatch.style.background = colour;
      return swatch;
    });
    const [first, last] = names.map((name) => make("span", {}, name));
    const isList = names.length === colours.length; // otherwise, only the first and the last colour are named
    const ramp = make("span", { class: "ramp" }, ...(isList ? [] : [first, make("span", {}, ...swatches), last]));
    if (isList) swatches.forEach((swatch, i) => ramp.append(swatch, i ? last : first));
    line.append(make("b", {}, group), ramp);
  }

  paintLegend() {
    const boardWidth = this.textWidth;
    const ruler = new CanvasPen(contextOf(this.legend), devicePixelRatio, this.theme.font);
    let width = boardWidth;
    if (this.reading.textContent && this.sharedScale) {
      width = Math.min(width, legendLayout(ruler, width - 2, this.sharedScale, this.appearance, { masked: this.maskedLabel }).width + 2);
    }
    const omitted = this.panels.map(({ group }) => group).filter(Boolean);
    const height = this.legendHeight(ruler, width - 2, omitted);
    this.drawLegend(preparePen(this.legend, width, height, this.theme.font), 1, 0, width - 2, omitted);
    const { sharedScale, appearance } = this;
    const end = sharedScale ? formatTick(sharedScale.top, appearance.percent) : "";
    const start = !sharedScale?.signed ? "0" : appearance.unsigned ? `${end} … 0` : formatTick(-sharedScale.top, appearance.percent);
    const name = appearance.categories
      ? legendText(legendItems(appearance, this.maskedLabel))
      : sharedScale && `${legendName(sharedScale, appearance)}: ${start} … ${end}`;
    const beyondTexts = sharedScale ? beyondItems(sharedScale, appearance).map(({ text }) => text) : [];
    this.legend.setAttribute("aria-label", [name ?? appearance.texts.own_scale, ...beyondTexts].join("; "));
  }

  /** The label of masked cells for the common legend; null if the legend does not need it. */
  get maskedLabel() {
    return !this.appearance.ownScale && this.panels.some((panel) => panel.masked) ? this.appearance.texts.masked : null;
  }

  /**
   * @param {Pen} pen
   * @param {number} width
   * @param {string[]} [omitted] the groups of categories in the keys above panels
   */
  legendHeight(pen, width, omitted) {
    const { appearance, sharedScale, maskedLabel: masked } = this;
    if (appearance.categories) return layoutCategories(pen, width, legendItems(appearance, masked, omitted)).height;
    return sharedScale ? legendLayout(pen, width, sharedScale, appearance, { masked }).height : NAME_HEIGHT;
  }

  /**
   * Draw the legend of the shared scale; panels with their own scales have their own legends.
   * @param {Pen} pen
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {string[]} [omitted] the groups of categories in the keys above panels
   */
  drawLegend(pen, x, y, width, omitted) {
    const { appearance, sharedScale, maskedLabel: masked } = this;
    if (appearance.categories) drawCategories(pen, x, y, width, appearance, legendItems(appearance, masked, omitted));
    else if (sharedScale) drawLegend(pen, x, y, width, sharedScale, appearance, { masked });
    else {
      pen.text(legendName(this.settings, appearance), x, y + 6, { colour: appearance.theme.muted, weight: 600 });
    }
  }

  /** Draw the crosshair, the pin and the numbers; this is fast enough for every pointer move. */
  paintMarks() {
    const { cell, settings, theme } = this;
    const active = cell && this.panels[cell.panel];
    for (const panel of this.panels) {
      const pen = preparePen(panel.marks, this.widthOf(panel), panelHeight(this.side, this.appearance.ownScale), theme.font);
      const linked = panel.shape === active?.shape ? cell : null;
      drawMarks(pen, panel.geometry, { pinned: this.hasPinnedRow(panel) ? this.pinned : null, cell: linked }, theme);
      const highlightedBands = this.bands(panel);
      for (const band of highlightedBands) drawBand(pen, panel.geometry, band, theme);
      panel.marks.dataset.lit = highlightedBands.map(({ row, col }) => (row === null ? `column ${col}` : `row ${row}`)).join(", ");
      panel.value.textContent = linked ? cellText(panel, linked.row, linked.col, settings) : "";
    }
    this.root.dataset.pinned = String(this.pinned ?? "");
    this.root.dataset.cell = cell ? `${cell.row},${cell.col}` : "";
    this.readout.show();
    dispatchEvent(new CustomEvent(PAINTED, { detail: this.root.dataset.board }));
  }

  /** Show the frames of the animation one after another, or stop at the current one. */
  play() {
    const { settings } = this;
    if (this.playTimer) {
      this.stopAnimation();
      this.send("stop", settings.frame);
      return;
    }
    const show = (/** @type {number} */ frame) => {
      this.drawFrame(frame);
      if (frame === settings.last_frame) this.play();
    };
    this.playTimer = setInterval(() => show(settings.frame + 1), FRAME_TIME);
    this.player.textContent = `■ ${settings.texts.stop}`;
    show(1);
  }

  /**
   * Stop the animation and show one of its frames.
   * @param {number} frame
   */
  showFrame(frame) {
    this.stopAnimation();
    this.drawFrame(frame);
  }

  /**
   * Draw a frame of the animation, or the last frame if `frame` is larger.
   * @param {number} frame
   */
  drawFrame(frame) {
    const { settings } = this;
    settings.frame = Math.min(frame, settings.last_frame);
    this.root.dataset.frame = String(settings.frame);
    for (const [i, { frames, knob }] of this.panels.entries()) {
      const caption = frames[settings.frame - 1];
      if (!caption) continue;
      const figure = this.grid.children[i];
      const [line, row] = [figure.querySelector(".caption"), figure.querySelector(".knob")];
      if (line) this.readout.live.textContent = line.textContent = caption;
      if (knob && row instanceof HTMLElement && this.playTimer) this.knobs.setFrame(row, knob, settings.frame);
    }
    this.schedule("paint");
  }

  /** Stop the animation. */
  stopAnimation() {
    clearInterval(this.playTimer);
    this.player.textContent = `▶\ufe0e ${this.settings.texts.play}`;
    this.playTimer = undefined;
  }

  /**
   * Report that the visitor wants to change a panel's settings.
   * @param {HTMLElement} button the title or the button next to it
   */
  open(button) {
    const figure = /** @type {HTMLElement} */ (button.closest("figure"));
    const panel = this.panels.find(({ key }) => key === figure.dataset.panel);
    if (panel?.settings_label) this.send("open", panel.key);
  }

  // -- state ------------------------------------------------------------------------------------------------------

  /**
   * Return whether the pinned query is also a row of this panel.
   * @param {Panel} panel
   */
  hasPinnedRow(panel) {
    return panel.sharesRows && this.pinned !== null && this.pinned < panel.rows;
  }

  /**
   * Return the highlighted rows and columns of a panel while the pointer is on another panel or on a text.
   * @param {Panel} panel
   */
  bands(panel) {
    const { cell, panels, token, settings } = this;
    if (token) return bandsOfToken(panel, token, settings.texts);
    const active = cell && panels[cell.panel];
    return active && active.shape !== panel.shape ? bandsOf(active, cell, panel, settings.texts) : [];
  }

  /**
   * Highlight the token under the pointer in a text: null removes the highlight, and undefined changes nothing.
   * @param {{ count: number, index: number } | null | undefined} token
   */
  highlightToken(token) {
    if (token === undefined || (token?.index === this.token?.index && token?.count === this.token?.count)) return;
    this.token = token;
    this.schedule("marks");
  }

  /** @param {Cell | null} cell */
  setCell(cell) {
    const previous = this.cell;
    if (previous?.panel === cell?.panel && previous?.row === cell?.row && previous?.col === cell?.col) return;
    this.cell = cell;
    this.activeShape = cell && this.panels[cell.panel].shape;
    const panel = cell && this.panels[cell.panel];
    const indices = cell ? [cell.row, cell.col] : [];
    const axes = panel ? describeAxes(panel, this.settings.texts).map((axis, i) => ({ axis, index: indices[i] })) : [];
    dispatchEvent(new CustomEvent(POINTED, { detail: { axes } }));
    this.schedule("marks");
  }

  /**
   * Pin a row, or unpin it. Python is notified after `delay` milliseconds if the pin has changed by then.
   * @param {Panel} panel
   * @param {number} row
   */
  pin(panel, row, delay = 0) {
    if (!panel.sharesRows || !this.settings.pins) return;
    this.setPin(this.pinned === row ? null : row, delay);
  }

  /**
   * @param {number | null} row
   * @param {number} delay
   */
  setPin(row, delay) {
    this.pinned = row;
    clearTimeout(this.reportTimer);
    this.reportTimer = setTimeout(() => {
      this.reportTimer = undefined;
      if (this.pinned === this.reportedPin) return;
      this.reportedPin = this.pinned;
      this.send("pin", { row: this.pinned });
    }, delay);
    this.schedule("marks");
  }

  destroy() {
    this.input.destroy();
    this.listeners.abort();
    this.resizeObserver.disconnect();
    cancelAnimationFrame(this.frame ?? 0);
    this.readout.destroy();
    this.knobs.destroy();
    clearTimeout(this.reportTimer);
    clearInterval(this.playTimer);
    this.root.remove();
  }
}
