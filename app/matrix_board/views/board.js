// The board of a comparison: its data, its layout and its painting.
/** @import { BoardHeader, BoardSettings, Cell, Geometry, Look, Panel, Pen, Received, Scale, Send, SentPanel, Theme, View } from "../messages" */

import { PAINTED } from "../channels/boards.js";
import { categoryTable, drawCategories, legendItems, legendPlaces, legendText, groupColours } from "../drawing/categories.js";
import { colourTable, makeScale, PALETTES, tickNumeral } from "../drawing/color.js";
import { Hands } from "./hands.js";
import { Knobs } from "./knobs.js";
import { bandsOf, bandsOfToken, POINTED, thingsOf } from "./links.js";
import { drawBand, drawMarks } from "../drawing/marks.js";
import { clamp, make, penFor, printable, readTheme, settingsIcon } from "../drawing/elements.js";
import { beyondEnds, drawLegend, drawPanel, legendLayout, legendName, NAME_HEIGHT, notesOf, panelGeometry, panelHeight } from "../drawing/panel.js";
import { brushOf, CanvasPen } from "../drawing/pen.js";
import { cellText, Readout } from "./readout.js";
import { Views } from "./zoom.js";

const GAP = 20;
const LINE_SIDE = 196; // smallest side at which four or five panels stay in one line, where they are easier to compare
const HIGH = 0.45; // largest share of the window's height for a panel, so that the text above it stays in view
const LEAST_SIDE = 224; // below this a panel is too small to read, so fewer share a line
const FRAME_TIME = 700; // milliseconds for each frame of an animation
const PEEK = 36; // the visible part of the next panel on a narrow screen, where panels are swiped

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
  /** @type {Look} */
  look;
  /** @type {number} */
  columns;
  /** @type {number} */
  side;
  /** @type {Scale | null} */
  shared; // the scale of all panels; null if each panel has its own, or numbers are categories
  /** @type {{ received: Received<BoardHeader>, parts: Received<SentPanel>[] } | undefined} */
  received; // the latest message
  /** @type {{ count: number, at: number } | null | undefined} */
  token; // the token pointed at in a text
  /** @type {number | undefined} */
  frame;
  /** @type {number | undefined} */
  reporting;
  /** @type {number | null} */
  reported = null;
  /** @type {string | null} */
  shape = null; // the shape of the panel with the cell
  /** @type {number | undefined} */
  playing;

  /** @param {HTMLElement | ShadowRoot} host */
  constructor(host) {
    /** @type {Cell | null} */
    this.cell = null; // the cell under the pointer or the keyboard
    /** @type {Map<string, Uint32Array>} */
    this.tables = new Map();
    this.views = new Views(this);
    this.readout = new Readout(this);
    this.knobs = new Knobs(this);
    /** @type {number | null} */
    this.pinned = null;
    this.paints = 0;
    /** @type {{ layout?: boolean, paint?: boolean, marks?: boolean }} */
    this.due = {};
    this.legend = make("canvas", { class: "legend", role: "img" });
    this.buttons = make("div", { class: "buttons" });
    this.player = make("button", { class: "play", type: "button", "data-act": "play" }); // next to the knob of the animated panel
    this.grid = make("div", { class: "grid", role: "application", tabindex: "0" });
    this.hint = make("span", { class: "hint" });
    this.note = make("span", { class: "note" });
    this.root = make(
      "div",
      { class: "board" },
      make("div", { class: "bar" }, this.legend, this.buttons),
      this.grid,
      make("div", { class: "foot" }, this.hint, this.note),
      this.readout.tip,
      this.readout.live,
    );
    this.root.style.cssText = "visibility: hidden; height: 0"; // until the panels are arranged
    host.append(this.root);
    this.hands = new Hands(this);
    this.listeners = new AbortController();
    this.watch = new ResizeObserver(() => this.schedule("layout"));
    this.watch.observe(this.root);
    this.watchDensity();
    const onPointed = (/** @type {Event} */ event) => this.highlightToken(/** @type {CustomEvent} */ (event).detail.token);
    addEventListener(POINTED, onPointed, { signal: this.listeners.signal });
    document.fonts.ready.then(() => this.schedule("paint"));
  }

  // -- messages from Python ----------------------------------------------------------------------------------------

  /**
   * Set new matrices. Zoom, pan and the cell stay as long as the shapes are unchanged.
   * @param {Received<BoardHeader>} received
   * @param {Received<SentPanel>[]} parts
   */
  receive(received, parts) {
    this.knobs.markOutdated();
    this.take(received, parts);
  }

  /**
   * @param {Received<BoardHeader>} received
   * @param {Received<SentPanel>[]} parts
   */
  take(received, parts) {
    const { row_labels: rowLabels, col_labels: colLabels, last_turn: lastTurn } = received.header;
    this.received = { received, parts };
    this.hands.cancelGesture();
    this.build(parts.length);
    const shown = (/** @type {string[] | null} */ labels) => labels?.map(printable);
    const [ownRows, ownCols] = [shown(rowLabels), shown(colLabels)];
    this.panels = parts.map(({ header: panel, payload }, i) => {
      const figure = /** @type {HTMLElement} */ (this.grid.children[i]);
      const [picture, marks] = figure.querySelectorAll("canvas");
      /** @type {NodeListOf<HTMLElement>} */
      const elements = figure.querySelectorAll(".title, .value, .caption, .knob");
      const [title, value, caption, knob] = elements;
      figure.dataset.panel = panel.key;
      title.textContent = printable(panel.title);
      title.title = printable(panel.tooltip || panel.title);
      const opener = /** @type {HTMLElement} */ (figure.querySelector(".open"));
      opener.hidden = !panel.settings_label;
      opener.title = opener.ariaLabel = printable(panel.settings_label);
      title.toggleAttribute("data-opens", panel.settings_label !== "");
      caption.textContent = panel.caption.split("\n").map(printable).join("\n");
      caption.title = printable(panel.details || panel.caption);
      title.classList.toggle("marked", panel.mark !== "");
      title.style.setProperty("--mark", panel.mark);
      const described = {
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
        rowLabels: shown(panel.row_labels) ?? (ownRows?.length === panel.rows ? ownRows : undefined),
        colLabels: shown(panel.col_labels) ?? (ownCols?.length === panel.cols ? ownCols : undefined),
      };
      const one = /** @type {Panel} */ (described); // its geometry is set when it is painted
      this.knobs.fit(knob, one);
      if (panel.frames.length) knob.append(this.player);
      return one;
    });
    this.knobs.acknowledge(lastTurn);
    this.views.keep(this.panels);
    const active = this.cell && this.panels[this.cell.panel];
    if (!active || active.shape !== this.shape) this.cell = null;
    this.schedule("layout");
  }

  /**
   * Redraw one matrix while its knob is dragged.
   * @param {Received<SentPanel>} part
   * @param {number} lastTurn
   */
  redraw(part, lastTurn) {
    if (!this.received) return;
    const { received, parts } = this.received;
    const others = parts.map((each) => (each.header.key === part.header.key ? part : each));
    this.take({ ...received, header: { ...received.header, last_turn: lastTurn } }, others);
  }

  /**
   * Set new texts, scale or pin. A new pin from Python replaces the visitor's.
   * @param {BoardSettings} settings
   */
  show(settings) {
    this.settings = settings;
    this.reported = settings.pinned;
    if (this.reporting === undefined) this.pinned = settings.pinned;
    this.halt();
    const { texts } = settings;
    this.grid.setAttribute("aria-label", texts.help);
    this.grid.classList.toggle("turns", settings.turns);
    this.hint.textContent = matchMedia("(hover: none)").matches ? texts.touch_hint : texts.hint;
    this.buttons.replaceChildren(
      ...[
        ["reset", "⤢", texts.reset],
        ["in", texts.zoom_in, texts.zoom_in],
        ["png", "PNG", texts.download],
        ["svg", "SVG", texts.download],
      ].map(([act, face, title]) => {
        const name = face === face.toUpperCase() && /[A-Z]/.test(face) ? `${title} ${face}` : title;
        return make("button", { type: "button", "data-act": act, title: name, "aria-label": name }, face);
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
    const again = () => {
      this.schedule("paint");
      this.watchDensity();
    };
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", again, { once: true, signal });
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
   * @param {"layout" | "paint" | "marks"} what
   */
  schedule(what) {
    this.due[what] = true;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (!this.panels || !this.settings || !this.theme || !this.root.clientWidth) return;
      const { due } = this;
      this.due = {};
      if (due.layout) this.layout();
      if (due.layout || due.paint) this.paint();
      this.mark();
    });
  }

  layout() {
    const count = this.panels.length;
    const room = this.root.clientWidth;
    const fitting = (/** @type {number} */ side) => Math.floor((room + GAP) / (side + GAP));
    const most = Math.min(count, count > 8 ? 6 : count === 5 ? 5 : 4);
    this.columns = most >= 4 && fitting(LINE_SIDE) >= most ? most : clamp(fitting(LEAST_SIDE), 1, most);
    const high = Math.min(this.settings.panel_size, Math.max(innerHeight * HIGH, LEAST_SIDE));
    this.side = Math.floor(Math.min(high, (room - GAP * (this.columns - 1)) / this.columns));
    const swiped = this.columns === 1 && count > 1;
    if (swiped) this.side = Math.min(this.settings.panel_size, room - PEEK);
    this.grid.classList.toggle("swiped", swiped);
    this.grid.style.gridTemplateColumns = `repeat(${swiped ? count : this.columns}, ${this.side}px)`;
    this.root.style.cssText = "";
  }

  paint() {
    const started = performance.now();
    const { settings, theme, panels } = this;
    const { categories } = settings;
    const ownScale = settings.scale === "panel" && !categories;
    const scaleOf = (/** @type {Panel[]} */ some, ceiling = 0) =>
      makeScale({
        highest: Math.max(...some.map((panel) => panel.highest)),
        lowest: Math.min(...some.map((panel) => panel.lowest)),
        smallest: Math.min(...some.map((panel) => panel.smallest || Infinity)),
        signed: some.some((panel) => panel.signed),
        transform: settings.transform,
        ceiling,
      });
    this.shared = ownScale || categories ? null : scaleOf(panels, settings.ceiling);
    const scales = new Map(panels.map((panel) => [panel, this.shared ?? scaleOf([panel])]));
    const scale = (/** @type {Panel} */ panel) => /** @type {Scale} */ (scales.get(panel));
    const kept = this.tables;
    this.tables = new Map();
    this.look = {
      theme,
      palette: PALETTES[theme.mode],
      texts: settings.texts,
      categories,
      ownScale,
      scale,
      table: (panel) => {
        const name = [categories ? JSON.stringify([categories, settings.frame]) : scale(panel).name, panel.unit, theme.mode].join();
        const fresh = () =>
          categories
            ? categoryTable(categories, panel.unit, theme.mode, settings.frame)
            : colourTable(scale(panel), panel.unit, this.look.palette);
        const table = this.tables.get(name) ?? kept.get(name) ?? fresh();
        this.tables.set(name, table);
        return table;
      },
    };
    let pooled = 1;
    for (const [i, panel] of panels.entries()) {
      const before = i % this.columns ? panels[i - 1] : null;
      panel.repeats = before !== null && (before.row_title ?? settings.texts.rows) === (panel.row_title ?? settings.texts.rows);
      const pen = penFor(panel.picture, this.side, panelHeight(this.side, ownScale), theme.font);
      panel.geometry = this.geometryOf(panel, this.views.of(panel));
      drawPanel(pen, panel, panel.geometry, this.look);
      pooled = Math.max(pooled, panel.geometry.pooled);
    }
    panels.forEach(({ group }, i) => this.paintKey(/** @type {HTMLElement} */ (this.grid.children[i].querySelector(".key")), group));
    this.paintLegend();
    this.grid.classList.toggle("zoomed", this.views.zoomed);
    this.note.textContent = notesOf(pooled, this.look);
    this.root.dataset.paintMs = (performance.now() - started).toFixed(1);
    this.root.dataset.paints = String(++this.paints);
  }

  /**
   * @param {Panel} panel
   * @param {View} view
   * @returns {Geometry}
   */
  geometryOf(panel, view) {
    const pen = new CanvasPen(brushOf(panel.picture), devicePixelRatio, this.theme.font);
    return panelGeometry(pen, panel, this.side, view);
  }

  /**
   * Draw the colours of the categories that a panel explains itself.
   * @param {HTMLElement} line
   * @param {string} group
   */
  paintKey(line, group) {
    line.replaceChildren();
    if (!group) return;
    const { names, colours } = groupColours(this.look, group);
    const swatches = colours.map((colour) => {
      const swatch = make("i");
      swatch.style.background = colour;
      return swatch;
    });
    const [first, last] = names.map((name) => make("span", {}, name));
    const few = names.length === colours.length; // else a ramp between the names of its ends
    const ramp = make("span", { class: "ramp" }, ...(few ? [] : [first, make("span", {}, ...swatches), last]));
    if (few) swatches.forEach((swatch, i) => ramp.append(swatch, i ? last : first));
    line.append(make("b", {}, group), ramp);
  }

  paintLegend() {
    const room = this.root.clientWidth;
    const width = room > 560 ? room - this.buttons.offsetWidth - GAP : room; // next to the buttons, or above them
    const ruler = new CanvasPen(brushOf(this.legend), devicePixelRatio, this.theme.font);
    const omitted = this.panels.map(({ group }) => group).filter(Boolean);
    const high = this.legendHeight(ruler, width - 2, omitted);
    this.drawLegend(penFor(this.legend, width, high, this.theme.font), 1, 0, width - 2, omitted);
    const { shared, look } = this;
    const name = look.categories
      ? legendText(legendItems(look, this.maskedWord))
      : shared && `${legendName(shared, look)}: ${shared.signed ? tickNumeral(-shared.top) : 0} … ${tickNumeral(shared.top)}`;
    const beyond = shared ? beyondEnds(shared, look).map(({ text }) => text) : [];
    this.legend.setAttribute("aria-label", [name ?? look.texts.own_scale, ...beyond].join("; "));
  }

  /** The label of masked cells for the common legend; null if the legend does not need it. */
  get maskedWord() {
    return !this.look.ownScale && this.panels.some((panel) => panel.masked) ? this.look.texts.masked : null;
  }

  /**
   * @param {Pen} pen
   * @param {number} width
   * @param {string[]} [omitted] the groups of categories that panels explain
   */
  legendHeight(pen, width, omitted) {
    const { look, shared, maskedWord: masked } = this;
    if (look.categories) return legendPlaces(pen, width, legendItems(look, masked, omitted)).height;
    return shared ? legendLayout(pen, width, shared, look, { masked }).height : NAME_HEIGHT;
  }

  /**
   * Draw the legend of the shared scale; panels with their own scales have their own legends.
   * @param {Pen} pen
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {string[]} [omitted] the groups of categories that panels explain
   */
  drawLegend(pen, x, y, width, omitted) {
    const { look, shared, maskedWord: masked } = this;
    if (look.categories) drawCategories(pen, x, y, width, look, legendItems(look, masked, omitted));
    else if (shared) drawLegend(pen, x, y, width, shared, look, { masked });
    else {
      pen.text(legendName(this.settings, look), x, y + 6, { colour: look.theme.muted, weight: 600 });
    }
  }

  /** Draw the crosshair, the pin and the numbers; this is fast enough for every pointer move. */
  mark() {
    const { cell, settings, theme } = this;
    const active = cell && this.panels[cell.panel];
    for (const panel of this.panels) {
      const pen = penFor(panel.marks, this.side, panelHeight(this.side, this.look.ownScale), theme.font);
      const linked = panel.shape === active?.shape ? cell : null;
      drawMarks(pen, panel.geometry, { pinned: this.pins(panel) ? this.pinned : null, cell: linked }, theme);
      const bands = this.bands(panel);
      for (const band of bands) drawBand(pen, panel.geometry, band, theme);
      panel.marks.dataset.lit = bands.map(({ row, col }) => (row === null ? `column ${col}` : `row ${row}`)).join(", ");
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
    if (this.playing) {
      this.halt();
      this.send("stop", settings.frame);
      return;
    }
    const show = (/** @type {number} */ frame) => {
      this.drawFrame(frame);
      if (frame === settings.last_frame) this.play();
    };
    this.playing = setInterval(() => show(settings.frame + 1), FRAME_TIME);
    this.player.textContent = `■ ${settings.texts.stop}`;
    show(1);
  }

  /**
   * Stop the animation and show one of its frames.
   * @param {number} frame
   */
  showFrame(frame) {
    this.halt();
    this.drawFrame(frame);
  }

  /**
   * Draw a frame of the animation, or its last if there are fewer.
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
      if (knob && row instanceof HTMLElement && this.playing) this.knobs.follow(row, knob, settings.frame);
    }
    this.schedule("paint");
  }

  /** Stop the animation. */
  halt() {
    clearInterval(this.playing);
    this.player.textContent = `▶\ufe0e ${this.settings.texts.play}`;
    this.playing = undefined;
  }

  /**
   * Report that the visitor wants to change a panel's settings.
   * @param {HTMLElement} pressed the title or the button next to it
   */
  open(pressed) {
    const figure = /** @type {HTMLElement} */ (pressed.closest("figure"));
    const panel = this.panels.find(({ key }) => key === figure.dataset.panel);
    if (panel?.settings_label) this.send("open", panel.key);
  }

  // -- state ------------------------------------------------------------------------------------------------------

  /**
   * Return whether the pinned query is also a row of this panel.
   * @param {Panel} panel
   */
  pins(panel) {
    return panel.sharesRows && this.pinned !== null && this.pinned < panel.rows;
  }

  /**
   * Return the highlighted rows and columns of a panel while another panel or a text is pointed at.
   * @param {Panel} panel
   */
  bands(panel) {
    const { cell, panels, token, settings } = this;
    if (token) return bandsOfToken(panel, token, settings.texts);
    const active = cell && panels[cell.panel];
    return active && active.shape !== panel.shape ? bandsOf(active, cell, panel, settings.texts) : [];
  }

  /**
   * Highlight a token that a text points at: null removes the highlight, and undefined changes nothing.
   * @param {{ count: number, at: number } | null | undefined} token
   */
  highlightToken(token) {
    if (token === undefined || (token?.at === this.token?.at && token?.count === this.token?.count)) return;
    this.token = token;
    this.schedule("marks");
  }

  /** @param {Cell | null} cell */
  setCell(cell) {
    const now = this.cell;
    if (now?.panel === cell?.panel && now?.row === cell?.row && now?.col === cell?.col) return;
    this.cell = cell;
    this.shape = cell && this.panels[cell.panel].shape;
    const of = cell && this.panels[cell.panel];
    const places = cell ? [cell.row, cell.col] : [];
    const axes = of ? thingsOf(of, this.settings.texts).map((things, i) => ({ things, at: places[i] })) : [];
    dispatchEvent(new CustomEvent(POINTED, { detail: { axes } }));
    this.schedule("marks");
  }

  /**
   * Pin a row, or unpin it. Python is notified after `wait` milliseconds if the pin has changed by then.
   * @param {Panel} panel
   * @param {number} row
   */
  pin(panel, row, wait = 0) {
    if (!panel.sharesRows || !this.settings.pins) return;
    this.setPin(this.pinned === row ? null : row, wait);
  }

  /**
   * @param {number | null} row
   * @param {number} wait
   */
  setPin(row, wait) {
    this.pinned = row;
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => {
      this.reporting = undefined;
      if (this.pinned === this.reported) return;
      this.reported = this.pinned;
      this.send("pin", { row: this.pinned });
    }, wait);
    this.schedule("marks");
  }

  destroy() {
    this.hands.destroy();
    this.listeners.abort();
    this.watch.disconnect();
    cancelAnimationFrame(this.frame ?? 0);
    this.readout.destroy();
    this.knobs.destroy();
    clearTimeout(this.reporting);
    clearInterval(this.playing);
    this.root.remove();
  }
}
