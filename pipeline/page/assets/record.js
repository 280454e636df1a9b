"use strict";
// What the answers rest on: the model's error, the sources, the claims of guides, and the method.

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
  const cells = (row) => (row ? [COMMAS.format(row.runs), share(row.stranger_median_error), signed(row.bias_held_out), share(row.stranger_share_in_band)] : ["", "", "", ""]);
  const by = (group) => {
    const rows = summary.filter((row) => row.grouped_by === group);
    const runs = (name) => rows.filter((row) => row.group === name).reduce((sum, row) => sum + row.runs, 0);
    const names = [...new Set(rows.map((row) => row.group))].sort((a, b) => runs(b) - runs(a));
    const of = (name, quantity) => rows.find((row) => row.group === name && row.quantity === quantity);
    return names.map((name) => [(of(name, "memory") || of(name, "speed")).title || name, cells(of(name, "memory")), cells(of(name, "speed"))].flat());
  };
  show("error-body", el("p", {}, sentence(all.memory, "Memory"), sentence(all.speed, "Speed"), verdict),
    el("p", { class: "meta" }, "Every prediction is made by a model fitted without any run of the same family of sources. Errors and shares weigh each source alike; the bias weighs each run. The dashed line is a perfect prediction."),
    el("div", { class: "two" }, el("div", {}, memory.body), el("div", {}, speed.body)), keyOf(["inside its band", "outside"], true),
    el("h3", {}, "By method"), tableOf("Median error on runs from a source that the model has never seen, by method; the band is from p10 to p90.", columns("Method"), by("method")),
    el("h3", {}, "By source"), tableOf("The same by source of the measurements.", columns("Source"), by("source")));
  memory.chart.plot();
  speed.chart.plot();
}

const errorOf = ({ last_error: error }) => (error === "accepted_prices_missing" ? "what was accepted is no longer in the record" : error || "the newest answer was not accepted");

/** The state of a source's newest attempt, as of the reader's date: {text, kind: good, warn or none}. */
function sourceState(source) {
  if (source.disabled) return { text: `never asked: ${source.disabled}` };
  if (source.no_permission === "terms_forbid") return { text: `never asked; its terms are reported to forbid automated reading: gpufare sources enable ${source.source}` };
  if (source.no_permission) return { text: `off: ${source.no_permission}` };
  if (source.missing_key) return { text: `needs a key: ${source.missing_key}` };
  if (source.last_accepted_day === null) return { text: source.last_error ? `failing: ${errorOf(source)}` : "never asked" };
  const isOverdue = source.attempt_due_ms !== null && Date.now() > source.attempt_due_ms;
  const notAsked = isOverdue ? `not asked since ${source.last_attempt_day}` : "";
  if (source.last_attempt_accepted === false) return { text: `failing: ${notAsked ? `${notAsked}, when it failed: ` : ""}${errorOf(source)}`, kind: "warn" };
  if (ageDays(source.last_accepted_day) > source.stale_after_days) return { text: notAsked ? `stale: ${notAsked}` : "stale", kind: "warn" };
  return isOverdue ? { text: notAsked, kind: "warn" } : { text: "current", kind: "good" };
}

function showSources() {
  const sources = rowsOf(D.sources);
  const columns = [
    { name: "source", title: "Source", head: true, value: (source) => source.title, text: (source) => `${source.title} ${source.source}`, show: (source) => link(source.homepage, source.title) },
    { name: "state", title: "State", long: true, value: (source) => sourceState(source).text, show: (source) => { const { text, kind } = sourceState(source); return kind ? el("span", { class: kind }, text) : text; } },
    { name: "day", title: "Prices of", value: (source) => source.last_accepted_day },
    { name: "age", title: "Age", n: true, value: (source) => ageDays(source.last_accepted_day), show: (source) => (source.last_accepted_day ? ageOf(source.last_accepted_day) : "") },
    { name: "until", title: "Ranked until", value: (source) => source.ranked_until },
    ...[["offers", "Offers"], ["offers_ranked", "Ranked"], ["rejects", "Rejects"], ["gpus", "GPUs"]].map(([name, title]) => ({ name, title, n: true, value: (source) => source[name] || 0 })),
    { name: "evidence", title: "Evidence of the reader", value: (source) => [source.evidence_level, source.evidence_date].filter(Boolean).map(words).join(", ") },
  ];
  const rejects = [
    { name: "source", title: "Source", head: true, value: (row) => row.source }, { name: "reason", title: "Reason", value: (row) => words(row.reason) },
    { name: "rows", title: "Rows", n: true, value: (row) => row.row_count }, { name: "meaning", title: "Meaning", long: true, value: (row) => row.sentence },
  ];
  const leftOut = [
    { name: "why", title: "Why", head: true, value: (row) => words(row.not_ranked_reason || "not ranked") }, { name: "flag", title: "Flag", value: (row) => words(row.flag_reason || "") },
    { name: "offers", title: "Offers", n: true, value: (row) => row.offers }, { name: "sources", title: "Sources", n: true, value: (row) => row.sources },
  ];
  const places = Array.from({ length: 3 }, () => el("div", {}));
  show("sources-body", places[0], el("h3", {}, "Rows that were rejected"), places[1], el("h3", {}, "Prices that were read and are not ranked"), places[2]);
  fillTable(places[0], "sources", { caption: `${plural(sources.length, "price source")}; ages count to today by your clock.`, columns: columns, rows: sources }, writeState);
  fillTable(places[1], "rejects", { caption: "In each source's newest answer.", columns: rejects, rows: rowsOf(D.rejects) }, writeState);
  fillTable(places[2], "left-out", { caption: "Flagged prices and others that no ranking uses.", columns: leftOut, rows: rowsOf(D.left_out) }, writeState);
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
    el("p", {}, "A job's cost is what leaves the account: billed hours times the price, plus interruptions and failures, disk and traffic. Whether a model fits a card and how fast it trains there comes from a model of memory and speed, calibrated on published measurements; its error is told under How wrong."),
    el("p", {}, `The band is where eight of ten comparable runs ended. P(fits) is the probability that the job does not run out of memory; below ${percentOf(minFit())} nothing is ranked. Evidence says how near published runs are: measured, traced, interpolated or extrapolated; or own, where runs of your own are near.`),
    el("h3", {}, "The picks"), el("p", {}, D.pick_rule),
    el("h3", {}, "The page"),
    el("p", {}, `The page computes each answer from the plans and prices inside the file, with the formulas of the command gpufare, to the same cent. It has plans for ${plural(new Set(D.recipes.model).size, "model")} of ${COMMAS.format(D.models.length)}, with sequences of ${choiceOf([...new Set(D.recipes.seq_len)].sort((a, b) => a - b).map((length) => COMMAS.format(length)))} tokens; other lengths, ranks and settings of a recipe are for the command, which the page then names; it is part of the Python package gpufare, with which this page was written.`),
    el("p", {}, `${published.taxes} Exchange rates of ${published.exchange_rate_date || "no day"}.`),
    el("p", {}, "In the browser's console, ", el("code", {}, 'gpufare.ask({ model: "llama-3.1-8b", method: "lora", tokens: "100M" })'), " returns the ranked rows."),
    el("p", { class: "meta" }, `gpufare ${D.version}, written ${moment(D.written_ms)}, from the file published for ${published.as_of_day}, built ${moment(published.as_of_ms)}.`));
}

const moment = (ms) => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** What to do about old prices: a page that was just written has them from its file. */
function oldText(days) {
  const isOldPage = Date.now() - D.written_ms > 2 * DAY;
  return `These prices are ${ageText(days)} old: look at a provider's page before you rent. ${isOldPage ? "An old page: write a new one." : "Old prices: refresh, then write the page again."}`;
}

/** The sources that nobody asks, because of their terms. */
function notAsked() {
  const titles = rowsOf(D.sources).filter((source) => source.no_permission || source.disabled).map((source) => source.provider);
  return titles.length ? ` Without prices of ${titles.join(", ")}, which are not asked (see Sources).` : "";
}

/** Which models the page cannot plan yet. */
function missingPlans() {
  const planned = new Set(D.recipes.model).size;
  return planned < D.models.length ? ` It has plans for ${COMMAS.format(planned)} of ${COMMAS.format(D.models.length)} models; a refresh from the providers computes the others.` : "";
}

function showPublished() {
  const published = D.published;
  const days = ageDays(published.as_of_day);
  const isOld = days > 2;
  show("published", `Prices as of ${published.as_of_day} (`, isOld || days < 0 ? el("span", { class: "warn" }, `${ageText(days)}${isOld ? " ago" : ""}`) : days > 0 ? `${ageText(days)} ago` : "today",
    `): ${COMMAS.format(published.offers_ranked)} ranked offers of ${published.sources_ranked} sources.`, notAsked(), missingPlans());
  byId("old").hidden = !isOld;
  show("old", isOld ? oldText(days) : "");
  show("footer", `gpufare ${D.version}. Everything on this page is inside the file; it asks for nothing.`);
}
