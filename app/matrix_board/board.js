// The board of a comparison: what it holds, how it is laid out and painted.

const GAP = 20;
const LEAST_SIDE = 224; // below this a panel is too small to read, so fewer stand side by side

class Board {
  constructor(host) {
    this.cell = null; // {panel, row, col} under the pointer or the keyboard
    this.views = new Views(this);
    this.readout = new Readout(this);
    this.pinned = null;
    this.paints = 0;
    this.due = {};
    this.legend = make("canvas", { class: "legend", role: "img" });
    this.buttons = make("div", { class: "buttons" });
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
    host.append(this.root);
    this.hands = new Hands(this);
    this.ears = new AbortController();
    this.watch = new ResizeObserver(() => this.schedule("layout"));
    this.watch.observe(this.root);
    this.watchDensity();
    document.fonts.ready.then(() => this.schedule("paint"));
  }

  // -- what Python sends ------------------------------------------------------------------------------------------

  /** New matrices. Zoom, pan and the cell survive as long as shapes do. */
  receive({ panels, row_labels: rowLabels, col_labels: colLabels }, payload) {
    this.hands.letGo();
    let start = 0;
    const shown = (labels) => labels?.map(printable);
    const [ownRows, ownCols] = [shown(rowLabels), shown(colLabels)];
    this.panels = panels.map((panel) => {
      const codes = payload.subarray(start, (start += panel.rows * panel.cols));
      return {
        ...panel,
        title: printable(panel.title),
        caption: printable(panel.caption),
        codes,
        unit: 2 ** panel.exponent,
        shape: `${panel.rows} × ${panel.cols}`,
        sharesRows: !panel.row_labels && panel.rows === (rowLabels?.length ?? panels[0].rows),
        rowLabels: shown(panel.row_labels) ?? (ownRows?.length === panel.rows ? ownRows : undefined),
        colLabels: shown(panel.col_labels) ?? (ownCols?.length === panel.cols ? ownCols : undefined),
      };
    });
    this.views.keep(this.panels);
    const active = this.cell && this.panels[this.cell.panel];
    if (active?.shape !== this.shape) this.cell = null;
    this.build();
    this.schedule("layout");
  }

  /** New words, scale or pin. Python's pin wins whenever Python says something new. */
  show(settings) {
    this.settings = settings;
    this.pinned = this.reported = settings.pinned;
    const { words } = settings;
    this.grid.setAttribute("aria-label", words.help);
    this.hint.textContent = matchMedia("(hover: none)").matches ? words.touch_hint : words.hint;
    this.buttons.replaceChildren(
      ...[
        ["out", "−", words.zoom_out],
        ["in", "+", words.zoom_in],
        ["reset", "⤢", words.reset],
        ["png", "PNG", words.download],
        ["svg", "SVG", words.download],
      ].map(([act, face, title]) => {
        const name = /[A-Z]/.test(face) ? `${title} ${face}` : title;
        return make("button", { type: "button", "data-act": act, title: name, "aria-label": name }, face);
      }),
    );
    this.schedule("layout");
  }

  /** The theme may have changed. */
  retheme() {
    const theme = readTheme(this.root);
    if (JSON.stringify(theme) === JSON.stringify(this.theme)) return;
    this.theme = theme;
    this.schedule("paint");
  }

  /** Repaint when the window moves to a screen of another density. */
  watchDensity() {
    const { signal } = this.ears;
    const again = () => {
      this.schedule("paint");
      this.watchDensity();
    };
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", again, { once: true, signal });
  }

  // -- layout and painting ----------------------------------------------------------------------------------------

  build() {
    while (this.grid.children.length > this.panels.length) this.grid.lastChild.remove();
    while (this.grid.children.length < this.panels.length) {
      const plot = make("div", { class: "plot" }, make("canvas"), make("canvas"));
      const head = make("div", { class: "head" }, make("span", { class: "title" }), make("span", { class: "value" }));
      this.grid.append(make("figure", {}, make("figcaption", {}, head, make("div", { class: "caption" })), plot));
    }
    this.panels.forEach((panel, i) => {
      const figure = this.grid.children[i];
      figure.dataset.panel = panel.key;
      const [title, value, caption] = figure.querySelectorAll(".title, .value, .caption");
      title.textContent = title.title = panel.title;
      caption.textContent = caption.title = panel.caption;
      const [picture, marks] = figure.querySelectorAll("canvas");
      Object.assign(panel, { figure, value, picture, marks });
    });
  }

  /** Ask for work before the next frame: "layout" includes "paint", which includes "marks". */
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
    this.columns = clamp(Math.floor((room + GAP) / (LEAST_SIDE + GAP)), 1, Math.min(count, count > 8 ? 6 : 4));
    this.side = Math.floor(Math.min(this.settings.panel_size, (room - GAP * (this.columns - 1)) / this.columns));
    this.grid.style.gridTemplateColumns = `repeat(${this.columns}, ${this.side}px)`;
  }

  paint() {
    const started = performance.now();
    const { settings, theme, panels } = this;
    const { categories } = settings;
    const ownScale = settings.scale === "panel" && !categories;
    const extremes = (some) => ({
      largest: Math.max(...some.map((panel) => panel.largest)),
      least: Math.min(...some.map((panel) => panel.least || Infinity)),
      transform: settings.transform,
    });
    const shared = extremes(panels);
    const scales = new Map(
      panels.map((panel) => [panel, makeScale({ ...(ownScale ? extremes([panel]) : shared), signed: panel.signed })]),
    );
    const kept = this.tables ?? new Map();
    this.tables = new Map();
    this.look = {
      theme,
      palette: PALETTES[theme.mode],
      words: settings.words,
      categories,
      ownScale,
      scale: (panel) => scales.get(panel),
      table: (panel) => {
        const name = [categories ? JSON.stringify(categories) : scales.get(panel).name, panel.unit, theme.mode].join();
        const fresh = () =>
          categories
            ? categoryTable(categories, panel.unit, theme.mode)
            : colourTable(scales.get(panel), panel.unit, this.look.palette);
        const table = this.tables.get(name) ?? kept.get(name) ?? fresh();
        this.tables.set(name, table);
        return table;
      },
    };
    this.topScales = ownScale ? [] : [...new Map([...scales.values()].map((scale) => [scale.name, scale])).values()];
    let pooled = 1;
    for (const panel of panels) {
      const pen = penFor(panel.picture, this.side, panelHeight(this.side, ownScale), theme.font);
      panel.geometry = this.geometryOf(panel, this.views.of(panel));
      drawPanel(pen, panel, panel.geometry, this.views.of(panel), this.look);
      pooled = Math.max(pooled, panel.geometry.pooled);
    }
    this.paintLegend();
    this.grid.classList.toggle("zoomed", this.views.zoomed);
    this.buttons.querySelector("[data-act=reset]").disabled = !this.views.zoomed;
    this.note.textContent = pooled > 1 ? settings.words.pooled.replace("{count}", pooled) : "";
    this.root.dataset.paintMs = (performance.now() - started).toFixed(1);
    this.root.dataset.paints = ++this.paints;
  }

  geometryOf(panel, view) {
    const pen = new CanvasPen(panel.picture.getContext("2d"), devicePixelRatio, this.theme.font);
    return panelGeometry(pen, panel, this.side, view);
  }

  paintLegend() {
    const room = this.root.clientWidth;
    const width = room > 560 ? room - 250 : room; // beside the buttons, or above them
    const ruler = new CanvasPen(this.legend.getContext("2d"), devicePixelRatio, this.theme.font);
    const high = this.legendHeight(ruler, width - 2);
    this.drawLegend(penFor(this.legend, width, high, this.theme.font), 1, 0, width - 2);
    const name = (scale) =>
      `${legendName(scale, this.look)}: ${scale.signed ? tickNumeral(-scale.top) : 0} … ${tickNumeral(scale.top)}`;
    const names = this.look.categories
      ? [`${this.look.words.unit}: ${legendNames(this.look, this.maskedWord).join(", ")}`]
      : this.topScales.map(name);
    this.legend.setAttribute("aria-label", names.join("; ") || this.look.words.own_scale);
  }

  /** The word for masked cells where the common legend needs it. */
  get maskedWord() {
    return !this.look.ownScale && this.panels.some((panel) => panel.masked) ? this.look.words.masked : null;
  }

  legendHeight(pen, width) {
    return this.look.categories ? legendPlaces(pen, width, legendNames(this.look, this.maskedWord)).height : LEGEND_HEIGHT;
  }

  /** The legend of the shared scales, one bar per kind; panels on scales of their own carry theirs. */
  drawLegend(pen, x, y, width) {
    const { look } = this;
    const masked = this.maskedWord;
    if (look.categories) {
      drawCategories(pen, x, y, width, look, masked);
      return;
    }
    drawLegend(pen, x, y, width, this.topScales, look, { masked });
    if (look.ownScale) {
      const name = [look.words.unit, look.words.transforms[this.settings.transform], look.words.own_scale];
      pen.text(name.filter(Boolean).join(" · "), x, y + 6, { colour: look.theme.muted, weight: 600 });
    }
  }

  /** The crosshair, the pin and the numbers: cheap enough for every move of the pointer. */
  mark() {
    const { cell, settings, theme } = this;
    const active = cell && this.panels[cell.panel];
    for (const panel of this.panels) {
      const pen = penFor(panel.marks, this.side, panelHeight(this.side, this.look.ownScale), theme.font);
      const linked = active && panel.shape === active.shape;
      const marks = { pinned: this.pins(panel) ? this.pinned : null, cell: linked ? cell : null };
      drawMarks(pen, panel, panel.geometry, this.views.of(panel), marks, theme);
      panel.value.textContent = linked ? cellText(panel, cell.row, cell.col, settings) : "";
    }
    this.root.dataset.pinned = this.pinned ?? "";
    this.root.dataset.cell = cell ? `${cell.row},${cell.col}` : "";
    this.readout.tell();
  }

  // -- state ------------------------------------------------------------------------------------------------------

  /** Whether a pinned query is a row of this panel too. */
  pins(panel) {
    return panel.sharesRows && this.pinned !== null && this.pinned < panel.rows;
  }

  aim(cell) {
    const now = this.cell;
    if (now?.panel === cell?.panel && now?.row === cell?.row && now?.col === cell?.col) return;
    this.cell = cell;
    this.shape = cell && this.panels[cell.panel].shape;
    this.schedule("marks");
  }

  /** Pin a row, or free it when it is pinned already. Told to Python after a while, if something changed by then. */
  pin(panel, row, wait = 0) {
    if (!panel.sharesRows || !this.settings.pins) return;
    this.setPin(this.pinned === row ? null : row, wait);
  }

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
    this.ears.abort();
    this.watch.disconnect();
    cancelAnimationFrame(this.frame);
    this.readout.destroy();
    clearTimeout(this.reporting);
    this.root.remove();
  }
}
