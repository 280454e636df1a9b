"use strict";
// Prices per GPU-hour: of every GPU, and of one with its providers, history and another GPU beside it.

const KINDS = ["on_demand", "spot", "reserved", "flex_start", "serverless"];

/** The prices that the view's place and kind leave: `where` takes countries, continents and eu, as the job does, and a
 * country under sanctions only by its name. */
function pricesSeen({ where, price: kind }) {
  const countries = where ? namesOf({ country: where }, "country") : null;
  return D.prices.filter((each) => (countries === null ? each.renter_notice !== "sanctions" : countries.includes(each.country)) && (!kind || each.price_kind === kind));
}

function showPrices(state) {
  let prices = [];
  try {
    prices = pricesSeen(state);
    byId("prices-note").hidden = true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    byId("prices-note").hidden = false;
    show("prices-note", error.message);
  }
  const unknown = D.prices.filter((price) => price.country === null && (!state.price || price.price_kind === state.price)).length;
  if (state.where && prices.length && unknown) {
    byId("prices-note").hidden = false;
    show("prices-note", `${plural(unknown, "price")} whose country is not stated ${unknown === 1 ? "is" : "are"} skipped.`);
  }
  showCard(state, prices);
  const rows = D.gpus.gpu_id.map((gpu) => {
    const own = prices.filter((price) => price.gpu_id === gpu);
    const cheapest = (kind) => leastOf(own.filter((price) => price.price_kind === kind), by((price) => price.usd_per_gpu_hour));
    return { gpu: D.gpuOf.get(gpu), providers: new Set(own.map((price) => price.provider)).size, ...Object.fromEntries(KINDS.map((kind) => [kind, cheapest(kind)])) };
  }).filter(({ providers }) => providers > 0);
  rows.sort(by((row) => row.on_demand?.usd_per_gpu_hour ?? Infinity));
  const columns = [
    { name: "gpu", title: "GPU", head: true, value: ({ gpu }) => gpu.name, text: ({ gpu }) => `${gpu.name} ${gpu.gpu_id}`, show: ({ gpu }) => el("a", { href: addressOf({ view: "prices", card: gpu.gpu_id, where: state.where, price: state.price }) }, gpu.name) },
    ...KINDS.flatMap((kind) => [
      { name: `${kind}_usd`, title: capital(kindWords(kind)), n: true, hidden: KINDS.indexOf(kind) > 2, value: (row) => row[kind]?.usd_per_gpu_hour ?? null, show: (row) => (row[kind] ? [priceText(row[kind].usd_per_gpu_hour), sizeOf(row[kind])] : "") },
      { name: `${kind}_provider`, title: "at", hidden: KINDS.indexOf(kind) > 0, value: (row) => row[kind]?.provider ?? "" },
    ]),
    { name: "providers", title: "Providers", n: true, value: (row) => row.providers },
    { name: "memory_gb", title: "GB", n: true, value: ({ gpu }) => gpu.memory_gb },
    { name: "bf16_dense_tflops", title: "bf16 TFLOPS", n: true, hidden: true, value: ({ gpu }) => gpu.bf16_dense_tflops },
    { name: "bandwidth_gb_s", title: "GB/s", n: true, hidden: true, value: ({ gpu }) => gpu.bandwidth_gb_s },
    { name: "year", title: "Year", n: true, hidden: true, value: ({ gpu }) => gpu.year },
  ];
  fillTable(byId("prices-body"), "prices", { caption: `USD per GPU-hour, the cheapest of each kind${state.where ? ` in ${state.where}` : ""}. \u00d78: on a machine with 8 GPUs. A price per hour is not a price per job: the page's first view ranks those.`, columns, rows }, writeState);
}

/** The size of a machine with several GPUs. */
const sizeOf = ({ gpu_count: gpus }) => (gpus > 1 ? el("span", { class: "between" }, ` \u00d7${gpus}`) : null);

/** One GPU: its prices by provider, their history, and its figures beside another's. */
function showCard(state, prices) {
  const gpu = D.gpuOf.get(state.card);
  byId("card").hidden = gpu === undefined;
  if (gpu === undefined) return;
  byId("card-h").textContent = gpu.name;
  const own = prices.filter((price) => price.gpu_id === gpu.gpu_id);
  own.sort(by((price) => price.usd_per_gpu_hour));
  const columns = [
    { name: "usd_per_gpu_hour", title: "USD/GPU-hour", n: true, head: true, value: (price) => price.usd_per_gpu_hour, show: (price) => priceText(price.usd_per_gpu_hour) },
    { name: "provider", title: "Provider", value: (price) => price.provider, show: (price) => link(D.sourceOf.get(price.source)?.homepage, price.provider) },
    { name: "price_kind", title: "Price, owner", value: (price) => kindText(price), csv: (price) => ({ price_kind: price.price_kind, term_days: price.term_days, tier_class: price.tier_class }) },
    { name: "country", title: "Country", value: (price) => price.country, show: (price) => price.country ?? "?", text: (price) => `${price.country ?? ""} ${placeText(price)}` },
    { name: "gpu_count", title: "GPUs", n: true, value: (price) => price.gpu_count },
    { name: "available", title: "Stock", value: (price) => ({ true: "in stock", false: "sold out" })[price.available] ?? "", csv: (price) => ({ available: price.available }) },
    { name: "price_day", title: "Price's age", n: true, value: (price) => ageDays(price.price_day), show: (price) => ageOf(price.price_day), csv: (price) => ({ price_day: price.price_day }) },
    { name: "source", title: "Price source", hidden: true, value: (price) => price.source },
  ];
  if (own.length) {
    fillTable(byId("card-prices"), "card", { caption: `Prices of ${gpu.name}, the cheapest machine of each provider, kind and country; the same: gpufare prices ${gpu.gpu_id}`, columns, rows: own }, writeState);
  } else {
    byId("card-prices").table = null;
    show("card-prices", el("p", {}, `No price of ${gpu.name} is ranked${state.where || state.price ? " within this choice" : ""}.`));
  }
  showHistory(state, gpu);
  showCompare(state, gpu, prices);
}

function showHistory(state, gpu) {
  const kind = state.price || "on_demand";
  const { first_day: firstDay, series: all } = D.history;
  const begin = Date.parse(`${firstDay}T00:00:00Z`);
  const day = (number) => new Date(begin + number * DAY).toISOString().slice(0, 10);
  const found = all.filter(([id, ofKind]) => id === gpu.gpu_id && ofKind === kind);
  if (!found.length) {
    show("card-history", el("p", {}, `No ${kindWords(kind)} price of ${gpu.name} is on record.`));
    return;
  }
  const last = ([, , , first, prices]) => [first + prices.length, prices[prices.length - 1]];
  found.sort((a, b) => last(b)[0] - last(a)[0] || last(a)[1] - last(b)[1]);
  const from = Math.min(...found.map((one) => one[3]));
  const to = Math.max(...found.map((one) => one[3] + one[4].length - 1));
  const name = `${gpu.name}, ${kindWords(kind)}: USD per GPU-hour by day and provider`;
  if (from === to) {
    show("card-history", el("h3", {}, "History"), el("p", { class: "meta" }, `${name}, anywhere. The record has one day, ${day(from)}: a history begins with the second.`), barsOf(found.map((one) => [one[2], one[4][0]])));
    return;
  }
  const numbers = Array.from({ length: to - from + 1 }, (_, n) => from + n);
  const valuesOf = ([, , , first, prices]) => numbers.map((n) => prices[n - first] ?? null);
  const shown = found.slice(0, SERIES);
  const values = shown.map(valuesOf);
  const xs = numbers.map((n) => (begin + n * DAY) / 1000);
  const make = () => ({
    scales: { x: { time: true } }, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    axes: axes({ size: 48 }, { values: (u, splits) => splits.map((usd) => `$${usd.toFixed(2)}`) }),
    series: [{}, ...shown.map((one, n) => ({ ...linePaths, stroke: () => seriesColour(n), width: 2 }))],
  });
  const read = (n) => `${day(numbers[n])}: ${shown.map((one, s) => (values[s][n] === null ? null : `${one[2]} ${rate(values[s][n])}`)).filter(Boolean).join(", ")}`;
  const chart = draw("history", `Chart: ${name}. The table below has its values.`, 260, make, [xs, ...values], read);
  const rows = [...numbers].reverse().map((n) => [day(n), ...found.map((one) => { const usd = one[4][n - one[3]]; return usd === null || usd === undefined ? "no price" : rate(usd); })]);
  const columns = [{ title: "Day", head: true }, ...found.map((one) => ({ title: one[2], n: true }))];
  const hidden = found.length - shown.length;
  show("card-history", el("h3", {}, "History"), el("p", { class: "meta" }, `${name}, ${day(from)} to ${day(to)}, anywhere, the cheapest of each. A day without a price is a gap.`,
    hidden > 0 ? ` ${plural(hidden, "more provider")} in the table only.` : ""),
  chart.figure, keyOf(shown.map((one) => one[2])), tableUnder(`${name}`, columns, rows));
  chart.plot();
}

/** Prices of one day as bars, cheapest first. */
function barsOf(prices) {
  const sorted = [...prices].sort((a, b) => a[1] - b[1]);
  const most = sorted[sorted.length - 1][1];
  return el("ul", { class: "bars" }, sorted.map(([name, usd]) => {
    const bar = el("i", { "aria-hidden": "true" });
    bar.style.width = `${(100 * usd) / most}%`;
    return el("li", {}, el("span", {}, name), el("span", { class: "track" }, bar), el("span", { class: "n" }, rate(usd)));
  }));
}

/** The figures of two GPUs, and this page's job on each. */
function showCompare(state, gpu, prices) {
  const choices = D.gpus.gpu_id.map((id, n) => [id, D.gpus.name[n]]);
  const other = D.gpuOf.get(options(byId("other"), [["", "none"], ...choices], D.gpuOf.has(state.other) ? state.other : ""));
  if (other === undefined) {
    show("card-compare");
    return;
  }
  const pair = [gpu, other];
  const number = (value, unit) => (value === null ? "none stated" : `${COMMAS.format(value)} ${unit}`);
  const cheapest = (id, kind) => leastOf(prices.filter((price) => price.gpu_id === id && price.price_kind === kind), by((price) => price.usd_per_gpu_hour));
  const priceCell = (price) => (price ? `${rate(price.usd_per_gpu_hour)} at ${price.provider}` : "none");
  const best = pair.map(({ gpu_id: id }) => current.found?.rows.find((row) => row.rental.gpu_id === id));
  const rows = [
    ...(current.found ? [["The job at its best", ...best.map((row, place) => (row ? `${money(row.total)} in ${numberText(row.hours)} hours, rank ${row.rank}, ${machineText(row.rental)}` : `not ranked: ${reasonText(current.asked, current.job, reasonOf(current.job, pair[place].gpu_id))}`))]] : []),
    ...KINDS.slice(0, 3).map((kind) => [`Cheapest ${kindWords(kind)}, per GPU-hour`, ...pair.map(({ gpu_id: id }) => priceCell(cheapest(id, kind)))]),
    ["Memory", ...pair.map((each) => `${number(each.memory_gb, "GB")}${each.memory_type ? ` ${each.memory_type}` : ""}`)],
    ["Memory bandwidth", ...pair.map((each) => number(each.bandwidth_gb_s, "GB/s"))],
    ["bf16, dense", ...pair.map((each) => number(each.bf16_dense_tflops, "TFLOPS"))],
    ["bf16, best measured product", ...pair.map((each) => number(each.gemm_bf16_measured_tflops, "TFLOPS"))],
    ["fp8, dense", ...pair.map((each) => number(each.fp8_dense_tflops, "TFLOPS"))],
    ["NVLink or the like", ...pair.map((each) => number(each.nvlink_gb_s, "GB/s"))],
    ["Board power", ...pair.map((each) => number(each.tdp_w, "W"))],
    ["Architecture, year", ...pair.map((each) => [each.architecture, each.year].filter(Boolean).join(", "))],
  ];
  show("card-compare", tableOf(`${gpu.name} and ${other.name}${current.job ? `, for ${jobText(current.asked, current.job)}` : ""}`, [{ title: "What", head: true }, { title: gpu.name }, { title: other.name }], rows));
}
