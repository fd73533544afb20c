// Drives the report as a reader would; says that all is well or what is wrong.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const expect = (truth, what) => { if (!truth) throw new Error(what); };
  const charts = (kind) => [...document.querySelectorAll(`figure.${kind}`)];
  const view = (area) => area.querySelector("svg").getAttribute("viewBox");
  const point = (area, type, x, y = .5) => {
    const box = area.getBoundingClientRect();
    area.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1,
      pointerType: "mouse", clientX: box.left + x * box.width,
      clientY: box.top + y * box.height }));
  };
  const press = (area, key, shiftKey = false) => area.dispatchEvent(
    new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }));
  // A made-up pointer cannot be captured.
  Element.prototype.setPointerCapture = () => {};

  const space = document.documentElement.clientWidth;
  const fits = (when) => {
    const wide = document.documentElement.scrollWidth;
    expect(wide <= space, `${when}, the page scrolls sideways: ${wide} in ${space}`);
  };
  const named = (title) => [...document.querySelectorAll("figure")]
    .find((figure) => figure.querySelector("figcaption b").textContent === title);
  const shown = (area) => [...area.querySelector(".tip").children]
    .map((line) => [...line.children].map((part) => part.textContent).join(" "));

  // Walks along the points of curves with keys: each is read as the table writes it.
  const likeTheTable = (figure) => {
    const area = figure.querySelector(".area");
    const heads = [...figure.querySelectorAll("thead th")].map((head) => head.textContent);
    for (const row of figure.querySelectorAll("tbody tr")) {
      press(area, "ArrowRight");
      const cells = [...row.cells].map((cell, i) => `${heads[i]} ${cell.textContent}`);
      expect(shown(area).join() === cells.join(), `read ${shown(area)}, the table has ${cells}`);
    }
    press(area, "Escape");
  };

  // Ticks that the script writes are those of the page: nearly all of an axis is shown, and
  // what it says may differ by what is cut off at its end.
  const likeTheAxis = (figure) => {
    const area = figure.querySelector(".area");
    const axis = area.parentElement.querySelector(".x");
    const ticks = () => [...axis.children].filter((tick) => parseFloat(tick.style.left) < 99)
      .map((tick) => tick.textContent).join();
    const printed = ticks();
    point(area, "pointerdown", 0);
    point(area, "pointerup", .9999);
    expect(view(area) !== "0 0 1000 1000", "a little is cut off");
    expect(ticks() === printed, `ticks ${ticks()}, printed ${printed}`);
    press(area, "0");
  };

  // A page of curves in every unit.
  const units = () => {
    for (const figure of charts("curves")) {
      likeTheTable(figure);
      likeTheAxis(figure);
    }
  };

  // Curves zoom by keyboard, and are read as their table says.
  const curves = () => {
    const figure = named("Misses by the size of the map cache");
    const area = figure.querySelector(".area");
    const [printed, whole] = [area.parentElement.querySelector(".x").textContent, view(area)];
    const time = view(document.querySelector("figure.lines .area"));
    likeTheTable(figure);
    press(area, "+");
    expect(view(area) === "250 0 500 1000", `curves zoom in by two: ${view(area)}`);
    const ticks = [...area.parentElement.querySelectorAll(".x span")].map((t) => t.textContent);
    expect(ticks.includes("1 MiB") && !ticks.includes("4 KiB"), `ticks follow: ${ticks}`);
    const [right, left] = [...area.querySelectorAll(".mark-name")];
    expect(!right.hidden && left.hidden, "a mark outside of the view goes");
    expect(view(document.querySelector("figure.lines .area")) === time, "time stays as it is");
    press(area, "End");
    expect(view(area) === "500 0 500 1000", `the end of the axis: ${view(area)}`);
    press(area, "Home");
    expect(view(area) === "0 0 500 1000", `the start of the axis: ${view(area)}`);
    press(area, "-");
    expect(view(area) === whole, "zoomed out");
    expect(area.parentElement.querySelector(".x").textContent === printed, "as it was printed");

    const steps = named("Zombie curve");
    const plot = steps.querySelector(".area");
    point(plot, "pointermove", .99);
    expect(shown(plot).length === 2, `one curve goes that far: ${shown(plot)}`);
    point(plot, "pointermove", .3);
    expect(shown(plot).length === 3, `two curves are there: ${shown(plot)}`);
    steps.querySelectorAll(".legend button")[0].click();
    point(plot, "pointermove", .3);
    expect(shown(plot).length === 2, "a curve that is off is not read");
    steps.querySelectorAll(".legend button")[0].click();
    point(plot, "pointerdown", .5);
    point(plot, "pointerup", .75);
    expect(/^50\d?(\.\d+)? 0 2[45]\d(\.\d+)? 1000$/.test(view(plot)), `dragged: ${view(plot)}`);
    steps.querySelector(".tools > button").click();
    expect(view(plot) === "0 0 1000 1000", "the last button shows all");
  };

  // A map of addresses zooms upwards on its own and in time with the others.
  const addresses = () => {
    const figure = document.querySelector("figure.heatmap");
    const [first, second] = figure.querySelectorAll(".area");
    const labels = () => [...first.parentElement.querySelectorAll(".y span")]
      .map((label) => label.textContent).join();
    const printed = labels();
    press(first, "*");
    expect(view(first) === "0 250 1000 500", `zoomed in addresses: ${view(first)}`);
    expect(view(second) === view(first), "all panels show the same addresses");
    expect(labels() === "16 GiB,24 GiB,32 GiB,40 GiB,48 GiB", `labels follow: ${labels()}`);
    press(first, "ArrowDown");
    expect(view(first) === "0 375 1000 500", `moved down: ${view(first)}`);
    point(first, "pointermove", .5, .99);
    expect(/address 8/.test(shown(first).join()), `the lowest row shown: ${shown(first)}`);
    press(first, "0");
    expect(view(first) === "0 0 1000 1000" && labels() === printed, "all addresses again");
    point(first, "pointerdown", .2, .5);
    point(first, "pointerup", .4, 1);
    const [, top, , height] = view(first).split(" ").map(Number);
    expect(Math.abs(top - 500) < 9 && Math.abs(height - 500) < 9, `a box: ${view(first)}`);
    expect(view(document.querySelector("figure.lines .area")).startsWith("200 "), "in time too");
    figure.querySelector(".tools > button").click();
    expect(view(first) === "0 0 1000 1000", "the last button shows all of both");
  };

  // Each text colour can be read on each ground, in both themes: a contrast of 4.5 at least.
  const contrast = (a, b) => {
    const light = (colour) => {
      const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255);
      const [r, g, b] = parts.map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
      return .2126 * r + .7152 * g + .0722 * b;
    };
    const [high, low] = [light(a), light(b)].sort((a, b) => b - a);
    return (high + .05) / (low + .05);
  };
  const themes = () => {
    const probe = document.body.appendChild(document.createElement("p"));
    const colour = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const seen = [];
    const toggle = document.querySelector("button.theme");
    for (let i = 0; i < 2; i++) {
      seen.push(getComputedStyle(document.body).backgroundColor);
      for (const ground of ["page", "card"]) {
        for (const text of ["ink", "soft", "faint", "accent", "kept", "strained", "broken"]) {
          const found = contrast(colour(text), colour(ground));
          expect(found >= 4.5, `${text} on ${ground} in theme ${i}: ${found.toFixed(2)}`);
        }
      }
      toggle.click();
    }
    probe.remove();
    expect(seen[0] !== seen[1], "the button changes the theme");
    expect(getComputedStyle(document.body).backgroundColor === seen[0], "and changes it back");
    expect(dark === /^rgb\(2\d,/.test(seen[0]),
      `the system's theme is the first: ${seen[0]}`);
  };

  // Whatever can be used has a name and can be reached, and what is wide scrolls in its box.
  const access = () => {
    for (const control of document.querySelectorAll("button, a, summary, [tabindex='0']")) {
      const name = control.getAttribute("aria-label") || control.textContent.trim();
      expect(name, `a control without a name: ${control.outerHTML.slice(0, 80)}`);
      expect(control.tabIndex >= 0, `out of reach: ${name}`);
    }
    for (const link of document.querySelectorAll("a[href^='#']")) {
      expect(document.getElementById(link.hash.slice(1)), `${link.hash} leads nowhere`);
    }
    for (const details of document.querySelectorAll("details")) details.open = true;
    fits("unfolded");
    const skip = document.querySelector(".skip");
    skip.focus();
    expect(skip.getBoundingClientRect().left >= 0, "the skip link is seen when it has the focus");
  };

  const check = () => {
    expect(document.documentElement.dataset.ready === "yes", "the script did not finish");
    expect(document.querySelectorAll("script").length === 2, "a script came from the document");
    fits("as it opens");
    const [first, second] = charts("lines").map((figure) => figure.querySelector(".area"));
    const tip = first.querySelector(".tip");
    point(first, "pointermove", .5);
    expect(!tip.hidden && tip.children.length === 3, "the read-out shows time and two series");
    expect(/MiB\/s|KiB\/s/.test(tip.textContent), `values have units: ${tip.textContent}`);
    const box = tip.getBoundingClientRect();
    expect(box.left >= 0 && box.right <= space, "the read-out stays on the page");
    point(first, "pointerleave", .5);
    expect(tip.hidden, "the read-out goes away");

    press(first, "ArrowRight");
    const before = tip.textContent;
    press(first, "ArrowRight");
    expect(!tip.hidden && tip.textContent !== before, "arrow keys walk along the points");
    expect(document.querySelector("[role=status]").textContent.includes("read"),
      "what is shown is also said");

    const whole = view(first);
    const ticks = first.parentElement.querySelector(".x");
    const printed = ticks.textContent;
    press(first, "+");
    const heat = document.querySelector("figure.heatmap .area");
    expect(view(first) === "250 0 500 1000", `zoomed in by two: ${view(first)}`);
    expect(view(second) === view(first) && view(heat) === view(first), "charts zoom together");
    const minutes = [...ticks.children].map((tick) => tick.textContent);
    expect(minutes.join() === "3 min,4 min,5 min,6 min,7 min", `ticks follow: ${minutes}`);
    fits("zoomed");
    press(first, "ArrowRight", true);
    expect(view(first) === "375 0 500 1000", `moved on: ${view(first)}`);
    press(first, "0");
    expect(view(first) === whole && ticks.textContent === printed, "all is shown again");

    point(first, "pointerdown", .2);
    point(first, "pointermove", .4);
    point(first, "pointerup", .4);
    const [left, , width] = view(first).split(" ").map(Number);
    expect(Math.abs(left - 200) < 3 && Math.abs(width - 200) < 3, `dragged: ${view(first)}`);
    const buttons = first.closest("figure").querySelectorAll(".tools button");
    expect(buttons.length === 5, "zoom has buttons");
    buttons[4].click();
    expect(view(first) === whole && buttons[4].disabled, "the last button shows all");

    const figure = second.closest("figure");
    const [, write] = figure.querySelectorAll(".legend button");
    write.click();
    expect(write.getAttribute("aria-pressed") === "false", "a series is off");
    const mark = figure.querySelector("svg [data-series='1']");
    expect(getComputedStyle(mark).display === "none", "its line is gone");
    point(second, "pointermove", .5);
    const rows = second.querySelector(".tip").children.length;
    expect(rows === 4, `time, the other series and its band are left, found ${rows}`);
    write.click();
    expect(getComputedStyle(mark).display !== "none", "its line is back");

    point(heat, "pointermove", .3, .9);
    const cell = heat.querySelector(".tip").textContent;
    expect(/address.* to .*amount/.test(cell), `a cell is read out: ${cell}`);
    const columns = document.querySelector("figure.columns .area");
    point(columns, "pointermove", .01);
    expect(columns.querySelector(".tip").textContent.includes("4 KiB"), "a bar is read out");
    curves();
    addresses();
    themes();
    access();
  };

  let said = `all well in ${dark ? "dark" : "light"}`;
  try { if (document.title === "units") units(); else check(); } catch (error) { said = String(error); }
  parent.postMessage(said, "*");
})();
