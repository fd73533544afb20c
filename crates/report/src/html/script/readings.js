// What a plot can be read at: places from 0 to 1 in ascending order, and for each of them
// a name and a value each, with the class of their colour where they have one.

// Lines and bars are read from the table under them, which was written together with the page.
class TableReadings {
  constructor(figure, area) {
    this.table = figure.querySelector("details.numbers table");
    this.places = (area.dataset.xs || "").split(" ").filter(Boolean).map((x) => x / 1000);
  }
  pairs(index) {
    const row = this.table.tBodies[0].rows[index];
    if (!row) return [];
    const heads = [...this.table.tHead.rows[0].cells];
    return heads.flatMap((head, i) => head.dataset.off ? []
      : [[head.textContent, row.cells[i].textContent, head.dataset.colour]]);
  }
}

// Curves have points of their own each, and are read wherever one of them has a point.
class CurveReadings {
  constructor(figure, area, view) {
    Object.assign(this, { view, data: figure.dataset, names: [], curves: [] });
    const legend = figure.querySelectorAll(".legend li");
    this.curves = [...area.querySelectorAll("g[data-points]")].map((group) => ({
      group,
      order: Number(group.dataset.series),
      shape: group.dataset.shape,
      name: legend[group.dataset.series].textContent,
      points: group.dataset.points.split(" ").filter(Boolean)
        .map((pair) => pair.split(",").map(Number)),
    })).sort((a, b) => a.order - b.order);
    const xs = this.curves.flatMap((curve) => curve.points.map(([x]) => x));
    this.xs = [...new Set(xs)].sort((a, b) => a - b);
    this.places = this.xs.map((x) => view.place(x));
  }
  pairs(index) {
    const x = this.xs[index];
    const pairs = [[this.data.x, valueText(x, this.data.xUnit)]];
    for (const curve of this.curves) {
      const y = curve.group.style.display === "none" ? null : this.value(curve, x);
      if (y !== null) {
        pairs.push([curve.name, valueText(y, this.data.yUnit), curve.group.getAttribute("class")]);
      }
    }
    return pairs;
  }
  // What is drawn above x; null where nothing is.
  value({ points, shape }, x) {
    const at = points.findLastIndex((point) => point[0] <= x);
    if (at < 0) return null;
    const [[leftX, leftY], right] = [points[at], points[at + 1]];
    if (leftX === x) return leftY;
    if (!right || shape === "dots") return null;
    if (shape === "steps") return leftY;
    const [from, to] = [this.view.place(leftX), this.view.place(right[0])];
    const part = (this.view.place(x) - from) / (to - from);
    return this.data.yScale === "log" ? leftY * (right[1] / leftY) ** part
      : leftY + (right[1] - leftY) * part;
  }
}
