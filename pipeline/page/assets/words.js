"use strict";
// Sentences about answers. Their facts are numbers and codes of the engine.

function gpuName(id) {
  return D.gpuOf.get(id)?.name ?? id;
}

function machineText({ gpu_id: gpu, gpu_count: count, node_count: nodes, gpus_billed: paid }) {
  return `${paid > count ? `${count} of ${paid}` : count} \u00d7 ${gpuName(gpu)}${nodes > 1 ? ` on ${nodes} machines` : ""}`;
}

const countryNames = typeof Intl.DisplayNames === "undefined" ? null : new Intl.DisplayNames("en", { type: "region" });

function countryName(code) {
  try { return countryNames?.of(code) ?? code; } catch { return code; }
}

function placeText(rental) {
  return rental.country ? countryName(rental.country) : "country not stated";
}

const OWNERS = { community: "private owner", marketplace: "private owner", resold: "resold" };

function kindText(rental) {
  const term = rental.price_kind === "reserved" && rental.term_days ? ` for ${rental.term_days} days` : "";
  return [kindWords(rental.price_kind) + term, OWNERS[rental.tier_class]].filter(Boolean).join(", ");
}

const wayText = (c) => `${machineText(c.rental)} at ${c.rental.provider} (${kindText(c.rental)})`;

/** The least P(fits) of a plan that ranks, as a share. */
const minFit = () => Number(D.settingOf.get("min_fit_probability").default_value);

const percentOf = (share) => `${Math.round(100 * share)}%`;

/** What to be careful about with a row, in words. */
function cautionTexts(job, found, c) {
  const facts = {
    hours: numberText(c.hours), hours_high: numberText(c.slow.hours), max_hours: COMMAS.format(job.max_hours), total_usd_high: dollars(c.slow.total),
    on_demand_usd: c.onDemand === null ? "" : dollars(c.onDemand), fit: percent(c.plan.fit), price_day: c.rental.price_day,
    interruptions: fixed(c.cost.interruptions, 0), node_count: String(c.rental.node_count),
    safest: found.safest === null ? "" : `, or take the safest for ${money(found.safest.total)}`,
  };
  return cautionCodes(job, c).map((code) => D.cautions[code].replace(/\{(\w+)\}/g, (_, name) => facts[name]));
}

/** How much time a row takes less or more than another one. */
function timeAgainst(other, c) {
  const saved = other.hours - c.hours;
  return Math.abs(saved) < 0.005 ? "in the same time" : `${numberText(Math.abs(saved))} hours ${saved > 0 ? "less" : "longer"}`;
}

/** A difference in dollars; less than a cent is said so. */
const differenceText = (hundredths) => (Math.abs(hundredths) < 100 ? "under a cent" : `$${fixed(Math.abs(hundredths) / 10000, 2)}`);

/** Which ranks cost less than the cheapest pick, what rank 1 would save, and what speaks against it (as in words.py). */
function firstByCostText(job, found, cheapest) {
  const first = found.rows[0];
  if (job.objective !== "cost" || cheapest.total <= first.total) return "";
  const known = cautionTexts(job, found, cheapest);
  const against = cautionTexts(job, { ...found, safest: null }, first).filter((text) => !known.includes(text));
  const cheaper = found.rows.findIndex((row) => row.total >= cheapest.total);
  const others = cheaper > 1 ? `Ranks 1 to ${cheaper} cost less. ` : "";
  return `${others}Rank 1, ${machineText(first.rental)} at ${first.rental.provider}, costs ${differenceText(cheapest.total - first.total)} less, ${timeAgainst(cheapest, first)}${against.length ? `, but ${against.join(" and ")}` : ""}.`;
}

/** The parts of a total: [name, hundredths of a cent, how it comes about]. */
function partsOf({ rental, cost, price }) {
  const isReserved = rental.price_kind === "reserved";
  const used = cost.setupHours + cost.trainHours + cost.evaluationHours;
  const hours = isReserved ? `hours of whole terms of ${rental.term_days} days` : `billed hours at ${rate(price.hourlyUsd)}: set-up ${numberText(cost.setupHours)}, training ${numberText(cost.trainHours)}, evaluation ${numberText(cost.evaluationHours)}`;
  const unused = !isReserved && cost.billed - used >= 0.005 ? `, and ${numberText(cost.billed - used)} unused: the minimum, or a started billing step` : "";
  return [
    ["machine", cost.machine, `${numberText(cost.billed)} ${hours}${unused}`],
    ["interruptions", cost.interruption, `${fixed(cost.interruptions, 2)} expected, ${numberText(cost.interruptionHours)} paid hours`],
    ["failures", cost.failure, `${fixed(cost.failures, 3)} expected, ${numberText(cost.failureHours)} paid hours`],
    ["disk", cost.disks, cost.disks ? `${fixed(cost.storage, 0)} GB while the machine runs` : "not charged"],
    ["data", cost.data, cost.data ? "result out; image, data set and model in, where charged" : "downloads and uploads, not charged"],
  ];
}

/** The names of the settings that a candidate misses, with what was asked for. */
function missedText(asked, missed) {
  const named = missed.map((name) => (name === "sanctions" ? "countries without sanctions" : name === "kind" ? `${kindWords(asked.kind ?? "on_demand")} prices` : `${optionOf(name)} ${asked[name] ?? ""}`.trim()));
  return named.join(" and ");
}

/** Why a GPU has no row, in words; `nearest` is told beside it. */
function reasonText(asked, job, { reason, fit, counts, nearest }) {
  return {
    not_planned: () => "its specifications are incomplete",
    does_not_fit: () => "too little memory, or no support, in every number that is planned",
    might_not_fit: () => `fits with a probability of at most ${percent(fit.tenths)}, and ${percentOf(minFit())} is asked for`,
    no_price: () => "no source has a ranked price for it",
    not_asked_for: () => "your job excludes it",
    fits_in_another_number: () => `fits on ${plural(fit.fewest, "GPU")} or more, but the job allows ${job.min_gpus ? `${job.min_gpus} to ` : "at most "}${job.max_gpus}`,
    not_rented_in_that_number: () => `fits on ${plural(fit.fewest, "GPU")} or more, but within these limits it is rented out only with ${choiceOf(counts.map(String))}, or with too slow a network`,
    host_memory_too_small: () => "its machines have too little host memory to load the model",
    thin_evidence: () => "its speed has weaker evidence than the job asks for",
    not_offered_so: () => (nearest ? `not with ${missedText(asked, nearest.missed)}: the nearest is ${wayText(nearest)}, ${placeText(nearest.rental)}` : "is not rented out so"),
    too_expensive: () => `costs more than the budget: ${wayText(nearest)}`,
    too_late: () => `takes longer than ${COMMAS.format(job.max_hours)} hours: ${wayText(nearest)}`,
    stops_before_the_end: () => `stops after ${COMMAS.format(nearest.rental.max_run_hours)} hours, before the job is done: ${wayText(nearest)}`,
    mostly_unused: () => `uses ${share(nearest.cost.shareUsed)} of the GPU-hours paid for: ${wayText(nearest)}`,
    interrupted_too_often: () => `would be taken away ${fixed(nearest.cost.interruptions, 0)} times: ${wayText(nearest)}`,
  }[reason]();
}

/** The job in a sentence: what is trained, and within which limits. */
function jobText(asked, job) {
  const model = D.modelOf.get(job.model);
  const how = { full: "full fine-tuning", lora: `LoRA of rank ${job.lora_rank}`, qlora: `QLoRA of rank ${job.lora_rank}`, pretrain: "training from scratch" }[job.method];
  const deadline = job.deadline_is_strict ? `within ${COMMAS.format(job.max_hours)} hours` : `within ${COMMAS.format(job.max_hours)} hours where possible`;
  const isOver = model.max_context !== null && job.seq_len > model.max_context ? ` Its context is ${COMMAS.format(model.max_context)} tokens.` : "";
  const epochs = job.epochs === 1 ? "" : ` in ${COMMAS.format(job.epochs)} epochs`;
  return `${model.title}, ${how}: ${tokensText(job.tokens)} tokens${epochs}, packed in sequences of ${COMMAS.format(job.seq_len)}, on at most ${plural(job.max_gpus, "GPU")}, ${deadline}.${isOver}`;
}

/** The limits of a job that are not the defaults, in a few words. */
function limitsText(asked) {
  const parts = [kindWords(asked.kind ?? "on_demand")];
  for (const name of SETTINGS_OF_LIMITS) if (name !== "kind" && asked[name] !== undefined) parts.push(`${words(name)} ${asked[name]}`);
  return parts.join(", ");
}

/** What would have to change, in words. */
function changeText(asked, changes) {
  if (changes.tokens !== undefined) return `${changes.tokens} tokens per epoch, the most within these limits`;
  return Object.entries(changes).filter(([name]) => name !== "lora_rank").map(([name, value]) => {
    const before = asked[name] ?? D.settingOf.get(name).default_value;
    return value === undefined ? `without ${optionOf(name)} ${before}` : `${optionOf(name)} ${value} instead of ${before}`;
  }).join(" and ");
}
