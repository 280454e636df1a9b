"use strict";
// Charts, drawn by uPlot. A chart is a picture with a name; the table after it has the same values.

const drawn = new Map();
const SERIES = 8;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const seriesColour = (number) => colour(`--c${(number % SERIES) + 1}`);

function axes(x, y) {
  const style = () => ({
    stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { stroke: () => colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20,
  });
  return [{ ...style(), size: 34, ...x }, { ...style(), size: 62, ...y }];
}

/** Draw into a place, in the place of what was there. ``read``: a line of text for the point under the pointer. */
function draw(id, name, height, make, data, read) {
  const readout = read && el("p", { class: "readout", "aria-hidden": "true" });
  const place = el("div", { role: "img", "aria-label": name });
  const figure = el("figure", { class: "chart" }, place, readout);
  figure.style.margin = "0";
  const plot = () => {
    drawn.get(id)?.plot?.destroy();
    const width = Math.max(240, place.clientWidth || 800);
    const extra = read ? { hooks: { setCursor: [(u) => { readout.textContent = u.cursor.idx === null || u.cursor.idx === undefined ? "" : read(u.cursor.idx); }] } } : {};
    const plotted = new uPlot({ width, height, legend: { show: false }, cursor: { drag: { x: false, y: false } }, ...make(), ...extra }, data, place);
    drawn.set(id, { plot: plotted, again: plot, place });
  };
  return { figure, plot };
}

function redraw() {
  for (const { again, place } of drawn.values()) if (place.isConnected) again();
}

addEventListener("resize", () => {
  for (const { plot, place } of drawn.values()) {
    if (place.isConnected && place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: plot.height });
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

/** The key of a chart: a swatch and a name for each series. */
function keyOf(names, dot) {
  return el("ul", { class: "key" }, names.map((name, number) => el("li", {}, el("i", { class: classes(`s${(number % SERIES) + 1}`, dot && "dot"), "aria-hidden": "true" }), name)));
}

/** A logarithmic axis that names 1, 2 and 5 of each decade, or where those are many, 1. */
function decades(write) {
  const few = (splits) => Math.log10(splits[splits.length - 1] / splits[0]) > 2.5;
  const named = (value, splits) => (few(splits) ? /^1(?!\d|\.)/ : /^[125](?!\d|\.)/).test(value.toExponential());
  return { filter: (u, splits) => splits.map((value) => (named(value, splits) ? value : null)), values: (u, splits) => splits.map((value) => (value === null ? "" : write(value))) };
}

const linePaths = { spanGaps: false, points: { size: 4 } };
