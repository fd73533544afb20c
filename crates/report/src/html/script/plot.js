// One drawing with its axes: what the pointer and the keys do there.
class Plot {
  // Views are those of the axes to the right and upwards; either may be missing.
  constructor(figure, area, across, upwards) {
    Object.assign(this, { figure, area, across, upwards, index: -1 });
    this.svg = area.querySelector("svg");
    const frame = area.parentElement;
    this.axes = [[across, frame.querySelector(".x"), "left", 8],
      [upwards, frame.querySelector(".y"), "bottom", 4]]
      .filter(([view, axis]) => view && axis.innerHTML)
      .map(([view, axis, edge, most]) => ({ view, axis, edge, most, printed: axis.innerHTML }));
    this.readings = area.querySelector("g[data-points]")
      ? new CurveReadings(figure, area, across) : new TableReadings(figure, area);
    this.cross = make("div", area, { className: "cross", hidden: true });
    this.tip = make("div", area, { className: "tip", hidden: true });
    this.select = make("div", area, { className: "select", hidden: true });
    area.setAttribute("aria-describedby", "help");
    this.listen();
  }
  get views() { return [this.across, this.upwards].filter(Boolean); }

  // From a place on the screen to one on the axis and back.
  static inside(view, screen) { return view ? view.low + screen * view.width : screen; }
  static outside(view, place) { return view ? (place - view.low) / view.width : place; }

  show() {
    const { across: x = WHOLE, upwards: y = WHOLE } = this;
    const box = [x.low, 1 - y.high, x.width, y.width].map((part) => +(part * 1000).toFixed(4));
    this.svg.setAttribute("viewBox", box.join(" "));
    this.hide();
    for (const { view, axis, edge, most, printed } of this.axes) {
      if (view.isWhole) { axis.innerHTML = printed; continue; }
      axis.textContent = "";
      view.ticks(most).forEach(([place, label], i) => {
        const tick = make("span", axis, { textContent: label });
        tick.style[edge] = `${place * 100}%`;
        if (edge === "left") tick.className = `${i % 2 ? "odd" : ""} ${place > .98 ? "end" : ""}`;
      });
    }
    for (const mark of this.area.querySelectorAll(".mark-name")) {
      const place = Plot.outside(this.across, Number(mark.dataset.place));
      mark.hidden = place < -1e-6 || place > 1 + 1e-6;
      mark.style.left = `${place * 100}%`;
      mark.classList.toggle("left", place > .5);
    }
  }

  hide() {
    this.cross.hidden = this.tip.hidden = true;
    this.index = -1;
  }

  // Shows the reading that is nearest to a place from 0 to 1 on the screen.
  near(screen) {
    const { places } = this.readings;
    const place = Plot.inside(this.across, screen);
    let best = 0;
    for (let i = 1; i < places.length; i++) {
      if (Math.abs(places[i] - place) < Math.abs(places[best] - place)) best = i;
    }
    if (places.length) this.read(best);
  }
  read(index) {
    this.index = clamp(index, 0, this.readings.places.length - 1);
    const pairs = this.readings.pairs(this.index);
    if (pairs.length) this.point(Plot.outside(this.across, this.readings.places[this.index]), pairs);
  }

  // Puts cross-hair and read-out at a place from 0 to 1 on the screen.
  point(screen, pairs) {
    this.tip.textContent = "";
    for (const [name, value, colour] of pairs) {
      const line = make("div", this.tip, {});
      const label = make("span", line, {});
      if (colour) make("i", label, { className: colour });
      label.append(name);
      make("span", line, { textContent: value });
    }
    this.cross.hidden = this.tip.hidden = false;
    const space = this.area.clientWidth;
    const x = clamp(screen, 0, 1) * space;
    this.cross.style.left = `${x}px`;
    const left = x + 14 + this.tip.offsetWidth > space ? x - 14 - this.tip.offsetWidth : x + 14;
    this.tip.style.left = `${clamp(left, -40, Math.max(0, space - this.tip.offsetWidth))}px`;
  }

  // A cell of a heat map: its class of amount, its addresses and its time.
  cell(screenX, screenY) {
    const { columns, cells, classes } = this.area.dataset;
    const [width, height] = [Number(this.area.dataset.column), Number(this.area.dataset.row)];
    const across = Plot.inside(this.across, clamp(screenX, 0, 1));
    const up = Plot.inside(this.upwards, 1 - clamp(screenY, 0, 1));
    const column = clamp(Math.floor(across / width), 0, columns - 1);
    const row = clamp(Math.floor(up / height), 0, cells.length / columns - 1);
    const level = Number(cells[row * columns + column]);
    const { start, end } = this.across;
    const step = stepFor((end - start) * width, "ns");
    const time = Math.round(this.across.value(column * width) / step) * step;
    this.point(screenX, [["time", tickText(time, step, end, "ns")],
      ["address", this.figure.dataset.addresses.split("|")[row]],
      ["amount", level ? classes.split("|")[level - 1] : "none"]]);
  }

  listen() {
    const { area } = this;
    const at = (event) => {
      const box = area.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    let from = null;
    const moved = (event) => {
      const [x, y] = at(event);
      if (area.dataset.cells) this.cell(x, y); else this.near(x);
      if (from) this.frame(from, [x, y]);
    };
    area.addEventListener("pointermove", moved);
    area.addEventListener("pointerleave", () => { if (!from) this.hide(); });
    area.addEventListener("blur", () => this.hide());
    area.addEventListener("pointerdown", (event) => {
      moved(event);
      if (!this.views.length || event.pointerType === "touch" || event.button !== 0) return;
      from = at(event);
      area.setPointerCapture(event.pointerId);
    });
    const drop = (event) => {
      if (!from) return;
      const spans = this.frame(from, at(event));
      from = null;
      this.select.hidden = true;
      if (event.type !== "pointerup") return;
      this.views.forEach((view, i) => {
        if (!spans[i]) return;
        const { low, width } = view;
        view.set(low + spans[i][0] * width, low + spans[i][1] * width);
      });
    };
    area.addEventListener("pointerup", drop);
    area.addEventListener("pointercancel", drop);
    area.addEventListener("dblclick", () => this.views.forEach((view) => view.set(0, 1)));
    area.addEventListener("keydown", (event) => this.key(event));
  }

  // Shows what a drag has selected; returns the spans, to the right and upwards. A drag
  // that hardly moves in one direction means all of it.
  frame([fromX, fromY], [toX, toY]) {
    const span = (from, to, least) => {
      const ends = [clamp(from, 0, 1), clamp(to, 0, 1)].sort((a, b) => a - b);
      return ends[1] - ends[0] < least ? null : ends;
    };
    const across = span(fromX, toX, .01);
    const upwards = this.upwards ? span(1 - fromY, 1 - toY, .15) : null;
    const [[left, right], [bottom, top]] = [across || [0, 1], upwards || [0, 1]];
    this.select.hidden = !across && !upwards;
    Object.assign(this.select.style, { left: `${left * 100}%`, width: `${(right - left) * 100}%`,
      bottom: `${bottom * 100}%`, height: `${(top - bottom) * 100}%` });
    return [across, upwards];
  }

  // Walks along the readings, or along the axis where there are none.
  step(by) {
    const { across } = this;
    const { places } = this.readings;
    if (!places.length) { if (across) across.pan(by / 4); return; }
    const visible = places.findIndex((place) => Plot.outside(across, place) >= -1e-6);
    const next = this.index < 0 ? Math.max(0, visible)
      : clamp(this.index + by, 0, places.length - 1);
    const screen = Plot.outside(across, places[next]);
    if (across && (screen < -1e-6 || screen > 1 + 1e-6)) across.pan(by / 2);
    this.read(next);
    say([...this.tip.children].map((line) => [...line.children]
      .map((part) => part.textContent).join(" ")).join(", "));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { across, upwards } = this;
    const along = (by) => event.shiftKey && across ? across.pan(by / 4) : this.step(by);
    const actions = { ArrowLeft: () => along(-1), ArrowRight: () => along(1),
      Escape: () => this.hide() };
    if (across) {
      Object.assign(actions, { "+": () => across.zoom(.5), "=": () => across.zoom(.5),
        "-": () => across.zoom(2), "0": () => this.views.forEach((view) => view.set(0, 1)),
        Home: () => across.set(0, across.width), End: () => across.set(1 - across.width, 1) });
    }
    if (upwards) {
      Object.assign(actions, { ArrowUp: () => upwards.pan(.25), ArrowDown: () => upwards.pan(-.25),
        "*": () => upwards.zoom(.5), "/": () => upwards.zoom(2) });
    }
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
