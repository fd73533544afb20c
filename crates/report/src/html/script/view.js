// Which part of an axis is shown. Charts over the same time share one view and zoom
// together. Places are shares of the whole axis, from 0 to 1.
class View {
  constructor(ends, scale, unit) {
    [this.start, this.end] = ends.split(" ").map(Number);
    Object.assign(this, { scale, unit, low: 0, high: 1, charts: [] });
  }
  get width() { return this.high - this.low; }
  get isWhole() { return this.width > .999999; }

  set(low, high) {
    const width = clamp(high - low, 1 / 4096, 1);
    this.low = clamp(low, 0, 1 - width);
    this.high = this.low + width;
    for (const chart of this.charts) chart.show();
  }
  zoom(factor, centre = (this.low + this.high) / 2) {
    this.set(centre - (centre - this.low) * factor, centre + (this.high - centre) * factor);
  }
  pan(share) {
    const by = share * this.width;
    this.set(this.low + by, this.high + by);
  }

  value(place) {
    return this.scale === "log" ? this.start * (this.end / this.start) ** place
      : this.start + place * (this.end - this.start);
  }
  place(value) {
    return this.scale === "log" ? Math.log(value / this.start) / Math.log(this.end / this.start)
      : (value - this.start) / (this.end - this.start);
  }

  // Places on the screen, from 0 to 1, with what is written there.
  ticks(most) {
    const [from, to] = [this.value(this.low), this.value(this.high)];
    const base = isBinary(this.unit) ? 2 : 10;
    const powers = this.scale === "log" ? Math.log(to / from) / Math.log(base) : 0;
    const ticks = [];
    const add = (value, label) => ticks.push([(this.place(value) - this.low) / this.width, label]);
    if (powers >= 3) {
      const stride = Math.ceil(powers / most);
      const first = Math.ceil(Math.log(from) / Math.log(base) - 1e-9);
      for (let power = first; base ** power <= to * (1 + 1e-9); power += stride) {
        add(base ** power, valueText(base ** power, this.unit));
      }
      return ticks;
    }
    const step = stepFor((to - from) / most, this.unit);
    const first = Math.ceil(from / step - 1e-9);
    for (let n = first; n * step <= to + step * 1e-9; n++) {
      add(n * step, tickText(n * step, step, to, this.unit));
    }
    return ticks;
  }
}

// Stands for an axis without zoom.
const WHOLE = new View("0 1", "linear", "ratio");
