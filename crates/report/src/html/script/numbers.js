// Numbers as the rest of the page writes them, because zooming makes new ticks and curves
// are read between their points. The units come with the page, so they are named once.
const UNITS = new Map(document.body.dataset.units.split("|").map((unit) => {
  const [key, rungs] = unit.split(":");
  return [key, rungs.split(";").map((rung) => {
    const [scale, name] = rung.split(",");
    return [Number(scale), name];
  })];
}));
const isBinary = (unit) => unit.startsWith("bytes");

// A value for a person: three significant digits, and whole counts in full.
const valueText = (value, unit) => {
  if (unit === "count" && Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  const ladder = unit === "count" && size < 1e6 ? UNITS.get("ratio") : UNITS.get(unit);
  const limits = [100, 10, 1, .1, .01];
  const written = (scaled) => {
    const digits = limits.findIndex((limit) => scaled === 0 || Math.abs(scaled) >= limit);
    return +scaled.toFixed(digits < 0 ? 5 : digits);
  };
  let rung = Math.max(0, ladder.findLastIndex(([scale]) => size >= scale));
  // Rounding can reach the next unit: 1023.9 KiB is 1 MiB.
  const next = ladder[rung + 1];
  if (next && written(size / ladder[rung][0]) * ladder[rung][0] >= next[0]) rung += 1;
  const [scale, name] = ladder[rung];
  return written(value / scale) + name;
};

const CLOCK = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600,
  43200, 86400, 172800].map((seconds) => seconds * 1e9);

// The smallest round step that is at least as wide as wanted.
const stepFor = (wanted, unit) => {
  if (isBinary(unit)) return Math.max(1, 2 ** Math.ceil(Math.log2(wanted)));
  const isTime = unit === "ns";
  if (isTime && wanted > 5e9 && wanted <= 1728e11) return CLOCK.find((step) => step >= wanted);
  const base = isTime && wanted > 1728e11 ? 864e11 : 1;
  const decade = 10 ** Math.floor(Math.log10(wanted / base));
  const digit = [1, 2, 5, 10].find((d) => d * decade >= wanted / base * (1 - 1e-9));
  return Math.max(isTime ? 1 : 0, digit * decade * base);
};

// All ticks of an axis use one unit: the largest that writes the step with a decimal.
const tickText = (value, step, high, unit) => {
  const fits = ([scale]) => {
    const tenths = step / scale * 10;
    return scale <= high && Math.abs(tenths - Math.round(tenths)) < 1e-6
      && Math.round(tenths) >= 1;
  };
  const ladder = UNITS.get(unit);
  const [scale, name] = ladder.findLast(fits) || ladder[0];
  // Zero needs no prefix such as k.
  const none = value === 0 && !name.startsWith(" ");
  return +(value / scale).toFixed(6) + (none ? ladder[0][1] : name);
};
