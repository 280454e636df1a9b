"use strict";
// The answer to the job: the picks, the ranking, and why other GPUs are not in it.

/** Where one rents, and where the price was read. */
function linksOf(rental) {
  const source = D.sourceOf.get(rental.source);
  const rent = source && link(source.homepage, `Rent at ${rental.provider}`);
  return el("p", { class: "links" }, rent || `Rent at ${rental.provider}`, " \u00b7 ", link(rental.source_url, "price source"), `, seen ${rental.price_day} `, agoOf(rental.price_day));
}

function agoOf(day) {
  const days = ageDays(day);
  const text = days > 0 ? `(${ageText(days)} ago)` : `(${ageText(days)})`;
  return days > 2 || days < 0 ? el("span", { class: "warn" }, text) : text;
}

/** The age of a price, marked where it is old. */
function ageOf(day) {
  const days = ageDays(day);
  return days > 2 || days < 0 ? el("span", { class: "warn" }, `${ageText(days)}${days > 2 ? ", old" : ""}`) : ageText(days);
}

const hourly = (c) => `${rate(c.price.hourlyUsd)} per hour${c.rental.gpus_billed > c.rental.gpu_count ? ` for ${c.rental.gpus_billed} GPUs` : ""}`;

/** A pick as a card. `first` is the cheapest pick, with which the others are compared. */
function cardOf(job, found, names, c, first) {
  const title = capital(names.map((name) => D.picks[name]).join(" and "));
  const cautions = cautionTexts(job, found, c);
  const against = c === first ? "" : `${differenceText(c.total - first.total)} ${c.total >= first.total ? "more" : "less"}, ${timeAgainst(first, c)}`;
  const rankOne = c === first && names.includes("cheapest") && firstByCostText(job, found, c);
  return el("article", { class: classes("card", c === first && "first") },
    el("h3", {}, title),
    el("p", {}, el("span", { class: "money" }, money(c.total)), " ", el("span", { class: "between" }, `${between(fastCost(job, c).total, c.slow.total)} in eight of ten cases`)),
    el("p", { class: "what" }, el("strong", {}, machineText(c.rental)), ` at ${c.rental.provider}`),
    el("p", {}, [placeText(c.rental), kindText(c.rental)].join(" \u00b7 ")),
    el("p", {}, el("strong", {}, `${numberText(c.hours)} hours`), ` at ${hourly(c)}`, against && el("span", { class: "tag" }, ` (${against})`)),
    el("p", { class: "meta" }, `Fits with ${percent(c.plan.fit)} \u00b7 ${fixed(c.plan.tokensPerSecond, 0)} tokens/s, ${c.plan.band.evidence} \u00b7 ${settingText(c.plan.setting)}`),
    names.includes("safest") && el("p", {}, safetyText(job, c)),
    rankOne && el("p", {}, rankOne),
    cautions.length ? el("p", { class: "warn" }, `Careful: ${cautions.join("; ")}.`) : null,
    el("details", {}, el("summary", {}, `How ${money(c.total)} comes about`), el("dl", { class: "parts" }, partsOf(c).map(([name, usd, text]) => [el("dt", {}, `${capital(name)} ${money(usd)}`), el("dd", {}, text)]))),
    linksOf(c.rental));
}

/** What makes a row the safest (safety_text of words.py). */
function safetyText(job, c) {
  const stock = c.rental.available === true ? "in stock" : "stock not stated";
  return `A company's own machine, ${stock}, ${numberText(c.slow.hours)} hours at the slow end${job.max_hours === Infinity ? "" : `, of ${COMMAS.format(job.max_hours)} allowed`}.`;
}

const settingText = ({ micro_batch: batch, checkpointing, sharding }) => [`micro-batch ${batch}`, `checkpointing ${checkpointing}`, sharding !== "none" && sharding].filter(Boolean).join(", ");

/** The picks in their order, each row once with all of its names. */
function picksOf({ rows }) {
  const each = Object.keys(D.picks).map((name) => rows.find((row) => row.pick.includes(name))).filter(Boolean);
  return [...new Set(each)].map((row) => [row.pick, row]);
}

/** Buttons that copy the command and the address. */
function sharesOf(asked) {
  const copied = (label, text) => {
    const button = el("button", { type: "button" }, label);
    button.addEventListener("click", () => navigator.clipboard?.writeText(text()).then(() => { button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 2000); }, () => { button.textContent = "Select and copy it"; }));
    return navigator.clipboard ? button : null;
  };
  const command = commandOf(asked);
  return el("div", { class: "command" }, el("code", {}, command), copied("Copy command", () => command), copied("Copy link", () => location.href));
}

function showAnswer(asked, job, found) {
  show("job-text", `${jobText(asked, job)} Limits: ${limitsText(asked)}.`);
  if (!found.rows.length) {
    showNothing(asked);
    return;
  }
  const picks = picksOf(found);
  const first = picks[0][1];
  const notes = [];
  if (!found.meetsDeadline) notes.push(`Nothing finishes within ${COMMAS.format(job.max_hours)} hours: these are the fastest answer and those that take only a little longer.`);
  if (found.safest === null) notes.push(`Safest: none${asked.max_usd === undefined ? "" : " within the budget"}; no company's own machine is sure to fit, to be there and to be in time.`);
  if (found.longer) notes.push(`If you can wait ${numberText(found.longer.hours)} hours, ${numberText(found.longer.slow.hours)} at the slow end, it costs ${money(found.longer.total)}: ${wayText(found.longer)}.`);
  const late = found.rows.filter((row) => row.isLateWhenSlow && row.total < first.total);
  if (late.length) {
    const ways = late.length === 1 ? "A cheaper way is" : `${COMMAS.format(late.length)} cheaper ways are`;
    notes.push(`${ways} ranked last, because at the slow end of the band the job would take longer than ${COMMAS.format(job.max_hours)} hours: ${wayText(late[0])} for ${money(late[0].total)}, ${numberText(late[0].slow.hours)} hours at the slow end.`);
  }
  const skipped = [unplacedText(asked, job), sanctionedText(job)].filter(Boolean).join(" ");
  show("answer-body", el("div", { class: "cards" }, picks.map(([names, c]) => cardOf(job, found, names, c, first))), notes.map((text) => el("p", { class: "note" }, text)), skipped && el("p", { class: "meta" }, skipped), sharesOf(asked));
}

/** The countries under sanctions whose offers are skipped, because the job does not name them. */
function sanctionedText(job) {
  const left = [...new Set(D.rentals.filter((r) => r.renter_notice === "sanctions" && !job.constraints.country.wanted).map((r) => countryName(r.country)))];
  return left.length ? `Offers in ${left.join(", ")}, under sanctions, are skipped unless the job names the country.` : "";
}

/** How many offers the choice of a place skips, because theirs is not stated. */
function unplacedText(asked, job) {
  const asksCountry = asked.country !== undefined || asked.exclude_country !== undefined;
  if (!asksCountry && asked.continent === undefined) return "";
  const column = asksCountry ? "country" : "continent";
  const count = rowsOf(D.unplaced).filter(({ price_kind: kind }) => job.price_kinds.includes(kind)).reduce((sum, row) => sum + row[`no_${column}`], 0);
  return count ? `${plural(count, "offer")} whose ${column} is not stated ${count === 1 ? "is" : "are"} skipped.` : "";
}

/** The providers that a job asks for and this page has no prices of, with what their sources say. */
function missingProviders(asked) {
  const wanted = asked.provider === undefined ? [] : namesOf(asked, "provider");
  return wanted.filter((name) => !D.rentals.some((r) => r.provider === name)).map((name) => {
    const source = [...D.sourceOf.values()].find((each) => each.provider === name);
    return el("p", { class: "note" }, `This page has no prices of ${name}${source ? `: ${sourceState(source).text}` : ""}.`);
  });
}

/** What the job costs at the kinds of price that it does not ask for, each a button that asks for it. */
function showOtherKinds(asked, job, found) {
  const first = found.rows.length ? picksOf(found)[0][1] : null;
  const kinds = first === null ? [] : KINDS.slice(0, 3).filter((kind) => !job.price_kinds.includes(kind));
  const lines = kinds.map((kind) => {
    const other = ranked(jobOf({ ...asked, kind }));
    if (!other.rows.length) return null;
    const best = picksOf(other)[0][1];
    const same = other.rows.find(({ rental: r }) => r.slot === first.rental.slot);
    const share = Math.round(Math.abs(best.total / first.total - 1) * 100);
    const button = el("button", { type: "button" }, capital(kindWords(kind)));
    button.addEventListener("click", () => ask({ ...asked, kind }));
    const onSame = same && same !== best ? `; on the same cards ${money(same.total)} at ${same.rental.provider}` : "";
    return el("li", {}, button, ` ${money(best.total)}, ${share}% ${best.total < first.total ? "less" : "more"}, ${numberText(best.hours)} hours: ${wayText(best)}${onSame}`);
  }).filter(Boolean);
  byId("other-kinds").hidden = !lines.length;
  show("other-kinds-body", el("ul", { class: "ways" }, lines));
}

/** What a job without an answer could give up, each a button that asks for it. */
function showNothing(asked) {
  const ways = waysOut(asked).slice(0, 6).map(({ changes, row }) => {
    const button = el("button", { type: "button" }, capital(changeText(asked, changes)));
    button.addEventListener("click", () => ask({ ...asked, ...changes }));
    return el("li", {}, button, ` ${money(row.total)} in ${numberText(row.hours)} hours: ${wayText(row)}`);
  });
  show("answer-body", el("div", { class: "card" },
    el("p", {}, el("strong", {}, `Nothing that is rented out runs this job within these limits (${limitsText(asked)}).`)),
    missingProviders(asked),
    ways.length ? [el("p", {}, "There is an answer with"), el("ul", { class: "ways" }, ways)] : el("p", {}, "No single change helps; the command looks further."), sharesOf(asked)));
}

function barOf(row, most) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  const band = el("i");
  const mark = el("b");
  const at = (usd) => `${Math.min(100, (100 * usd) / most)}%`;
  band.style.left = at(row.fast.total);
  band.style.width = `${Math.max(0.8, Math.min(100, (100 * row.slow.total) / most) - (100 * row.fast.total) / most)}%`;
  mark.style.left = `calc(${at(row.total)} - 1px)`;
  bar.append(band, mark, row.slow.total > most ? el("span", { class: "beyond" }, "\u203a") : "");
  return bar;
}

/** The columns of the ranking, named as those of cheapest_for. `most`: the dearest end of a band among the first rows. */
function rankingColumns(job, most) {
  const offer = ({ rental: r }) => ({ provider: r.provider, country: r.country, price_kind: r.price_kind, term_days: r.term_days, tier_class: r.tier_class });
  return [
    { name: "rank", title: "Rank", n: true, value: (c) => c.rank },
    { name: "gpu", title: "GPU", head: true, value: (c) => machineText(c.rental), csv: ({ rental: r }) => ({ gpu_id: r.gpu_id, gpu_count: r.gpu_count, node_count: r.node_count }) },
    { name: "total_usd", title: "Total, USD", n: true, value: (c) => c.total / 10000, show: (c) => money(c.total) },
    {
      name: "band", title: "p10 to p90", value: (c) => fastCost(job, c).total, show: (c) => [between(fastCost(job, c).total, c.slow.total), barOf(c, most)],
      csv: (c) => ({ total_usd_low: fastCost(job, c).total / 10000, total_usd_high: c.slow.total / 10000 }),
    },
    { name: "hours", title: "Hours", n: true, value: (c) => c.hours, show: (c) => numberText(c.hours) },
    {
      name: "provider", title: "Provider", value: (c) => c.rental.provider, csv: offer,
      show: ({ rental: r }) => [link(D.sourceOf.get(r.source)?.homepage, r.provider), " ", el("span", { class: "tag" }, [r.country ?? "?", kindText(r)].join(" \u00b7 "))],
    },
    { name: "country", title: "Country", hidden: true, value: (c) => c.rental.country, show: (c) => c.rental.country ?? "?", text: (c) => `${c.rental.country ?? ""} ${placeText(c.rental)}` },
    { name: "price_kind", title: "Price, owner", hidden: true, value: (c) => kindText(c.rental), csv: ({ rental: r }) => ({ price_kind: r.price_kind, term_days: r.term_days, tier_class: r.tier_class }) },
    { name: "usd_per_hour", title: "USD/hour", n: true, value: (c) => c.price.hourlyUsd, show: (c) => [priceText(c.price.hourlyUsd - c.rental.host8 / 1e8), c.rental.host8 ? el("span", { class: "tag" }, hostText(c.rental.host8 / 1e8)) : ""] },
    { name: "fits_percent", title: "P(fits)", n: true, value: (c) => c.plan.fit / 10, show: (c) => percent(c.plan.fit) },
    { name: "evidence", title: "Evidence", value: (c) => c.plan.band.evidence },
    { name: "price_day", title: "Price's age", n: true, value: (c) => ageDays(c.rental.price_day), show: (c) => ageOf(c.rental.price_day), csv: (c) => ({ price_day: c.rental.price_day }) },
    { name: "tokens_per_second", title: "Tokens/s", n: true, hidden: true, value: (c) => c.plan.tokensPerSecond, show: (c) => fixed(c.plan.tokensPerSecond, 0) },
    { name: "hours_high", title: "Hours, slow end", n: true, hidden: true, value: (c) => c.slow.hours, show: (c) => numberText(c.slow.hours) },
    { name: "region", title: "Region", hidden: true, value: (c) => c.rental.region },
    { name: "instance_type", title: "Machine", hidden: true, value: (c) => c.rental.instance_type },
    { name: "available", title: "Stock", hidden: true, value: (c) => ({ true: "in stock", false: "sold out" })[c.rental.available] ?? "", csv: (c) => ({ available: c.rental.available }) },
    { name: "gpus_billed", title: "GPUs paid", n: true, hidden: true, value: (c) => c.rental.gpus_billed },
    { name: "settings", title: "Settings", hidden: true, value: (c) => settingText(c.plan.setting), csv: (c) => c.plan.setting },
    { name: "source", title: "Price source", hidden: true, value: (c) => c.rental.source, show: (c) => link(c.rental.source_url, c.rental.source), csv: ({ rental: r }) => ({ source: r.source, source_url: r.source_url }) },
  ];
}

function showRanking(asked, job, found) {
  if (!found.rows.length) {
    byId("ranking-body").table = null;
    show("ranking-body", el("p", {}, "There is nothing to rank."));
    return;
  }
  for (const row of found.rows.slice(0, SHORT)) fastCost(job, row);
  const most = Math.max(...found.rows.slice(0, SHORT).map((row) => row.slow.total));
  const caption = `${plural(found.rows.length, "way")} (${limitsText(asked)}). USD for the finished job, without taxes; the band covers eight of ten cases.`;
  fillTable(byId("ranking-body"), "ranking", { caption, columns: rankingColumns(job, most), rows: found.rows, rowClass: (c) => (c.pick.length ? "first" : null) }, writeState);
}

function showWhyNot(asked, job, found) {
  const best = new Map();
  for (const row of found.rows) if (!best.has(row.rental.gpu_id)) best.set(row.rental.gpu_id, row);
  const late = new Map();
  for (const c of found.asked) {
    if (c.hours > found.mostHours && !(late.get(c.rental.gpu_id)?.total <= c.total)) late.set(c.rental.gpu_id, c);
  }
  const first = found.rows[0];
  const rows = D.gpus.gpu_id.map((gpu) => {
    const row = best.get(gpu);
    if (row) {
      const times = row.total / first.total;
      const slower = late.get(gpu);
      const cheaper = slower && slower.total < row.total ? `; ${slower.rental.gpu_count} at ${slower.rental.provider} would cost ${money(slower.total)}, but take ${numberText(slower.hours)} hours` : "";
      return { gpu, rank: row.rank, c: row, why: (row === first ? "rank 1" : `ranked: ${fixed(times, times < 10 ? 2 : 0)} times rank 1's cost with ${plural(row.rental.gpu_count, "GPU")} at ${row.rental.provider}`) + cheaper };
    }
    const reason = reasonOf(job, gpu);
    return { gpu, rank: null, c: reason.nearest ?? null, why: reasonText(asked, job, reason), reason: reason.reason };
  });
  rows.sort(by((row) => row.rank ?? Infinity, (row) => row.c?.total ?? Infinity));
  const columns = [
    { name: "gpu", title: "GPU", head: true, value: (row) => gpuName(row.gpu), text: (row) => `${gpuName(row.gpu)} ${row.gpu}`, show: (row) => el("a", { href: addressOf({ view: "prices", card: row.gpu }) }, gpuName(row.gpu)) },
    { name: "rank", title: "Best rank", n: true, value: (row) => row.rank },
    { name: "total_usd", title: "Total, USD", n: true, value: (row) => (row.c ? row.c.total / 10000 : null), show: (row) => (row.c ? money(row.c.total) : "") },
    { name: "hours", title: "Hours", n: true, value: (row) => row.c?.hours ?? null, show: (row) => (row.c ? numberText(row.c.hours) : "") },
    { name: "why", title: "Why", long: true, value: (row) => row.why },
    { name: "compare", title: "Compare", value: () => "", csv: () => ({}), show: (row) => (first && row.gpu !== first.rental.gpu_id ? el("a", { href: addressOf({ view: "prices", card: row.gpu, other: first.rental.gpu_id }) }, `with ${gpuName(first.rental.gpu_id)}`) : "") },
  ];
  const caption = `${plural(best.size, "GPU")} ranked, ${rows.length - best.size} not; dollars and hours of those not ranked are of the nearest way.`;
  fillTable(byId("why-not-body"), "why-not", { caption, columns, rows }, writeState);
}
