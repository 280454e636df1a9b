"use strict";
// Why a GPU is not in a ranking, with the answer that comes nearest, and what would have to give for a job without one.

/** Where a recipe fits on each GPU: the fewest GPUs, or else the highest P(fits) in tenths of a percent. */
function fitsOf(recipe) {
  recipe.fits ??= new Map(D.fits.lists[D.fits.of_recipe[recipe.row]].map(([gpu, fewest, tenths]) => [D.fits.gpus[gpu], { fewest, tenths }]));
  return recipe.fits;
}

/** The settings on numbers of GPUs, machines and evidence that a plan misses. */
function planMisses(job, { gpu_count: count, node_count: nodes }, plan) {
  return [
    count > job.max_gpus && "gpus", count < (job.min_gpus ?? 1) && "min_gpus", nodes > (job.max_nodes ?? nodes) && "max_nodes",
    job.evidences !== null && !job.evidences.includes(plan.band.evidence) && "evidence",
  ].filter(Boolean);
}

/** The candidates on rentals with plans that miss the fewest settings, best first. */
function nearestOf(job, rentals) {
  const able = rentals.map((r) => [r, planOf(job.recipe, r.slot)]).filter(([r, plan]) => plan !== null && hasHostMemory(r, plan));
  const misses = able.map(([r, plan]) => ({ r, plan, missed: [...missesOf(job, r, job.price_kinds), ...planMisses(job, r, plan)] }));
  const fewest = Math.min(...misses.map(({ missed }) => missed.length));
  const nearest = misses.filter(({ missed }) => missed.length === fewest).map(({ r, plan, missed }) => {
    const c = candidateOf(job, r, plan);
    return { ...c, missed, refusal: refusalOf(job, c) };
  });
  return leastOf(nearest, by((c) => c.refusal !== null, (c) => c.total, (c) => c.hours, (c) => c.rental.offer));
}

/** The code of why a GPU of the catalogue has no row (as in why_not_for), with the nearest way if there is any. */
function reasonOf(job, gpuId) {
  const gpu = D.gpuOf.get(gpuId);
  const fit = fitsOf(job.recipe).get(gpuId);
  const isCount = (count) => count >= (job.min_gpus ?? 1) && count <= job.max_gpus;
  if (!gpu.has_full_specs) return { reason: "not_planned" };
  if (fit === undefined) return { reason: "does_not_fit" };
  if (fit.fewest === null) return { reason: "might_not_fit", fit };
  if (!D.published.planned_counts.some((count) => count >= fit.fewest && isCount(count))) return { reason: "fits_in_another_number", fit };
  if (!gpu.is_rented) return { reason: "no_price" };
  if (!isWanted(gpuId, job.constraints.gpu_id)) return { reason: "not_asked_for" };
  const rentals = D.rentals.filter((r) => r.gpu_id === gpuId);
  const nearest = nearestOf(job, rentals);
  const offered = rentals.filter((r) => !missesOf(job, r, job.price_kinds).length && r.node_count <= (job.max_nodes ?? r.node_count));
  if (!offered.length) return { reason: "not_offered_so", nearest };
  const planned = offered.map((r) => [r, planOf(job.recipe, r.slot)]).filter(([r, plan]) => plan !== null && isCount(r.gpu_count));
  if (!planned.length) return { reason: "not_rented_in_that_number", fit, counts: [...new Set(offered.map((r) => r.gpu_count))], nearest };
  const loaded = planned.filter(([r, plan]) => hasHostMemory(r, plan));
  if (!loaded.length) return { reason: "host_memory_too_small", nearest };
  if (!loaded.some(([r, plan]) => !planMisses(job, r, plan).length)) return { reason: "thin_evidence", nearest };
  return { reason: nearest.refusal ?? "too_late", nearest };
}

const SETTINGS_OF_LIMITS = [
  "kind", "max_hours", "max_usd", "country", "exclude_country", "continent", "gpus", "min_gpus", "max_nodes", "gpu", "exclude_gpu", "tier",
  "provider", "exclude_provider", "source", "exclude_source", "max_term_days", "max_age_days", "evidence",
];

/** What the value of a setting would have to be for an answer, as it is asked for. */
const NEAREST = {
  kind: (c) => c.rental.price_kind,
  max_hours: (c) => `${Math.ceil(c.hours * 100) / 100}`,
  max_usd: (c) => (Math.ceil(c.total / 100) / 100).toFixed(2),
  gpus: (c) => String(c.rental.gpu_count),
  min_gpus: (c) => String(c.rental.gpu_count),
  max_nodes: (c) => String(c.rental.node_count),
  max_term_days: (c) => String(c.rental.term_days),
  max_age_days: (c) => String(ageDays(c.rental.price_day)),
  evidence: (c) => c.plan.band.evidence,
};

/** What to ask instead to open a setting: without a limit, or of another kind. */
function opened(asked, names) {
  const open = { ...asked };
  for (const name of names) open[name] = name === "kind" ? "any,reserved" : name === "gpus" ? String(Math.max(asked.min_gpus ?? 1, ...D.published.planned_counts)) : undefined;
  return open;
}

/** The ranking of a job, empty for one that is refused or beyond the page. */
function rankedIfRight(asked) {
  try {
    return ranked(jobOf(asked));
  } catch (error) {
    if (error instanceof Refusal || error instanceof BeyondPage) return { rows: [] };
    throw error;
  }
}

/** The answer that comes nearest once some settings are open, with the values that it takes; null if there is none. */
function answerWithout(asked, names) {
  const { rows } = rankedIfRight(opened(asked, names));
  if (!rows.length) return null;
  const distance = {
    max_hours: (c) => c.hours, gpus: (c) => c.rental.gpu_count, min_gpus: (c) => -c.rental.gpu_count, max_nodes: (c) => c.rental.node_count,
    max_age_days: (c) => ageDays(c.rental.price_day), max_term_days: (c) => c.rental.term_days ?? 0,
  }[names[0]] ?? ((c) => c.total);
  const row = leastOf(rows, by(distance, (c) => c.total, (c) => c.rank));
  const changes = Object.fromEntries(names.map((name) => [name, NEAREST[name]?.(row)]));
  return { changes, row };
}

/** The changes, one setting each or else two, that give an answer to a job without one: the cheapest of each. */
function waysOut(asked) {
  const limits = SETTINGS_OF_LIMITS.filter((name) => name === "kind" || name === "gpus" || asked[name] !== undefined);
  const alone = limits.map((name) => answerWithout(asked, [name])).filter(Boolean);
  const recipes = otherRecipes(asked);
  const fewer = tokensWithin(asked);
  if (alone.length || recipes.length || fewer) return [...alone.sort(by(({ row }) => row.total)), ...recipes, ...(fewer ? [fewer] : [])];
  const pairs = limits.flatMap((one, place) => limits.slice(place + 1).map((other) => answerWithout(asked, [one, other])));
  return pairs.filter(Boolean).sort(by(({ row }) => row.total));
}

/** The most tokens, to two digits, that a job with a budget or deadline can have; null if not even a thousandth of them. */
function tokensWithin(asked) {
  if (asked.max_usd === undefined && asked.max_hours === undefined) return null;
  const job = jobOf(asked);
  const epochs = job.epochs;
  const rowsFor = (tokens) => ranked(jobOf({ ...asked, examples: undefined, tokens_per_example: undefined, tokens })).rows;
  const rounded2 = (tokens) => Number(Number(tokens).toPrecision(2));
  let [low, high] = [job.tokens / epochs / 1000, job.tokens / epochs];
  if (!rowsFor(low).length) return null;
  while (high / low > 1.02) {
    const middle = Math.sqrt(low * high);
    if (rowsFor(middle).length) low = middle; else high = middle;
  }
  let tokens = rounded2(low);
  if (!rowsFor(tokens).length) tokens = rounded2(tokens * 0.98);
  const [row] = rowsFor(tokens);
  return row ? { changes: { tokens: tokensText(tokens), examples: undefined, tokens_per_example: undefined }, row } : null;
}

/** Trainings that need less memory: adapters, quantized weights, shorter sequences. */
function otherRecipes(asked) {
  const job = jobOf(asked);
  const lighter = [...D.recipeOf.values()].filter((r) => r.model === job.model && (
    (r.method === job.method && r.lora_rank === job.lora_rank && r.seq_len < job.seq_len)
    || (r.seq_len === job.seq_len && ((job.method === "full" && r.method !== "full" && r.method !== "pretrain") || (job.method === "lora" && r.method === "qlora")))));
  return lighter.map((r) => {
    const changes = r.method === job.method ? { seq_len: String(r.seq_len) } : { method: r.method, lora_rank: r.lora_rank };
    const { rows } = ranked(jobOf({ ...asked, ...changes }));
    return rows.length ? { changes, row: rows[0] } : null;
  }).filter(Boolean);
}
