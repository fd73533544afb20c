// Puts the parts together: views for the charts, their buttons, switches in the legends,
// the choice of light or dark, and where in the report the reader is.
const button = (parent, text, label, act) => {
  const made = make("button", parent, { type: "button", textContent: text, title: label });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
};

// Buttons that move along one axis and zoom in it.
const movers = (bar, view, name, [back, on], [less, more]) => {
  const group = make("span", bar, { textContent: name });
  const what = name && ` on ${name}`;
  const buttons = [
    button(group, back, less, () => view.pan(-.5)),
    button(group, on, more, () => view.pan(.5)),
    button(group, "\u2212", `Zoom out${what}`, () => view.zoom(2)),
  ];
  button(group, "+", `Zoom in${what} (or drag over the chart)`, () => view.zoom(.5));
  view.charts.push({ show() {
    buttons[0].disabled = view.low < 1e-6;
    buttons[1].disabled = view.high > 1 - 1e-6;
    buttons[2].disabled = view.isWhole;
  } });
};

const tools = (figure, across, upwards) => {
  const bar = make("div", figure, { className: "tools" });
  figure.querySelector("details.numbers").before(bar);
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Zoom");
  const isTime = figure.dataset.kind !== "curves";
  movers(bar, across, upwards ? "time" : "", ["\u2190", "\u2192"],
    isTime ? ["Earlier", "Later"] : ["To the left", "To the right"]);
  if (upwards) {
    movers(bar, upwards, "addresses", ["\u2193", "\u2191"],
      ["Lower addresses", "Higher addresses"]);
  }
  const views = [across, upwards].filter(Boolean);
  const all = button(bar, "All", "Show all of it", () => views.forEach((view) => view.set(0, 1)));
  const state = { show() { all.disabled = views.every((view) => view.isWhole); } };
  for (const view of views) view.charts.push(state);
};

// Entries of a legend switch their series off, and lend their colour to the read-outs.
const switches = (figure) => {
  const { kind } = figure.dataset;
  const entries = figure.querySelectorAll(".legend li[data-series]");
  if (!entries.length || kind === "stacked") return;
  const table = figure.querySelector("details.numbers table");
  // A series with a band has three columns, in the order of the legend. Curves are not read
  // from their table.
  const heads = kind === "curves" ? [] : [...table.tHead.rows[0].cells].slice(1);
  for (const entry of entries) {
    const columns = heads.splice(0, entry.querySelector("small") ? 3 : 1);
    for (const head of columns) head.dataset.colour = entry.querySelector("i").className;
    if (entries.length < 2) return;
    const toggle = make("button", entry, { type: "button", title: "Show or hide" });
    toggle.append(...[...entry.childNodes].filter((node) => node !== toggle));
    toggle.setAttribute("aria-pressed", "true");
    toggle.addEventListener("click", () => {
      const on = toggle.getAttribute("aria-pressed") !== "true";
      toggle.setAttribute("aria-pressed", String(on));
      const marks = `:not(li)[data-series="${entry.dataset.series}"]`;
      for (const mark of figure.querySelectorAll(marks)) mark.style.display = on ? "" : "none";
      for (const head of columns) { if (on) delete head.dataset.off; else head.dataset.off = 1; }
    });
  }
};

// The choice holds as long as the page is open: nothing is stored on the reader's machine.
const theme = () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const toggle = make("button", document.querySelector("header"), { className: "theme",
    type: "button" });
  make("i", toggle, {});
  const text = make("span", toggle, {});
  const name = () => { text.textContent = isDark() ? "Light theme" : "Dark theme"; };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
};

const help = () => {
  const box = make("details", document.querySelector("header"), { className: "help" });
  make("summary", box, { textContent: "How to use the charts" });
  make("p", box, { id: "help", textContent: "Drag over a chart to zoom in, double-click to see "
    + "all of it again. With the keyboard, the left and right arrows read values; plus and minus "
    + "zoom, Shift with an arrow moves, Home and End go to the ends, 0 shows all. In maps of "
    + "addresses, the up and down arrows move, and * and / zoom in addresses. Names in a legend "
    + "switch their series off and on. Charts over the same time zoom together." });
};

// Marks the section that is being read in the table of contents.
const place = () => {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) =>
    [document.getElementById(link.hash.slice(1)).parentElement, link]));
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target); else seen.delete(target);
    }
    const first = [...links.keys()].find((section) => seen.has(section));
    for (const [section, link] of links) {
      if (section === first) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-10% 0px -60% 0px" });
  for (const section of links.keys()) watch.observe(section);
};

theme();
if (document.querySelector(".area")) help();
place();
const times = new Map();
const views = new Set();
for (const figure of document.querySelectorAll("figure.chart")) {
  const { kind, zoom, zoomAddress, scale, xUnit } = figure.dataset;
  if (zoom && kind !== "curves" && !times.has(zoom)) times.set(zoom, new View(zoom, "linear", "ns"));
  const across = kind === "curves" ? new View(zoom, scale, xUnit) : times.get(zoom);
  const upwards = zoomAddress ? new View(zoomAddress, "linear", "bytes") : undefined;
  for (const area of figure.querySelectorAll(".area")) {
    const plot = new Plot(figure, area, across, upwards);
    for (const view of plot.views) view.charts.push(plot);
  }
  if (across) tools(figure, across, upwards);
  for (const view of [across, upwards].filter(Boolean)) views.add(view);
  switches(figure);
}
for (const view of views) view.set(0, 1);
// A print shows the evidence of verdicts, because it cannot be unfolded there.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll(".verdicts details")) details.open = true;
});
document.documentElement.dataset.ready = "yes";
