// Drives the report as a reader would; says "all well" or what is wrong.
(() => {
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

  const check = () => {
    expect(document.documentElement.dataset.ready === "yes", "the script did not finish");
    expect(document.querySelectorAll("script").length === 2, "a script came from the document");
    const room = document.documentElement.clientWidth;
    const wide = document.documentElement.scrollWidth;
    expect(wide <= room, `the page scrolls sideways: ${wide} in ${room}`);

    const [first, second] = charts("lines").map((figure) => figure.querySelector(".area"));
    const tip = first.querySelector(".tip");
    point(first, "pointermove", .5);
    expect(!tip.hidden && tip.children.length === 3, "the read-out shows time and two series");
    expect(/MiB\/s|KiB\/s/.test(tip.textContent), `values have units: ${tip.textContent}`);
    const box = tip.getBoundingClientRect();
    expect(box.left >= 0 && box.right <= room, "the read-out stays on the page");
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
    expect(ticks.textContent !== printed && ticks.children.length >= 4, "ticks follow the zoom");
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
  };

  let said = "all well";
  try { check(); } catch (error) { said = String(error); }
  parent.postMessage(said, "*");
})();
