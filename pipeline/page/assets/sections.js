"use strict";
// The sections of the page, in their order. Each fills its own place.

function placeText(offer) {
  return offer.country || (offer.continent ? words(offer.continent) : "");
}

function tierText(offer) {
  const kind = kindWords(offer.price_kind);
  const term = offer.price_kind === "reserved" && offer.term_days ? ` ${offer.term_days} d` : "";
  return [kind + term, offer.tier && kindWords(offer.tier) !== kind ? words(offer.tier) : ""].filter(Boolean).join(", ");
}

/** The age of a price, marked where it is old. */
function ageOf(day) {
  const days = ageDays(day);
  return days > 2 || days < 0 ? el("span", { class: "warn" }, `${ageText(days)}${days > 2 ? ", old" : ""}`) : ageText(days);
}

function agoOf(day) {
  const days = ageDays(day);
  const text = days > 0 ? `${ageText(days)} ago` : ageText(days);
  return days > 2 || days < 0 ? el("span", { class: "warn" }, text) : text;
}

/** What the host costs besides a price of a table. */
function hostTag(usd) {
  return usd > 0 ? el("span", { class: "tag" }, hostText(usd)) : "";
}

function evidenceText(plan) {
  return plan ? plan.evidence : "";
}

function filtersText(state) {
  const { kinds, places, tiers } = D.answers;
  const parts = [inSentence(kinds[numberOf(kinds, state.kind)].label)];
  const place = numberOf(places, state.place);
  const tier = numberOf(tiers, state.tier);
  if (place > 0) parts.push(places[place].label);
  if (tier > 0) parts.push(inSentence(tiers[tier].label));
  return parts.join(", ");
}

function commandOf(state) {
  const { kinds, places, tiers } = D.answers;
  const asked = [[kinds, state.kind], [places, state.place], [tiers, state.tier]].map(([choices, name]) => choices[numberOf(choices, name)].option);
  return [D.workloads.command[D.jobNumber.get(state.job)], ...asked.filter((option) => option && option !== "--kind on_demand")].join(" ");
}

function commandLine(text) {
  const button = navigator.clipboard ? el("button", { type: "button" }, "Copy") : null;
  button?.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Select and copy it"; }));
  return el("div", { class: "command" }, el("code", {}, text), button);
}

function showJob(state) {
  const job = rowOf(D.workloads, D.jobNumber.get(state.job));
  const parts = [
    `${job.model_title}, ${job.method}${job.lora_rank ? ` of rank ${job.lora_rank}` : ""}, ${tokensText(job.tokens)} tokens in all, sequences of ${COMMAS.format(job.seq_len)}, ` +
    `at most ${job.max_gpus} GPUs, wanted within ${COMMAS.format(job.max_hours)} hours.`,
    job.note ? ` ${job.note}` : "",
  ];
  show("job", ...parts);
}

/** The picks of a ranking: which ways they are, what they cost and take; those that coincide in one line. */
function picksOf({ picks }) {
  const names = ["Cheapest", "best value", "safest"];
  const ways = [...new Set(picks.filter(Boolean).map((pick) => pick.way))];
  return ways.map((way) => {
    const of = picks.find((pick) => pick?.way === way);
    const named = names.filter((name, n) => picks[n]?.way === way).join(", ");
    const where = [of.offer.provider, placeText(of.offer) || "country not stated", tierText(of.offer)].join(" \u00b7 ");
    return el("li", {}, el("strong", {}, `${named[0].toUpperCase()}${named.slice(1)}: ${machineText(of.machine)}`), `, ${where}, ${money(of.total)}, ${hours(of.hours)} hours`, of.cautions.length ? el("span", { class: "warn" }, ` Careful: ${of.cautions.join("; ")}.`) : "");
  });
}

function showAnswer(state, found) {
  const { rows, note } = found;
  const first = found.picks[0] || rows[0];
  const command = commandLine(commandOf(state));
  if (!first) {
    const text = `Nothing on offer runs this job (${filtersText(state)}). The command says which constraint would have to give way:`;
    show("answer-body", el("div", { class: "card" }, el("p", {}, text), command));
    return;
  }
  const { offer, plan } = first;
  const where = [offer.provider, placeText(offer) || "country not stated", tierText(offer)].filter(Boolean).join(" \u00b7 ");
  const facts = [
    ["Finished in", `${hours(first.hours)} hours`],
    ["Price", `${rate(offer.usd_per_hour)}${hostText(offer.host_usd_per_hour)} per hour${offer.gpus_billed > first.machine[1] ? ` for ${offer.gpus_billed} GPUs` : ""}`],
    ["P(fits in memory)", plan ? percent(plan.fit) : "unknown"],
    ["Speed", plan ? `${significant(plan.speed, 3)} tokens/s` : ""],
    ["Evidence of the speed", plan ? `${plan.evidence}${plan.run ? `, nearest run ${plan.run}` : ""}` : ""],
    ["Price seen", [`${offer.price_day}, `, agoOf(offer.price_day)]],
  ];
  const cautions = [];
  if (!note.inTime) {
    const strict = commandOf(state).includes("--max-hours") ? " The command keeps to these hours, and says which constraint would have to give way." : "";
    cautions.push(`Nothing finishes within the hours wanted: these are the fastest answer and those that take only a little longer.${strict}`);
  }
  if (!found.picks[2]) cautions.push("No company's own machine is sure to fit, to be there and to be in time.");
  const wait = note.wait && `If you can wait, it costs ${money(note.wait[0])}: ${D.answers.texts[note.wait[2]]} in ${hours(note.wait[1])} hours.`;
  show("answer-body", el("div", { class: "card" },
    el("p", {}, el("span", { class: "money" }, money(first.total)), " ", el("span", { class: "between" }, `${between(first.low, first.high)} in eight of ten cases`)),
    el("p", { class: "what" }, el("strong", {}, machineText(first.machine)), ` \u00b7 ${where}`),
    el("ul", { class: "picks" }, picksOf(found)),
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    cautions.map((text) => el("p", { class: "note" }, text)),
    wait && el("p", {}, wait), command));
}

function barOf(row, most) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  const band = el("i");
  const mark = el("b");
  const at = (usd) => `${Math.min(100, (100 * usd) / most)}%`;
  band.style.left = at(row.low);
  band.style.width = `${Math.max(0.8, Math.min(100, (100 * row.high) / most) - (100 * row.low) / most)}%`;
  mark.style.left = `calc(${at(row.total / 100)} - 1px)`;
  bar.append(band, mark);
  return bar;
}

/** What a ranking has, as its caption begins. */
function rankedText(rows, note) {
  if (rows.length === 1) return "The only way";
  return note.inTime ? `The ${rows.length} cheapest ways` : `The fastest ways and those that take little longer, ${rows.length} in all`;
}

function showRanking(state, { rows, note }) {
  if (!rows.length) {
    show("ranking-body", el("p", {}, "There is nothing to rank."));
    return;
  }
  const most = Math.max(...rows.map((row) => row.high));
  const columns = [
    { title: "Rank", name: "rank", n: true }, { title: "GPU", name: "gpu", head: true }, { title: "Total", name: "total", n: true },
    { title: "p10 to p90", name: "between" }, { title: "Provider", name: "provider" }, { title: "Hours", name: "hours", n: true },
    { title: "P(fits)", name: "fit", n: true }, { title: "Evidence", name: "evidence" }, { title: "USD/hour", name: "rate", n: true },
    { title: "Price's age", name: "age", n: true },
  ];
  const body = rows.map((row) => ({
    class: row.rank === 1 ? "first" : null,
    cells: [
      String(row.rank), machineText(row.machine), money(row.total), [between(row.low, row.high), barOf(row, most)],
      [link(row.offer.source_url, row.offer.provider), " ", el("span", { class: "tag" }, [placeText(row.offer), tierText(row.offer)].filter(Boolean).join(" \u00b7 "))],
      hours(row.hours), row.plan ? percent(row.plan.fit) : "", evidenceText(row.plan), [rate(row.offer.usd_per_hour), hostTag(row.offer.host_usd_per_hour)], ageOf(row.offer.price_day),
    ],
  }));
  const caption = `${rankedText(rows, note)} (${filtersText(state)}). USD for the finished job, without taxes.`;
  show("ranking-body", tableOf(caption, columns, body, "ranking"));
}

const WHY_ROWS = 15;
let everyWhy = false;

function showWhyNot(state, numbers) {
  const { ranked, others } = whyNot(numbers);
  const wanted = byId("find").value.trim().toLowerCase().split(/[\s,]+/).filter(Boolean);
  const isWanted = (gpu) => !wanted.length || wanted.some((word) => `${gpu} ${gpuName(gpu)}`.toLowerCase().includes(word));
  const best = ranked.length ? ranked[0].total : null;
  const isFiltered = numbers.place > 0 || numbers.tier > 0;
  const { inTime } = ranking({ ...numbers, place: 0, tier: 0 }).note;
  const first = isFiltered ? `${inTime ? "cheapest" : "first"} anywhere, of all machines` : "the answer";
  const rows = [
    ...ranked.filter(({ machine }) => isWanted(machine[0])).map(({ machine, rank, total }) => [
      gpuName(machine[0]), COMMAS.format(rank), money(total), `${(total / best).toFixed(total / best < 10 ? 2 : 0)} \u00d7`,
      rank === 1 ? first : `fits; ${inTime ? "cheapest" : "first"} with ${plural(machine[1], "GPU")}`,
    ]),
    ...others.filter(({ gpu }) => isWanted(gpu)).map(({ gpu, reason, detail }) => [gpuName(gpu), "", "", "", [el("span", { class: "tag" }, `${words(reason)}: `), detail]]),
  ];
  const isLong = rows.length > WHY_ROWS && !everyWhy && !wanted.length;
  const columns = [
    { title: "GPU", name: "gpu", head: true }, { title: "Best rank", n: true }, { title: "Total", n: true }, { title: inTime ? "Times the cheapest" : "Times rank 1", n: true }, { title: "Why", long: true },
  ];
  const more = el("button", { type: "button", class: "more" }, `Show all ${COMMAS.format(rows.length)}`);
  more.addEventListener("click", () => { everyWhy = true; showWhyNot(state, numbers); byId("find").focus(); });
  const kind = inSentence(D.answers.kinds[numbers.kind].label);
  const found = wanted.length ? [...ranked.map(({ machine }) => machine[0]), ...others.map(({ gpu }) => gpu)].find(isWanted) : null;
  show("why-not-body",
    isFiltered && el("p", { class: "note" }, "This table is for machines of all tiers anywhere. For the choice above: ", el("code", {}, `${commandOf(state).replace("cheapest", "explain")} --not-gpu ${found || "h100"}`)),
    rows.length ? tableOf(`${plural(ranked.length, "GPU")} ranked, ${others.length} not (${kind}${isFiltered ? ", anywhere, all machines" : ""}).`, columns, isLong ? rows.slice(0, WHY_ROWS) : rows) : el("p", {}, "No GPU has such a name."),
    isLong && el("p", {}, more));
}

function showCompare(state, numbers) {
  const pair = [state.one, state.other];
  const { ranked, others } = whyNot(numbers);
  const gpus = pair.map((gpu) => rowOf(D.gpus, D.gpuNumber.get(gpu)));
  const best = pair.map((gpu) => ranked.find(({ machine }) => machine[0] === gpu));
  const none = pair.map((gpu) => others.find((other) => other.gpu === gpu));
  const plans = best.map((found) => found && planOf(numbers.job, found.number));
  const number = (value, unit) => (value === null ? "none stated" : `${COMMAS.format(value)} ${unit}`);
  const memory = (place) => {
    const plan = plans[place];
    if (!plan) return none[place] ? none[place].detail : "";
    const usable = gpus[place].usable_memory_gib;
    const bar = el("span", { class: "memory", "aria-hidden": "true" }, el("i"));
    bar.firstChild.style.width = `${Math.min(100, (100 * plan.needed) / usable)}%`;
    return [`${significant(plan.needed, 3)} of ${significant(Number(usable.toPrecision(3)), 3)} GiB, fits with ${percent(plan.fit)}`, bar];
  };
  const rows = [
    ["This job at its best", ...best.map((found, place) => (found ? `${money(found.total)}, rank ${found.rank}, ${machineText(found.machine)}` : el("span", { class: "tag" }, none[place] ? `not ranked: ${none[place].detail}` : "")))],
    ["Memory needed per GPU", memory(0), memory(1)],
    ["Speed", ...plans.map((plan) => (plan ? `${significant(plan.speed, 3)} tokens/s, ${plan.evidence}` : ""))],
    ["Memory", ...gpus.map((gpu) => `${number(gpu.memory_gb, "GB")}${gpu.memory_type ? ` ${gpu.memory_type}` : ""}`)],
    ["Memory bandwidth", ...gpus.map((gpu) => number(gpu.bandwidth_gb_s, "GB/s"))],
    ["bf16, dense", ...gpus.map((gpu) => number(gpu.bf16_dense_tflops, "TFLOPS"))],
    ["bf16, best measured product", ...gpus.map((gpu) => number(gpu.gemm_bf16_measured_tflops, "TFLOPS"))],
    ["fp8, dense", ...gpus.map((gpu) => number(gpu.fp8_dense_tflops, "TFLOPS"))],
    ["NVLink or the like", ...gpus.map((gpu) => number(gpu.nvlink_gb_s, "GB/s"))],
    ["Board power", ...gpus.map((gpu) => number(gpu.tdp_w, "W"))],
    ["Architecture, year", ...gpus.map((gpu) => [gpu.architecture, gpu.year].filter(Boolean).join(", "))],
  ];
  const caption = `${gpus[0].name} and ${gpus[1].name}, for the job above (${inSentence(D.answers.kinds[numbers.kind].label)}, anywhere).`;
  const columns = [{ title: "What", head: true }, { title: gpus[0].name }, { title: gpus[1].name }];
  const prices = rowsOf(D.prices).filter(({ gpu_id: gpu }) => pair.includes(gpu));
  const keys = [...new Set(prices.map((row) => `${row.price_kind}\t${row.provider}`))].sort();
  const price = (gpu, kind, provider) => prices.find((row) => row.gpu_id === gpu && row.price_kind === kind && row.provider === provider);
  const priceRows = keys.map((key) => {
    const [kind, provider] = key.split("\t");
    const cells = pair.map((gpu) => { const found = price(gpu, kind, provider); return found ? [rate(found.usd_per_gpu_hour), hostTag(found.host_usd_per_gpu_hour)] : ""; });
    return [provider, kindWords(kind), ...cells];
  });
  const priceColumns = [{ title: "Provider", head: true }, { title: "Price" }, { title: gpus[0].name, n: true }, { title: gpus[1].name, n: true }];
  show("compare-body", tableOf(caption, columns, rows),
    el("h3", {}, "Prices"), priceRows.length ? tableOf("USD per GPU-hour, the cheapest that is ranked.", priceColumns, priceRows) : el("p", {}, "No price of either is ranked."));
}

function showHistory(state) {
  const { first_day: firstDay, series: all } = D.history;
  const begin = Date.parse(`${firstDay}T00:00:00Z`);
  const day = (number) => new Date(begin + number * DAY).toISOString().slice(0, 10);
  const found = all.filter(([gpu, kind]) => gpu === state.historyGpu && kind === state.historyKind);
  if (!found.length) {
    show("history-body", el("p", {}, `No ${kindWords(state.historyKind)} price of ${gpuName(state.historyGpu)} is on record.`));
    return;
  }
  const last = ([, , , first, prices]) => [first + prices.length, prices[prices.length - 1]];
  found.sort((a, b) => last(b)[0] - last(a)[0] || last(a)[1] - last(b)[1]);
  const from = Math.min(...found.map((one) => one[3]));
  const to = Math.max(...found.map((one) => one[3] + one[4].length - 1));
  const numbers = Array.from({ length: to - from + 1 }, (_, n) => from + n);
  const valuesOf = ([, , , first, prices]) => numbers.map((n) => prices[n - first] ?? null);
  const shown = found.slice(0, SERIES);
  const values = shown.map(valuesOf);
  const xs = numbers.map((n) => (begin + n * DAY) / 1000);
  const name = `${gpuName(state.historyGpu)}, ${kindWords(state.historyKind)}: USD per GPU-hour by day and provider`;
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
  show("history-body", el("p", { class: "meta" }, `${name}, ${day(from)} to ${day(to)}, the cheapest of each. A day without a price is a gap.`,
    hidden > 0 ? ` ${plural(hidden, "more provider")} in the table only.` : ""),
  chart.figure, keyOf(shown.map((one) => one[2])), tableUnder(`${name}`, columns, rows));
  chart.plot();
}

/** The table behind a chart, which opens. */
function tableUnder(caption, columns, rows) {
  return el("details", {}, el("summary", {}, `The chart's values as a table (${plural(rows.length, "row")})`), tableOf(caption, columns, rows));
}

function scatter(quantity, unit) {
  const points = rowsOf(D.errors).filter((row) => row.quantity === quantity).sort((a, b) => a.measured - b.measured);
  const xs = points.map((point) => point.measured);
  const inBand = points.map((point) => (point.in_band ? point.predicted_held_out : null));
  const outside = points.map((point) => (point.in_band ? null : point.predicted_held_out));
  const name = `${quantity === "memory" ? "Memory" : "Speed"} in ${unit}: predicted against measured`;
  const dots = (n) => ({ paths: () => null, stroke: () => seriesColour(n), points: { show: true, size: 4, width: 1, fill: () => seriesColour(n) } });
  const make = () => ({
    scales: { x: { time: false, distr: 3 }, y: { distr: 3 } }, cursor: { show: false },
    axes: axes({ label: `measured ${unit}`, ...decades((value) => COMPACT.format(value)) }, decades((value) => COMPACT.format(value))),
    series: [{}, { stroke: () => colour("--soft"), width: 1, dash: [4, 4], points: { show: false } }, dots(0), dots(1)],
  });
  const chart = draw(`error-${quantity}`, `Chart: ${name}. The table below has its values.`, 300, make, [xs, xs, inBand, outside]);
  const columns = [{ title: "Source", head: true }, { title: "GPU" }, { title: "Measured", n: true }, { title: "Predicted", n: true }, { title: "Error", n: true }, { title: "In its band" }];
  const rows = () => points.map((p) => [p.source, gpuName(p.gpu_id), COMMAS.format(p.measured), significant(Number(p.predicted_held_out.toPrecision(3)), 3), signed(p.predicted_held_out / p.measured - 1), p.in_band ? "yes" : "no"]);
  return { chart, name, body: [el("h3", {}, name), chart.figure, lazyTable(name, columns, points.length, rows)] };
}

/** A long table that is made when it is opened. */
function lazyTable(caption, columns, count, rows) {
  const made = el("details", {}, el("summary", {}, `The chart's values as a table (${plural(count, "row")})`));
  made.addEventListener("toggle", () => { if (made.open && made.childElementCount === 1) made.append(tableOf(caption, columns, rows())); });
  return made;
}

function showError() {
  const summary = rowsOf(D.error_summary);
  const all = Object.fromEntries(summary.filter((row) => row.grouped_by === "all").map((row) => [row.quantity, row]));
  const sentence = (row, what) => row && `${what}: a median error of ${share(row.stranger_median_error)} on runs from a source that the model has never seen ` +
    `(${COMMAS.format(row.runs)} runs, ${row.sources} sources), and inside the band ${share(row.stranger_share_in_band)} of the time. `;
  const fit = all.memory;
  const verdict = fit && fit.died ? `Of ${fit.died} runs that ran out of memory, ${fit.died_as_predicted} were predicted to; of ${COMMAS.format(fit.ran)} that ran, ${COMMAS.format(fit.ran_as_predicted)}.` : "";
  const memory = scatter("memory", "GiB per GPU");
  const speed = scatter("speed", "tokens/s per GPU");
  const columns = (first) => [{ title: first, head: true, long: true },
    ...["Memory", "Speed"].flatMap((what) => [{ title: `${what}: runs`, n: true }, { title: "error", n: true }, { title: "bias", n: true }, { title: "in the band", n: true }])];
  const cells = (row) => (row ? [COMMAS.format(row.runs), share(row.median_error_held_out), signed(row.bias_held_out), share(row.share_in_band)] : ["", "", "", ""]);
  const by = (group) => {
    const rows = summary.filter((row) => row.grouped_by === group);
    const runs = (name) => rows.filter((row) => row.group === name).reduce((sum, row) => sum + row.runs, 0);
    const names = [...new Set(rows.map((row) => row.group))].sort((a, b) => runs(b) - runs(a));
    const of = (name, quantity) => rows.find((row) => row.group === name && row.quantity === quantity);
    return names.map((name) => [(of(name, "memory") || of(name, "speed")).title || name, cells(of(name, "memory")), cells(of(name, "speed"))].flat());
  };
  show("error-body", el("p", {}, sentence(all.memory, "Memory"), sentence(all.speed, "Speed"), verdict),
    el("p", { class: "meta" }, "Every prediction is made by a model fitted without any run of the same family of sources. The dashed line is a perfect one."),
    el("div", { class: "two" }, el("div", {}, memory.body), el("div", {}, speed.body)), keyOf(["inside its band", "outside"], true),
    el("h3", {}, "By method"), tableOf("Median held-out error by method; the band is from p10 to p90.", columns("Method"), by("method")),
    el("h3", {}, "By source"), tableOf("The same by source of the measurements.", columns("Source"), by("source")));
  memory.chart.plot();
  speed.chart.plot();
}

const errorOf = ({ last_error: error }) => (error === "accepted_prices_missing" ? "what was accepted is no longer in the record" : error || "the newest answer was not accepted");

/** State of a source's newest attempt, as of the reader's date. */
function sourceState(source) {
  if (source.disabled) return `never asked: ${source.disabled}`;
  if (source.no_permission === "terms_forbid") return `never asked; its terms are reported to forbid automated reading: gpufare sources enable ${source.source}`;
  if (source.no_permission) return `off: ${source.no_permission}`;
  if (source.missing_key) return `needs a key: ${source.missing_key}`;
  if (source.last_accepted_day === null) return source.last_error ? `failing: ${errorOf(source)}` : "never asked";
  const isOverdue = source.attempt_due_ms !== null && Date.now() > source.attempt_due_ms;
  const notAsked = isOverdue ? `not asked since ${source.last_attempt_day}` : "";
  if (source.last_attempt_accepted === false) return el("span", { class: "warn" }, `failing: ${notAsked ? `${notAsked}, when it failed: ` : ""}${errorOf(source)}`);
  if (ageDays(source.last_accepted_day) > source.stale_after_days) return el("span", { class: "warn" }, notAsked ? `stale: ${notAsked}` : "stale");
  if (isOverdue) return el("span", { class: "warn" }, notAsked);
  return el("span", { class: "good" }, "current");
}

function showSources() {
  const sources = rowsOf(D.sources);
  const columns = [
    { title: "Source", head: true }, { title: "State", long: true }, { title: "Prices of", name: "day" }, { title: "Age", n: true }, { title: "Ranked until", name: "day" }, { title: "Offers", n: true },
    { title: "Ranked", n: true }, { title: "Rejects", n: true }, { title: "GPUs", n: true }, { title: "Evidence of the reader", name: "day" },
  ];
  const rows = sources.map((source) => [
    link(source.homepage, source.title), sourceState(source), source.last_accepted_day || "", source.last_accepted_day ? ageOf(source.last_accepted_day) : "", source.ranked_until || "",
    COMMAS.format(source.offers || 0), COMMAS.format(source.offers_ranked || 0), COMMAS.format(source.rejects || 0), COMMAS.format(source.gpus || 0),
    [source.evidence_level, source.evidence_date].filter(Boolean).map(words).join(", "),
  ]);
  const rejects = rowsOf(D.rejects).map((row) => [row.source, words(row.reason), COMMAS.format(row.row_count), row.sentence || ""]);
  const leftOut = rowsOf(D.left_out).map((row) => [words(row.not_ranked_reason || "not ranked"), row.flag_reason ? words(row.flag_reason) : "", COMMAS.format(row.offers), COMMAS.format(row.sources)]);
  show("sources-body", tableOf(`${plural(sources.length, "price source")}; ages count to today by your clock.`, columns, rows),
    el("h3", {}, "Rows that were rejected"), tableOf("In each source's newest answer.", [{ title: "Source", head: true }, { title: "Reason" }, { title: "Rows", n: true }, { title: "Meaning", long: true }], rejects),
    el("h3", {}, "Prices that were read and are not ranked"), tableOf("Flagged prices and others that no ranking uses.", [{ title: "Why", head: true }, { title: "Flag" }, { title: "Offers", n: true }, { title: "Sources", n: true }], leftOut));
}

const four = (number) => COMMAS.format(Number(number.toPrecision(4)));
const spread = (low, high) => (low === high ? four(low) : `${four(low)} to ${four(high)}`);
const askedPrice = (found, who) => `${who} asked $${found.low.toFixed(2)}${found.high > found.low ? ` to ${found.high.toFixed(2)}` : ""} on ${found.day}`;
const ofProviders = (found, who) => askedPrice(found, `${who} of ${found.providers} providers read here`);
const speedFound = (found) => `${found.claimed ? `That is ${four(found.claimed)} tokens/s; ` : ""}${found.model} ${found.method} on ${found.gpu_count} x ${found.gpu_id} runs at ${spread(found.slowest, found.fastest)} tokens/s`;
/** The finding behind a claim's verdict in words, by its code. */
const FINDINGS = {
  arithmetic: (found, claim) => `${found.formula}${found.formula === "tokens / tokens_per_second" ? " / 3600" : ""} with ${found.terms.map(four).join(" and ")} gives ${four(claim.should_be)} ${claim.unit}${found.right_for_tokens ? `; the claim is right for ${four(found.right_for_tokens)} tokens` : ""}`,
  datasheet: (found, claim) => `The catalogue has ${claim.unit === "year" ? found.fact : four(found.fact)} for ${found.gpus > 1 ? `each of ${found.gpus} ` : ""}${found.subject}`,
  too_little: (found) => `It takes at least ${four(found.floor_gib)} GiB, ${four(found.fused_gib)} to be safe, with an ordinary AdamW, fused kernels and full checkpointing`,
  too_much: (found) => `Even default software without checkpointing takes ${four(found.default_gib)} GiB`,
  enough_on_conditions: (found) => `It takes ${four(found.floor_gib)} GiB at least and ${four(found.fused_gib)} to be safe with fused kernels and full checkpointing, but ${four(found.default_gib)} on default software`,
  ample: (found) => `Default software without checkpointing takes ${four(found.default_gib)} GiB`,
  gpus_needed: (found) => `${found.model} ${found.method} takes ${found.fewest || "more than 16"} ${found.gpu_id} of ${four(found.usable_gib)} usable GiB, ${found.fewest_default || "more than 16"} with default software and no checkpointing`,
  adapter_mb: (found) => `The adapters of ${found.model} take ${spread(found.low, found.high)} MB, in 16 or 32 bits`,
  activations_gb: (found) => `The activations of ${found.model} take ${spread(found.low, found.high)} GiB, with and without checkpointing and fused kernels`,
  does_not_fit: (found) => `${found.model} ${found.method} does not fit ${found.gpu_count} x ${found.gpu_id}: it takes ${four(found.needed_gib)} GiB per GPU, ${four(found.usable_gib)} are usable`,
  too_fast: speedFound, too_slow: speedFound, possible: speedFound,
  slow: (found) => `${speedFound(found)}, slower only with short or padded sequences`,
  ratio: (found, claim) => `The calibrated model gives ${four(claim.should_be)} ${claim.unit}, ${spread(found.low, found.high)} over ${found.pairs} pairs of settings and their error, for ${found.model} ${found.method} on ${found.gpu_id || "any GPU"} against ${found.versus}`,
  price_of_provider: (found) => askedPrice(found, found.provider),
  cheapest_price: (found) => ofProviders(found, "The cheapest"),
  middle_prices: (found) => ofProviders(found, "The middle half"),
  providers: (found, claim) => `Of the providers read here, ${claim.should_be} rent it out${found.day ? ` (${found.day})` : ""}; the claim counts its own list`,
  spot_discount: (found, claim) => `Spot cost ${four(claim.should_be)}% less than on demand (the median of ${found.pairs} pairs of provider and GPU on ${found.day}), ${spread(found.low, found.high)}% in the middle half`,
  other_claims: (found) => `Other claims: ${found.claims.join("; ")}; nothing here decides between them`,
  no_price: () => "No price of this GPU, kind and provider was read",
  no_quality: () => "No measured quality is kept here, and no other claim differs",
  no_measurement: () => "Nothing here measures this",
};

function whyOf(claim) {
  const found = JSON.parse(claim.why);
  const published = found.run_gib ? `; the published run with the least took ${four(found.run_gib)}` : "";
  const inBackward = found.in_backward_gib ? `; an 8-bit optimizer that steps during the backward pass would take ${four(found.in_backward_gib)}` : "";
  const late = found.days_apart ? `, ${found.days_apart} days from the claim: ${claim.verdict === "holds with conditions" ? "it holds if prices stayed" : "too far to tell"}` : "";
  return `${FINDINGS[found.finding](found, claim)}${published}${inBackward}${late}.`;
}

const CLAIM_ROWS = 12;
let everyClaim = false;

function showAudit(state) {
  const claims = rowsOf(D.claims);
  const wanted = claims.filter((claim) => state.verdict === "all" || claim.verdict === state.verdict);
  const counts = new Map();
  for (const { verdict } of claims) counts.set(verdict, (counts.get(verdict) || 0) + 1);
  const columns = [{ title: "Claim", head: true, long: true }, { title: "Verdict" }, { title: "Should be", n: true }, { title: "Why", long: true }, { title: "Guide", long: true }];
  const rows = wanted.map((claim) => [claim.claim, claim.verdict, claim.should_be === null ? "" : `${COMMAS.format(Number(claim.should_be.toPrecision(4)))} ${claim.unit || ""}`, whyOf(claim), `${claim.title}, line ${claim.line}`]);
  const shown = everyClaim ? rows : rows.slice(0, CLAIM_ROWS);
  const more = el("button", { type: "button", class: "more" }, `Show all ${rows.length}`);
  more.addEventListener("click", () => { everyClaim = true; showAudit(state); byId("verdict").focus(); });
  const summary = [...counts].sort((a, b) => b[1] - a[1]).map(([verdict, count]) => `${verdict} ${count}`).join(", ");
  show("audit-body", el("p", { class: "meta" }, claims.length ? `${claims.length} claims of guides to renting GPUs: ${summary}.` : "No claim is in the catalogue."),
    rows.length ? tableOf(`${plural(wanted.length, "claim")}.`, columns, shown) : null, shown.length < rows.length && el("p", {}, more));
}

function showMethod() {
  const published = D.published;
  show("method-body",
    el("p", {}, "A job's cost is what leaves the account: billed hours times the price, plus interruptions and failures, disk and traffic. Whether a model fits a card and how fast it trains there comes from a model of memory and speed, calibrated on published measurements; its error is above."),
    el("p", {}, "The band is where eight of ten comparable runs ended. P(fits) is the probability that the job does not run out of memory; below 90% nothing is ranked. Evidence says how near published runs are: measured, traced, interpolated or extrapolated."),
    el("p", {}, "Place and tier are applied before anything is ranked, as the command does. Every number is looked up in answers that SQL gave when this page was written; a job between these sizes is a question for the command, since billing steps, failures and deadlines do not grow in proportion."),
    el("p", {}, `${published.taxes} Exchange rates of ${published.exchange_rate_date || "no day"}.`),
    el("p", { class: "meta" }, `gpufare ${D.version}, written ${moment(D.written_ms)}, from the file published for ${published.as_of_day}, built ${moment(published.as_of_ms)}.`));
}

const moment = (ms) => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** What to do about old prices: a page that was just written has them from its file. */
function oldText() {
  const isOldPage = Date.now() - D.written_ms > 2 * DAY;
  return isOldPage ? " An old page: write a new one before you rent." : " Old prices: refresh, then write the page again.";
}

function showPublished() {
  const published = D.published;
  const days = ageDays(published.as_of_day);
  show("published", `Prices as of ${published.as_of_day} (`, days > 2 || days < 0 ? el("span", { class: "warn" }, `${ageText(days)}${days > 2 ? " ago" : ""}`) : days > 0 ? `${ageText(days)} ago` : "today",
    `): ${COMMAS.format(published.offers_ranked)} ranked offers of ${published.sources_ranked} sources.`,
    days > 2 ? oldText() : "");
  show("footer", `gpufare ${D.version}. Everything on this page is inside the file; it asks for nothing.`);
}
