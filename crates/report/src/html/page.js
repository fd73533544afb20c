// Adds to a page that is whole without it: read-outs, zoom in time, series switched off.
// Values shown are those of the tables, written by the same hand as the rest of the page.
(() => {
  "use strict";
  const make = (name, parent, set) => parent.appendChild(
    Object.assign(document.createElement(name), set));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // Times are written here too, because zooming makes new ticks.
  const UNITS = [[864e11, "d"], [36e11, "h"], [6e10, "min"], [1e9, "s"], [1e6, "ms"],
    [1e3, "us"], [1, "ns"]];
  const CLOCK = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800].map((seconds) => seconds * 1e9);
  const stepFor = (wanted) => {
    if (wanted > 5e9 && wanted <= 1728e11) return CLOCK.find((step) => step >= wanted);
    const base = wanted > 1728e11 ? 864e11 : 1;
    const decade = 10 ** Math.floor(Math.log10(wanted / base));
    const digit = [1, 2, 5, 10].find((d) => d * decade >= wanted / base * (1 - 1e-9));
    return Math.max(1, digit * decade * base);
  };
  const timeText = (value, step) => {
    const fits = ([scale]) => {
      const tenths = step / scale * 10;
      return Math.abs(tenths - Math.round(tenths)) < 1e-6 && Math.round(tenths) >= 1;
    };
    const [scale, name] = UNITS.find(fits) || UNITS[UNITS.length - 1];
    return `${+(value / scale).toFixed(6)} ${name}`;
  };

  // Charts over the same time range zoom together.
  const groups = new Map();

  class View {
    constructor(key) {
      [this.start, this.end] = key.split(" ").map(Number);
      [this.low, this.high] = [0, 1];
      this.charts = [];
    }
    set(low, high) {
      const width = clamp(high - low, 1 / 4096, 1);
      this.low = clamp(low, 0, 1 - width);
      this.high = this.low + width;
      for (const chart of this.charts) chart.show(this);
    }
    zoom(factor, centre = (this.low + this.high) / 2) {
      this.set(centre - (centre - this.low) * factor, centre + (this.high - centre) * factor);
    }
    pan(share) {
      const by = share * (this.high - this.low);
      this.set(this.low + by, this.high + by);
    }
    time(place) { return this.start + place * (this.end - this.start); }
  }

  class Plot {
    constructor(figure, area, view) {
      Object.assign(this, { figure, area, view });
      this.svg = area.querySelector("svg");
      this.axis = area.parentElement.querySelector(".x");
      this.printed = this.axis.innerHTML;
      this.table = figure.querySelector("details table");
      this.xs = (area.dataset.xs || "").split(" ").filter(Boolean).map(Number);
      this.cross = make("div", area, { className: "cross", hidden: true });
      this.tip = make("div", area, { className: "tip", hidden: true });
      this.index = -1;
      this.listen();
    }
    get low() { return this.view ? this.view.low : 0; }
    get width() { return this.view ? this.view.high - this.view.low : 1; }

    show(view) {
      const [low, width] = [view.low * 1000, (view.high - view.low) * 1000];
      this.svg.setAttribute("viewBox", `${low} 0 ${width} 1000`);
      this.hide();
      if (!this.printed) return;
      if (width >= 999.999) { this.axis.innerHTML = this.printed; return; }
      this.axis.textContent = "";
      const [from, to] = [view.time(view.low), view.time(view.high)];
      const step = stepFor((to - from) / 7);
      let odd = false;
      for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
        const tick = make("span", this.axis, { textContent: timeText(t, step) });
        tick.style.left = `${(t - from) / (to - from) * 100}%`;
        tick.className = `${odd ? "odd" : ""} ${t > from + (to - from) * .98 ? "end" : ""}`;
        odd = !odd;
      }
    }

    hide() {
      this.cross.hidden = this.tip.hidden = true;
      this.index = -1;
    }

    // Shows the point of the data that is nearest to a place from 0 to 1 on the screen.
    near(screen) {
      const place = (this.low + screen * this.width) * 1000;
      let best = 0;
      for (let i = 1; i < this.xs.length; i++) {
        if (Math.abs(this.xs[i] - place) < Math.abs(this.xs[best] - place)) best = i;
      }
      if (this.xs.length) this.read(best);
    }

    read(index) {
      this.index = clamp(index, 0, this.xs.length - 1);
      const row = this.table.tBodies[0].rows[this.index];
      if (!row) return;
      const heads = this.table.tHead.rows[0].cells;
      const lines = [[heads[0].textContent, row.cells[0].textContent]];
      for (let i = 1; i < heads.length; i++) {
        if (!heads[i].dataset.off) lines.push([heads[i].textContent, row.cells[i].textContent]);
      }
      const screen = (this.xs[this.index] / 1000 - this.low) / this.width;
      this.point(screen, lines);
    }

    // Puts cross-hair and read-out at a place from 0 to 1 on the screen.
    point(screen, lines) {
      this.tip.textContent = "";
      for (const [name, value] of lines) {
        const line = make("div", this.tip, {});
        make("span", line, { textContent: name });
        make("span", line, { textContent: value });
      }
      this.cross.hidden = this.tip.hidden = false;
      const room = this.area.clientWidth;
      const x = clamp(screen, 0, 1) * room;
      this.cross.style.left = `${x}px`;
      const left = x + 14 + this.tip.offsetWidth > room ? x - 14 - this.tip.offsetWidth : x + 14;
      this.tip.style.left = `${clamp(left, -40, Math.max(0, room - this.tip.offsetWidth))}px`;
    }

    // A cell of a heat map: its class of amount, its addresses and its time.
    cell(screenX, screenY) {
      const { columns, cells } = this.area.dataset;
      const [width, height] = [Number(this.area.dataset.column), Number(this.area.dataset.row)];
      const place = this.low + clamp(screenX, 0, 1) * this.width;
      const column = clamp(Math.floor(place / width), 0, columns - 1);
      const row = clamp(Math.floor((1 - screenY) / height), 0, cells.length / columns - 1);
      const level = Number(cells[row * columns + column]);
      const [{ classes }, { addresses }] = [this.area.dataset, this.figure.dataset];
      const step = stepFor((this.view.end - this.view.start) * width);
      const time = Math.round(this.view.time(column * width) / step) * step;
      this.point(screenX, [["time", timeText(time, step)],
        ["address", addresses.split("|")[row]],
        ["amount", level ? classes.split("|")[level - 1] : "none"]]);
    }

    listen() {
      const { area } = this;
      const place = (event) => {
        const box = area.getBoundingClientRect();
        return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
      };
      let from = null;
      const select = make("div", area, { className: "select", hidden: true });
      const at = (event) => {
        const [x, y] = place(event);
        if (area.dataset.cells) this.cell(x, y); else this.near(x);
        if (from === null) return;
        const [left, right] = [Math.min(from, clamp(x, 0, 1)), Math.max(from, clamp(x, 0, 1))];
        select.hidden = right - left < .01;
        Object.assign(select.style, { left: `${left * 100}%`, width: `${(right - left) * 100}%` });
      };
      area.addEventListener("pointermove", at);
      area.addEventListener("pointerleave", () => { if (from === null) this.hide(); });
      area.addEventListener("blur", () => this.hide());
      area.addEventListener("pointerdown", (event) => {
        at(event);
        if (!this.view || event.pointerType === "touch" || event.button !== 0) return;
        from = clamp(place(event)[0], 0, 1);
        area.setPointerCapture(event.pointerId);
      });
      const drop = (event) => {
        if (from === null) return;
        const [start, to] = [from, clamp(place(event)[0], 0, 1)];
        from = null;
        select.hidden = true;
        if (event.type === "pointerup" && Math.abs(to - start) >= .01) {
          const [low, width] = [this.low, this.width];
          this.view.set(low + Math.min(start, to) * width, low + Math.max(start, to) * width);
        }
      };
      area.addEventListener("pointerup", drop);
      area.addEventListener("pointercancel", drop);
      area.addEventListener("dblclick", () => this.view && this.view.set(0, 1));
      area.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { view } = this;
      const visible = () => this.xs.findIndex((x) => x >= this.low * 1000 - 1e-6);
      const step = (by) => {
        if (event.shiftKey && view) { view.pan(by / 4); return; }
        if (!this.xs.length) { if (view) view.pan(by / 4); return; }
        const next = this.index < 0 ? visible() : clamp(this.index + by, 0, this.xs.length - 1);
        const screen = (this.xs[next] / 1000 - this.low) / this.width;
        if (view && (screen < 0 || screen > 1)) view.pan(by / 2);
        this.read(next);
        say([...this.tip.children].map((line) => [...line.children]
          .map((part) => part.textContent).join(" ")).join(", "));
      };
      const actions = {
        ArrowLeft: () => step(-1), ArrowRight: () => step(1),
        Home: () => view && view.set(0, this.width), End: () => view && view.set(1 - this.width, 1),
        "+": () => view && view.zoom(.5), "=": () => view && view.zoom(.5),
        "-": () => view && view.zoom(2), "0": () => view && view.set(0, 1),
        Escape: () => this.hide(),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    }
  }

  const heard = make("div", document.body, { className: "heard" });
  heard.setAttribute("role", "status");
  const say = (text) => { heard.textContent = text; };

  const tools = (figure, view) => {
    const bar = make("div", figure, { className: "tools" });
    figure.querySelector("details").before(bar);
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Zoom in time");
    const add = (text, label, act) => {
      const button = make("button", bar, { type: "button", textContent: text, title: label });
      button.setAttribute("aria-label", label);
      button.addEventListener("click", act);
      return button;
    };
    const back = add("\u2190", "Earlier", () => view.pan(-.5));
    const on = add("\u2192", "Later", () => view.pan(.5));
    const out = add("\u2212", "Zoom out", () => view.zoom(2));
    add("+", "Zoom in (or drag over the chart)", () => view.zoom(.5));
    const all = add("All", "Show the whole time", () => view.set(0, 1));
    view.charts.push({ show() {
      const whole = view.high - view.low > .999999;
      out.disabled = all.disabled = whole;
      back.disabled = view.low < 1e-6;
      on.disabled = view.high > 1 - 1e-6;
    } });
  };

  const switches = (figure) => {
    const entries = figure.querySelectorAll(".legend li[data-series]");
    if (entries.length < 2 || figure.dataset.kind === "stacked") return;
    const table = figure.querySelector("details table");
    // A series with a band has three columns; they stand in the order of the legend.
    const heads = table ? [...table.tHead.rows[0].cells].slice(1) : [];
    let column = 0;
    for (const entry of entries) {
      const columns = heads.slice(column, column + (entry.querySelector("small") ? 3 : 1));
      column += columns.length;
      const button = make("button", entry, { type: "button" });
      button.append(...[...entry.childNodes].filter((node) => node !== button));
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        const marks = `:not(li)[data-series="${entry.dataset.series}"]`;
        for (const mark of figure.querySelectorAll(marks)) {
          mark.style.display = on ? "" : "none";
        }
        for (const head of columns) { if (on) delete head.dataset.off; else head.dataset.off = 1; }
      });
    }
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    let view = null;
    const key = figure.dataset.zoom;
    if (key) {
      if (!groups.has(key)) groups.set(key, new View(key));
      view = groups.get(key);
    }
    for (const area of figure.querySelectorAll(".area")) {
      const plot = new Plot(figure, area, view);
      if (view) view.charts.push(plot);
    }
    if (view) tools(figure, view);
    switches(figure);
  }
  for (const view of groups.values()) view.set(0, 1);
  document.documentElement.dataset.ready = "yes";
})();
