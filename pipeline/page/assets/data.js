"use strict";
// The facts of the page, and how an answer is looked up in them. Nothing is computed but sums of differences.

let D = null;

async function unpack() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack the data: it is older than 2023");
  const bytes = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  D = JSON.parse(await new Response(stream).text());
  index();
}

/** The place at which each part begins, from how long each is. */
function starts(counts) {
  const found = [0];
  for (const count of counts) found.push(found[found.length - 1] + count);
  return found;
}

/** Add up differences within each part. */
function summed(differences, begin) {
  const sums = new Float64Array(differences.length);
  for (let part = 0; part + 1 < begin.length; part += 1) {
    let sum = 0;
    for (let place = begin[part]; place < begin[part + 1]; place += 1) sums[place] = sum += differences[place];
  }
  return sums;
}

function index() {
  const { ways, why_not: whyNot, plans, notes } = D.answers;
  D.wayStarts = starts(ways.count);
  D.wayTotals = summed(ways.total, D.wayStarts);
  D.whyStarts = starts(whyNot.count);
  D.whyTotals = summed(whyNot.total, D.whyStarts);
  D.whyRanks = summed(whyNot.rank, D.whyStarts);
  D.planStarts = starts(plans.count);
  D.notes = new Map(notes.map(([variant, kind, job, inTime, wait]) => [`${variant} ${kind} ${job}`, { inTime, wait }]));
  D.gpuNumber = new Map(D.gpus.gpu_id.map((id, number) => [id, number]));
  D.rented = D.gpus.is_rented.filter(Boolean).length;
  D.jobNumber = new Map(D.workloads.workload.map((id, number) => [id, number]));
  D.plansOf = new Map();
}

/** A row of columns, as an object. */
function rowOf(columns, number) {
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[number]]));
}

const rowsOf = (columns) => (Object.values(columns)[0] || []).map((_, number) => rowOf(columns, number));

const numberOf = (choices, name) => Math.max(0, choices.findIndex((choice) => choice.name === name));

function gpuName(id) {
  const number = D.gpuNumber.get(id);
  return number === undefined ? id : D.gpus.name[number];
}

function machineText([gpu, count, nodes]) {
  const machines = nodes > 1 ? ` on ${nodes} machines` : "";
  return `${count > 1 ? `${count} \u00d7 ` : ""}${gpuName(gpu)}${machines}`;
}

/** What the planner says of a job on a machine; null where no answer has it. */
function planOf(job, machine) {
  const { plans } = D.answers;
  const recipe = plans.recipe_of[job];
  if (recipe < 0) return null;
  if (!D.plansOf.has(recipe)) {
    const found = new Map();
    for (let place = D.planStarts[recipe]; place < D.planStarts[recipe + 1]; place += 1) found.set(plans.machine[place], place);
    D.plansOf.set(recipe, found);
  }
  const place = D.plansOf.get(recipe).get(machine);
  if (place === undefined) return null;
  return {
    fit: plans.fit[place], evidence: plans.evidences[plans.evidence[place]], run: plans.runs[plans.run[place]],
    speed: plans.speed[place], needed: plans.needed[place],
  };
}

/** The numbers of the choices: {job, kind, place, tier}. */
function chosen(state) {
  const { kinds, places, tiers } = D.answers;
  return {
    job: D.jobNumber.get(state.job), kind: numberOf(kinds, state.kind),
    place: numberOf(places, state.place), tier: numberOf(tiers, state.tier),
  };
}

/** The ranked ways of a choice, and what is to be said of them. */
function ranking({ job, kind, place, tier }) {
  const { ways, lists, tiers } = D.answers;
  const variant = place * tiers.length + tier;
  const of = (kept) => (kept[variant][kind][job] === 0 ? kept[0][kind][job] : kept[variant][kind][job]);
  const wayOf = (way, position) => {
    const at = D.wayStarts[job] + way;
    const machine = D.machines[ways.machine[at]];
    return {
      rank: position + 1, way, machine, total: D.wayTotals[at], low: ways.low[at], high: ways.high[at], hours: ways.hours[at],
      offer: rowOf(D.offers, ways.offer[at]), plan: planOf(job, ways.machine[at]),
    };
  };
  const rows = of(lists).map(wayOf);
  const picks = of(D.answers.picks).map(([way, ...cautions]) => (way === undefined ? null : { ...wayOf(way, 0), cautions: cautions.map((text) => D.answers.texts[text]) }));
  return { rows, picks, note: D.notes.get(`${variant} ${kind} ${job}`) || { inTime: 1, wait: null } };
}

/** Each GPU's best answer by rank, and the reason of each GPU that has none; without place and tier. */
function whyNot({ job, kind }) {
  const found = D.answers.why_not;
  const list = kind * D.workloads.workload.length + job;
  const ranked = [];
  for (let at = D.whyStarts[list]; at < D.whyStarts[list + 1]; at += 1) {
    ranked.push({ machine: D.machines[found.machine[at]], number: found.machine[at], rank: D.whyRanks[at], total: D.whyTotals[at] });
  }
  const codes = [...found.reasons.lists[found.reasons.which[list]], ...found.reasons_of_others.lists[found.reasons_of_others.which[job]]];
  const others = codes.map((code, gpu) => ({ gpu: D.gpus.gpu_id[gpu], code })).filter(({ code }) => code >= 0).map(({ gpu, code }) => {
    const [reason, detail] = D.answers.texts[code];
    return { gpu, reason, detail };
  });
  return { ranked, others };
}
