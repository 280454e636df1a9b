"use strict";
// A job priced and ranked as sql/jobs/20_cost.sql, 30_candidates.sql and 40_ranking.sql do it, from the plans and
// rentals of the page. Amounts of money are whole hundredths of a cent.

const GB_PER_GIB = 1.073741824;
const HUNDREDTHS_OF_CENT = 1e4;

/** US dollars as hundredths of a cent, half away from zero, as DuckDB casts to DECIMAL(18, 4). */
const money4 = (usd) => Math.round(usd * HUNDREDTHS_OF_CENT);

const rounded = (number, digits) => Math.round(number * 10 ** digits) / 10 ** digits;

/** Seconds of work between checkpoints that lose least (Daly 2006, eq. 37). */
function dalyInterval(checkpoint, between) {
  if (checkpoint >= 2 * between) return between;
  const share = checkpoint / (2 * between);
  return Math.sqrt(2 * checkpoint * between) * (1 + Math.sqrt(share) / 3 + share / 9) - checkpoint;
}

const bestInterval = (work, checkpoint, stops) => Math.min(dalyInterval(checkpoint, 1 / stops), work);

/** Expected seconds of a run that is stopped at random, `stops` times a second (Daly 2006, eq. 20). */
function runSeconds(work, interval, checkpoint, restart, stops) {
  if (stops === 0) return work;
  const between = 1 / stops;
  return between * Math.exp(restart / between) * (Math.exp((interval + checkpoint) / between) - 1) * work / interval;
}

/** cost_terms of one case: a rental (r), a plan (p), a job and the price of this job's bid, at one speed. */
function costOf(job, r, p, price, tokensPerSecond) {
  const inbound = r.image_gb + job.tokens / job.epochs * r.dataset_bytes_per_token / 1e9 + p.download_gib * GB_PER_GIB;
  const state = p.state_gib * GB_PER_GIB;
  const result = p.result_gib * GB_PER_GIB;
  const train = job.tokens / tokensPerSecond;
  const download = inbound / r.download_gb_per_second;
  const work = train + train * r.evaluation_share;
  const loading = state / r.checkpoint_gb_per_second;
  const checkpoint = r.checkpoint_pause_seconds + state / r.checkpoint_gb_per_second;
  const disk = inbound + r.checkpoints_kept * state + result;
  // The job stops as soon as one of its machines stops.
  const failing = r.hours_between_failures === null ? 0 : r.node_count / (r.hours_between_failures * 3600);
  const reclaims = price.hoursBetweenInterruptions === null ? 0 : r.node_count / (price.hoursBetweenInterruptions * 3600);

  // A local disk is lost with its machine; a disk that outlives its machine saves the next download.
  const setup = r.setup_seconds + download;
  const isLocal = r.local_disk_gb >= disk;
  const downloadsPerFailure = r.persistent_disk && r.disk_outlives_host && !isLocal ? 0 : 1;
  const downloadsPerReclaim = r.persistent_disk && !isLocal ? 0 : 1;

  // If a notice is long enough for a checkpoint, no work is lost; other reclaims lose work, as failures do.
  const failureRestart = r.setup_seconds + downloadsPerFailure * download + loading;
  const reclaimRestart = r.setup_seconds + downloadsPerReclaim * download + loading;
  const isNoticed = r.notice_seconds >= checkpoint;
  const noticed = isNoticed ? reclaims : 0;
  const sudden = failing + (isNoticed ? 0 : reclaims);
  const failingSeconds = runSeconds(work, bestInterval(work, checkpoint, failing), checkpoint, failureRestart, failing);
  const stopped = noticed === reclaims ? failingSeconds : runSeconds(
    work, bestInterval(work, checkpoint, sudden), checkpoint, (failing * failureRestart + reclaims * reclaimRestart) / sudden, sudden);
  const running = stopped * Math.exp(noticed * (checkpoint + reclaimRestart));
  const failures = running * failing;
  const interruptions = running * reclaims;

  // A disk included in the price is free but is lost with its machine: checkpoints need a paid disk.
  const storage = !isLocal ? disk : failing + reclaims > 0 ? r.checkpoints_kept * state + result : 0;

  const restartWait = (failures + interruptions) * (r.interruption_wait_seconds + (r.node_count - 1) * r.further_machine_wait_seconds) / 3600;
  const waitHours = restartWait + r.capacity_wait_hours;
  const machineHours = (setup + running) / 3600 + restartWait;
  const hours = machineHours + r.capacity_wait_hours;
  const isReserved = r.price_kind === "reserved";
  const billed = isReserved
    ? Math.ceil(rounded(hours * 3600, 3) / (r.term_days * 86400)) * r.term_days * 24
    : Math.max(Math.ceil(rounded(setup + work, 3) / r.billing_increment_seconds) * r.billing_increment_seconds, r.minimum_seconds) / 3600;
  // Time lost within a paid term costs nothing extra.
  const lostHour = isReserved ? 0 : price.hourlyUsd;
  const machine = money4(billed * price.hourlyUsd);
  const interruption = money4((running - failingSeconds) / 3600 * lostHour);
  const failure = money4((failingSeconds - work) / 3600 * lostHour);
  const disks = money4(storage * r.storage_usd_per_gb_month * machineHours / r.hours_per_month);
  const data = money4(result * r.egress_usd_per_gb
    + inbound * (1 + failures * downloadsPerFailure + interruptions * downloadsPerReclaim) * r.download_usd_per_gb);
  return {
    total: machine + interruption + failure + disks + data, machine, interruption, failure, disks, data,
    hours, waitHours, billed, failures, interruptions, storage, setupHours: setup / 3600, trainHours: train / 3600, evaluationHours: (work - train) / 3600,
    interruptionHours: (running - failingSeconds) / 3600, failureHours: (failingSeconds - work) / 3600,
    // Every started hour counts as used.
    shareUsed: r.gpu_count * Math.min(1, Math.ceil(rounded(isReserved ? hours : (setup + work) / 3600, 6)) / billed) / r.gpus_billed,
  };
}

/** What a rental costs per hour with the job's bid, and how often it is taken away. */
function priceOf(job, r) {
  const usd8 = r.bid_exponent > 0 ? Math.round(r.usd8 * job.bid) : r.usd8;
  return {
    hourlyUsd: (usd8 + r.host8) / 1e8,
    hoursBetweenInterruptions: r.hours_between_interruptions === null ? null : r.hours_between_interruptions * job.bid ** r.bid_exponent,
  };
}

/** True if a value is among the wanted and not among the unwanted; what is not known meets no constraint. */
function isWanted(value, { wanted = null, unwanted = null } = {}) {
  return (wanted === null || wanted.includes(value)) && (unwanted === null || (value !== null && !unwanted.includes(value)));
}

const NAMED = Object.entries({ provider: "provider", source: "source", tier: "tier_class", country: "country", continent: "continent" });

const NONE = Object.freeze([]);

/** The settings of the job that rule a rental out (rental_misses, and the country under sanctions). */
function missesOf(job, r, kinds) {
  let missed = NONE;
  const miss = (setting) => { missed = [...missed, setting]; };
  for (const [setting, column] of NAMED) {
    const { wanted, unwanted } = job.constraints[column];
    if (wanted !== null && !wanted.includes(r[column])) miss(setting);
    if (unwanted !== null && (r[column] === null || unwanted.includes(r[column]))) miss(`exclude_${setting}`);
  }
  if (!kinds.includes(r.price_kind)) miss("kind");
  if (r.term_days !== null && r.term_days > (job.max_term_days ?? Infinity)) miss("max_term_days");
  if (job.max_age_days !== null && ageDays(r.price_day) > job.max_age_days) miss("max_age_days");
  if (r.size_evidence === "assumed" && !job.assumed_sizes) miss("assumed_sizes");
  if (r.renter_notice === "sanctions" && !job.constraints.country.wanted?.includes(r.country)) miss("sanctions");
  return missed;
}

/** True if the job names places or providers, so that a rental that another one undercuts may be the answer. */
function isChoosy(job) {
  return ["provider", "country", "continent"].some((column) => job.constraints[column].wanted || job.constraints[column].unwanted);
}

/** The plan of a recipe on a slot (GPU, number of GPUs and machines); null if it does not rank there. */
function planOf(recipe, slot) {
  const cell = recipe.row * D.slots.length + slot;
  const { speed, band, setting, fit, state } = D.cells;
  if (band[cell] === 0) return null;
  const { tenths, is_tight: isTight } = D.fits_seen[fit[cell] - 1];
  return {
    tokensPerSecond: speed[cell], band: D.bands[band[cell] - 1], setting: D.plan_settings[setting[cell] - 1],
    fit: tenths, isTight, state_gib: D.states[recipe.row][state[cell] - 1],
    download_gib: recipe.download_gib, result_gib: recipe.result_gib, host_weights_gib: recipe.host_weights_gib,
  };
}

/** True if a plan meets the job's constraints on the GPU, the numbers and the evidence. */
function isPlanWanted(job, slot, plan) {
  return slot.gpu_count >= (job.min_gpus ?? 1) && slot.gpu_count <= job.max_gpus && slot.node_count <= (job.max_nodes ?? slot.node_count)
    && isWanted(slot.gpu_id, job.constraints.gpu_id) && (job.evidences === null || job.evidences.includes(plan.band.evidence));
}

/** True if the machines have room for the weights that they load; what is not stated is taken to suffice. */
function hasHostMemory(r, plan) {
  return r.ram_gib === null || r.ram_gib / r.node_count >= plan.host_weights_gib;
}

/** A rental that can run the job, with its cost in the middle of the speed band and the facts of its ranking. */
function candidateOf(job, r, plan) {
  const price = priceOf(job, r);
  const gpu = D.gpuOf.get(r.gpu_id);
  const cost = costOf(job, r, plan, price, plan.tokensPerSecond);
  return {
    rental: r, plan, price, cost, gpu, total: cost.total, hours: cost.hours,
    isOtherPlatform: gpu.is_other_platform, isExtrapolated: plan.band.evidence === "extrapolated",
    hasYoungKernels: job.method === "qlora" && gpu.vendor !== "nvidia",
    isPrivateHost: r.tier_class === "community" || r.tier_class === "marketplace",
  };
}

/** The candidates of a job on rentals of some kinds: those that meet its constraints. */
function candidatesOf(job, kinds) {
  const plans = D.slots.map((slot, number) => {
    const plan = planOf(job.recipe, number);
    return plan !== null && isPlanWanted(job, slot, plan) ? plan : null;
  });
  const everyRental = isChoosy(job);
  const found = [];
  for (const r of D.rentals) {
    const plan = plans[r.slot];
    if (plan === null || (r.is_undercut && !everyRental) || !hasHostMemory(r, plan) || missesOf(job, r, kinds).length) continue;
    found.push(candidateOf(job, r, plan));
  }
  return found;
}

/** Why a candidate is no answer (judged_costs); null if it is one. */
function refusalOf(job, { rental, cost }) {
  if (job.max_usd !== null && cost.total / HUNDREDTHS_OF_CENT > job.max_usd) return "too_expensive";
  if (rental.max_run_hours !== null && cost.hours - cost.waitHours > rental.max_run_hours) return "stops_before_the_end";
  if (cost.shareUsed < D.p.least_share_used) return "mostly_unused";
  if (cost.interruptions > D.p.most_interruptions) return "interrupted_too_often";
  return null;
}

/** Add to a candidate what its ranking depends on besides its cost: the deadline at the slow end, and doubts. */
function judge(job, c) {
  const { rental: r, plan } = c;
  const slow = costOf(job, r, plan, c.price, plan.tokensPerSecond * plan.band.low);
  c.slow = slow;
  c.keepsDeadline = slow.hours <= job.max_hours && (r.max_run_hours === null || slow.hours - slow.waitHours <= r.max_run_hours);
  c.isLateWhenSlow = !c.keepsDeadline && D.p.deadline_at_slow_end === 1;
  c.hasShortTerm = r.price_kind === "reserved" && slow.billed > c.cost.billed;
  // Another platform and too little memory may stop a job altogether: they count twice.
  c.doubts = Number(c.isExtrapolated) + Number(r.node_count > 1) + Number(r.tier_class === "resold") + Number(r.has_slow_links)
    + 2 * Number(c.isOtherPlatform) + 2 * Number(plan.isTight)
    + Number(c.isPrivateHost) * c.hours / D.p.private_host_hours + c.cost.interruptions / D.p.safest_most_interruptions;
  // Rented from a company, in no country with a notice, and sure to fit, to be there and to be in time.
  c.isSafe = (r.tier_class === "dedicated" || r.tier_class === "serverless") && r.renter_notice === null
    && r.available !== false && r.size_evidence !== "assumed" && !plan.isTight && !c.isOtherPlatform
    && c.cost.interruptions <= D.p.safest_most_interruptions && c.keepsDeadline;
}

/** A comparison by keys in their order; true comes after false. */
const by = (...keys) => (a, b) => {
  for (const key of keys) {
    const difference = key(a) - key(b);
    if (difference) return difference;
  }
  return 0;
};

const LEAST_COST = [(c) => c.total, (c) => c.hours];
const TIES = [...LEAST_COST, (c) => c.rental.gpu_count, (c) => c.rental.offer];

const leastOf = (items, compare) => items.reduce((least, item) => (least === null || compare(item, least) < 0 ? item : least), null);

/** For the kinds that are taken to save money: the least cost on demand, on a safe machine, that takes no longer. */
function addOnDemand(eligible) {
  const onDemand = eligible.filter((c) => c.rental.price_kind === "on_demand" && c.isSafe);
  for (const c of eligible) {
    c.onDemand = null;
    if (!D.published.saving_kinds.includes(c.rental.price_kind)) continue;
    for (const other of onDemand) {
      if (other.hours <= c.hours && (c.onDemand === null || other.total < c.onDemand)) c.onDemand = other.total;
    }
  }
}

/** Add the values by which the picks of a ranking are chosen. */
function addValues(job, kept) {
  const usd = (c) => c.total / HUNDREDTHS_OF_CENT;
  const least = leastOf(kept, by((c) => c.isLateWhenSlow, ...LEAST_COST, (c) => c.doubts));
  const worth = job.hour_worth ?? Math.max(D.p.hour_worth_usd, D.p.hour_worth_share * usd(least) / least.hours);
  for (const c of kept) {
    const fewer = Math.min(1, least.doubts - c.doubts);
    c.isAsCheap = usd(c) <= usd(least) * (1 + D.p.equal_cost_share + D.p.best_value_doubt_share * fewer) && c.doubts <= least.doubts;
    const value = usd(c) + c.hours * worth;
    c.doubtedValue = value * (1 + c.doubts * D.p.best_value_doubt_share);
    c.portedValue = c.doubtedValue + Number(c.isOtherPlatform) * D.p.other_platform_hours * (c.price.hourlyUsd + worth);
    c.safetyValue = value * (1 + Number(c.rental.available === null) * D.p.unstated_stock_share)
      + (c.doubts + c.cost.interruptions) * Math.max(value * D.p.safest_doubt_share, D.p.hour_worth_usd);
    c.isWorthIt = c.onDemand === null || c.total <= c.onDemand;
  }
}

/** The best offer of each rental option, and the safest answer. */
function waysOf(kept) {
  const safest = leastOf(kept.filter((c) => c.isSafe && c.isWorthIt), by(
    (c) => c.rental.price_kind === "spot" || c.rental.price_kind === "flex_start", (c) => c.safetyValue, ...TIES));
  const inOrder = by((c) => c.isLateWhenSlow, ...LEAST_COST, (c) => c.rental.offer);
  const first = new Map();
  for (const c of kept) {
    const { group } = c.rental;
    const known = first.get(group);
    if (known === undefined || inOrder(c, known) < 0) first.set(group, c);
  }
  const ways = [...first.values()];
  if (safest !== null && !ways.includes(safest)) ways.push(safest);
  return { ways, safest };
}

/** Name the picks: what is cheapest, what is the best value and what is safest. */
function pick(ways, safest) {
  const cheapest = leastOf(ways, by((c) => c.isLateWhenSlow, (c) => !c.isAsCheap, (c) => c.doubtedValue, ...TIES));
  const value = leastOf(ways, by((c) => !c.isWorthIt, (c) => c.isLateWhenSlow, (c) => c.portedValue, ...TIES));
  for (const c of ways) {
    c.pick = [c === cheapest && "cheapest", c === value && c.isWorthIt && "best_value", c === safest && "safest"].filter(Boolean);
  }
}

/** The codes of what to be careful about (cautions_of). */
function cautionCodes(job, c) {
  const { rental: r } = c;
  return [
    r.renter_notice,
    c.isPrivateHost && c.hours > D.p.private_host_hours ? "private_host" : r.tier_class === "resold" && "resold",
    c.hours > job.max_hours ? "too_late" : !c.keepsDeadline && "late_when_slow",
    c.hasShortTerm && "short_term",
    c.onDemand !== null && c.total > c.onDemand && "dearer_than_on_demand",
    c.plan.isTight && "tight_fit",
    r.size_evidence === "assumed" && "assumed_size",
    r.is_doubted && "doubted",
    c.cost.interruptions > D.p.safest_most_interruptions && "often_interrupted",
    r.node_count > 1 && "several_machines",
    r.has_slow_links && "slow_links",
    c.hasYoungKernels ? "young_kernels" : c.isOtherPlatform && "other_platform",
    c.isExtrapolated && "thin_evidence",
  ].filter(Boolean);
}

/** The ranking of a job: its rows, whether the deadline is met, and what waiting longer would save. */
function ranked(job) {
  const compared = job.price_kinds.some((kind) => D.published.saving_kinds.includes(kind)) ? [...job.price_kinds, "on_demand"] : job.price_kinds;
  const candidates = candidatesOf(job, compared);
  const eligible = candidates.filter((c) => refusalOf(job, c) === null);
  for (const c of eligible) judge(job, c);
  addOnDemand(eligible);
  const asked = eligible.filter((c) => job.price_kinds.includes(c.rental.price_kind));
  const fastest = asked.reduce((least, c) => Math.min(least, c.hours), Infinity);
  const meetsDeadline = fastest <= job.max_hours;
  // If no answer finishes in time, the fastest and those that take only a little longer are kept.
  const mostHours = meetsDeadline || job.deadline_is_strict ? job.max_hours : D.p.missed_deadline_factor * fastest;
  const kept = asked.filter((c) => c.hours <= mostHours);
  if (!kept.length) return { rows: [], meetsDeadline, mostHours, longer: null, safest: null, asked };
  addValues(job, kept);
  const { ways, safest } = waysOf(kept);
  pick(ways, safest);
  const objective = job.objective === "time" ? (c) => rounded(c.hours, 2) : (c) => c.total;
  const rows = ways.sort(by((c) => c.isLateWhenSlow, objective, ...TIES));
  for (const [place, c] of rows.entries()) c.rank = place + 1;
  const late = leastOf(asked.filter((c) => c.hours > mostHours && c.hours <= mostHours * D.p.longest_wait_factor), by(...TIES));
  const mostToWaitFor = Math.min(...kept.map((c) => c.total / HUNDREDTHS_OF_CENT * (1 - D.p.equal_cost_share)));
  return {
    rows, meetsDeadline, mostHours, safest, asked,
    longer: late !== null && late.total / HUNDREDTHS_OF_CENT < mostToWaitFor ? late : null,
  };
}

/** The cost of a row at the fast end of its speed band. */
function fastCost(job, c) {
  c.fast ??= costOf(job, c.rental, c.plan, c.price, c.plan.tokensPerSecond * c.plan.band.high);
  return c.fast;
}
