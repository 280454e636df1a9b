"""An answer in sentences: why the first row is the cheapest, or why there is no row."""

import json
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline.catalog.job_settings import recipe_settings
from pipeline.contracts.training import ADAPTER_METHODS
from pipeline.offers.money import price_text
from pipeline.questions.job import Job
from pipeline.questions.session import JOBS, Session
from pipeline.warehouse.replays import observed_day

MIN_HOURS_IN_DAYS = 72
"""A run of at least this many hours is also given in days."""

LEAST_SHOWN_HOURS = 0.005
"""Fewer hours are shown as none."""

OLD_PRICE_DAYS = 2
"""A price older than this is called old."""


def nothing_fits(job: Job, session: Session, more: Sequence[str] = ()) -> str:
    """Say why the ranking of a job is empty, what would have to change, and the command with the cheapest
    such change, all else that was asked and ``more`` words."""
    ((day, newest, ranked),) = session.ask(
        "SELECT as_of_day, newest_price_day, offers_ranked FROM main.publication"
    ).rows
    if not ranked:
        return f"as of {day} no price is ranked, the newest are of {newest}: `gpufare sources` says why"
    session.complete(job)
    nearest = list(session.nearest().dicts())
    what = f"nothing runs {job['model']} {job['method'] or 'lora'} as it is asked for"
    ways = [row for row in nearest if row["total_usd"] is not None]
    if not ways:
        return f"{what}: {_lacking(nearest)}\ntry: {shlex.join(command_line(_to_fit(job), 'fit'))}"
    lines = [f"{what}; there is an answer with"]
    lines += [
        f"  {_change(job, row)}: {way_text(row)} for ${row['total_usd']:,.2f} in {_duration(row['hours'])}"
        for row in ways
    ]
    if job["kind"] == "reserved":
        lines.append(_unused_terms(session))
    # Rather one that keeps every constraint, with another value, than one that leaves a constraint open, and
    # rather another constraint than another recipe, or a run that may die.
    easiest = min(ways, key=lambda row: (_drops_a_setting(job, row), _changes_the_run(row)))
    return "\n".join([*lines, f"try: {shlex.join([*command_line(changed(job, easiest)), *more])}"])


def _lacking(nearest: Sequence[Mapping[str, Any]]) -> str:
    """The memory that is missing everywhere."""
    for row in nearest:
        if row["lacking_gib"] is not None:
            return f"{row['gpu_count']} x {row['gpu_id']} lacks {row['lacking_gib']:.1f} GiB per GPU"
    return "no offer runs it at all"


def way_text(way: Mapping[str, Any]) -> str:
    """Return a way to rent, such as 8 x H100 SXM 80 GB at Lambda (on-demand)."""
    return f"{way['gpu_count']} x {way['gpu']}{_where(way)}"


def _where(way: Mapping[str, Any], tier: str = "") -> str:
    kind = _words(way["price_kind"])
    market = f" at {way['provider']} ({kind}{tier})"
    return {"own": " of your own", "quote": " as quoted"}.get(kind, market)


INFEASIBLE = {
    "unsupported_architecture": "current frameworks no longer support this architecture",
    "no_fp8": "no fp8 on this GPU",
    "no_bf16": "no bf16 on this GPU",
    "no_4bit_kernels": "no 4-bit kernels for this vendor",
    "too_little_memory": "needs at least {needed_gib:.1f} GiB per GPU, {usable_memory_gib:.1f} usable",
}
"""Why a plan does not fit, by ``infeasible_reason``."""

_UNRANKED_MACHINES = {
    "gpu": "the job leaves this GPU out",
    "gpus": "it uses {gpu_count} GPUs, at most {max_gpus} are asked for",
    "min_gpus": "it uses {gpu_count} GPUs, at least {min_gpus} are asked for",
    "max_nodes": "it is {node_count} machines, at most {max_nodes} are asked for",
    "min_fit_probability": "it fits with a probability of {fit}, {asked_fit} is asked for",
    "evidence": "its speed is {evidence}, at least {least_evidence} is asked for",
    "max_hours": "it takes {hours:,.1f} hours, the deadline is {max_hours:,g}",
    "max_usd": "it costs {total_usd:,.2f} USD, the budget is {max_usd:,.2f}",
    "beaten": "another answer beats it in cost and hours",
    "another_costs_less": "another such machine costs less in as many GPUs",
    "too_many_gpus": "it has {gpus} GPUs, at most {max_gpus} are asked for",
    "not_planned": "there is no plan for this number of these GPUs, or their specifications are incomplete",
}
"""Why a machine that a job names is not ranked, by ``reason`` of ``machine_ranks`` and by what it misses."""

_WHY_NOT = {
    "ranked": "{gpu_count} of it at {provider}",
    "not_planned": "its specifications are not complete",
    "might_not_fit": "fits with a probability of {fit} at most, {asked_fit} is asked for",
    "fits_in_another_number": "fits on {fits_from_gpus} or more, at most {max_gpus} are asked for",
    "no_price": "no source has a ranked price for it",
    "not_asked_for": "the job leaves it out",
    "not_offered_so": "no offer of it meets what is asked of price kind, place, provider, tier and age; the "
    "cheapest of any is {cheapest[usd]:.2f} USD per GPU and hour at {cheapest_at}",
    "not_rented_in_that_number": "fits on {fits_on}, and is rented in {rented_in}",
    "network_too_slow": "several machines of it are planned with {planned_gbps:,.0f} Gbit/s between them, "
    "the fastest that can be rented have {network_gbps:,.0f}",
    "host_memory_too_small": "each machine needs {planned_host:,.0f} GiB of host memory to load the model, "
    "the largest that can be rented has {host:,.0f}",
    "too_late_or_too_expensive": "what can be rented ends after the deadline, costs more than the budget, "
    "stops before the job is done, or is a reservation of which too little would be used",
}
"""Where a GPU is in a ranking, or why it is not, by ``reason`` of ``why_not_for``."""


def infeasible_text(row: Mapping[str, Any]) -> str:
    """Return why a plan does not fit, from its infeasible_reason, needed_gib and usable_memory_gib."""
    return INFEASIBLE[row["infeasible_reason"]].format_map(row)


def why_not_text(row: Mapping[str, Any]) -> str:
    """Return where a GPU is in a ranking, or why it is not, from a row of ``why_not_for``."""
    if row["reason"] == "does_not_fit":
        return infeasible_text(row)
    facts = {**row, "asked_fit": f"{row['min_fit_probability']:.0%}"}
    if row["fit_probability"] is not None:
        facts["fit"] = percent_text(row["fit_probability"])
    if row["cheapest"] is not None:
        offer = row["cheapest"]
        country = f", {offer['country']}" if offer["country"] else ""
        facts["cheapest_at"] = f"{offer['provider']} ({_words(offer['price_kind'])}{country})"
    if row["host_gib"] is not None:
        facts |= {"planned_host": math.ceil(row["planned_host_gib"]), "host": math.floor(row["host_gib"])}
    for name, counts in (("fits_on", row["counts"]), ("rented_in", row["sold_counts"])):
        facts[name] = ", ".join(map(str, counts or ()))
    return _WHY_NOT[row["reason"]].format_map(facts)


def total_parts(row: Mapping[str, Any]) -> dict[str, str]:
    """Return how each part of what an answer costs comes about, from a row of ``cheapest_for``."""
    own = row["price_kind"] == "own"
    disk = "not charged" if not row["storage_usd"] else f"{row['storage_gb']:,.0f} GB while the machine runs"
    data = (
        "the result out, and image, data set and model in, where that is charged"
        if row["egress_usd"]
        else "downloads and uploads, not charged"
    )
    return {
        "machine": _machine_hours(row),
        "interruptions": f"{row['interruptions']:,.2f} expected, {row['interruption_hours']:,.2f} paid hours",
        "failures": f"{row['failures']:,.3f} expected, {row['failure_hours']:,.2f} paid hours",
        "disk": "your own" if own else disk,
        "data": "your own connection" if own else data,
        "total": "the sum of the above",
    }


def _machine_hours(row: Mapping[str, Any]) -> str:
    hours = {
        "reserved": f"hours of whole terms of {row['term_days']} days",
        "own": "hours of electricity",
    }.get(row["price_kind"], "billed hours")
    text = f"{row['billed_hours']:,.2f} {hours} x {row['usd_per_hour']:,.4f} USD"
    if row["host_usd_per_hour"]:
        text += f" and {row['host_usd_per_hour']:,.4f} for its host"
    if row["price_kind"] == "reserved":
        return text
    used = {name: row[f"{name}_hours"] for name in ("setup", "train", "evaluation")}
    text += ": set-up {setup:,.2f}, training {train:,.2f}, evaluation {evaluation:,.2f}".format_map(used)
    unused = row["billed_hours"] - sum(used.values())
    if unused >= LEAST_SHOWN_HOURS:
        text += f", and {unused:,.2f} unused: the minimum, or a started billing step"
    return text


MEMORY_PARTS = {
    "weights": ("weights", "of the model, on the GPU"),
    "adapters": ("adapters", "LoRA weights"),
    "gradients": ("gradients", "resident at the peak"),
    "optimizer": ("optimizer state", "moments and masters"),
    "activations": ("activations and logits", "all else at the peak: {peak_phase}"),
    "kept": ("kept by the allocator", "not in use; freed when needed"),
    "process": ("driver and libraries", "the process itself"),
    "peak": ("peak memory", "the sum of the above"),
    "margin": ("margin", "needed beyond what is in use: lost between tensors"),
    "needed": ("needed at least", "the peak and the margin, less what the allocator keeps"),
}
"""The parts of ``memory_parts``: the name and the meaning of each."""


def machine_lines(job: Job, session: Session, shown: int | None = None) -> list[str]:
    """Where the quotes and own machines of a job rank, or why they do not, but for those among the first
    ``shown`` answers. Raises JobError."""
    if job["quote"] is None and job["own"] is None:
        return []
    rows = session.machine_ranks(job)
    (asked,) = session.ask(f"FROM {JOBS}").dicts()
    return [
        _machine(asked | row)
        for row in rows
        if row["rank"] is None or (shown is not None and row["rank"] > shown)
    ]


def _machine(row: Mapping[str, Any]) -> str:
    what = f"Your {'quote' if row['source'] == 'quote' else 'own'} {row['machine']}"
    if row["rank"] is None:
        return f"{what} is not ranked: {unranked_text(row)}."
    return (
        f"{what} has rank {row['rank']} of {row['ranks']}: ${row['total_usd']:,.2f} in "
        f"{_duration(row['hours'])} on {row['gpu_count']} GPU{'' if row['gpu_count'] == 1 else 's'}."
    )


def unranked_text(row: Mapping[str, Any]) -> str:
    """Return why a machine that a job names is not ranked, from its row of ``machine_ranks`` and the job's of
    ``completed_jobs`` in one."""
    if row["reason"] == "does_not_fit":
        return f"the job does not fit: {infeasible_text(row)}"
    facts = {**row, "asked_fit": f"{100 * row['min_fit_probability']:g}%"}
    if row["evidences"]:
        facts["least_evidence"] = row["evidences"][-1]
    if row["fit_probability"] is not None:
        facts["fit"] = percent_text(row["fit_probability"])
    reasons = row["missed"] or [row["reason"]]
    return " and ".join(_UNRANKED_MACHINES[reason].format_map(facts) for reason in reasons)


def _drops_a_setting(job: Job, row: Mapping[str, Any]) -> bool:
    return not job.settings.keys() <= changed(job, row).settings.keys()


def _changes_the_run(row: Mapping[str, Any]) -> bool:
    return not {*recipe_settings(), "min_fit_probability"}.isdisjoint(row["constraints"])


def _change(job: Job, row: Mapping[str, Any]) -> str:
    """The constraints that have to give, and to what."""
    parts = zip(row["constraints"], row["nearest"], row["asked"], strict=True)
    return " and ".join(
        f"{_with(name, nearest)} instead of {asked if job[name] is None else _word(job[name])}"
        for name, nearest, asked in parts
    )


def _with(name: str, nearest: str) -> str:
    return f"{name} {'without ' if name.startswith('exclude_') else ''}{nearest}"


def changed(job: Job, row: Mapping[str, Any]) -> Job:
    """The job with the constraints of a row of ``nearest_answers`` as that says; what is to be excluded no
    longer is left open."""
    changes: dict[str, Any] = {}
    for name, nearest in zip(row["constraints"], row["nearest"], strict=True):
        if name == "assumed_sizes":
            changes[name] = True
        else:
            changes[name] = None if name.startswith("exclude_") else nearest
    if "min_gpus" in changes and "gpus" not in changes and job["gpus"] is not None:
        # Exactly so many were asked for.
        changes["gpus"] = changes["min_gpus"] if job["gpus"] == job["min_gpus"] else job["gpus"]
    return job.but(**changes)


def _to_fit(job: Job) -> Job:
    recipe = {name: value for name, value in job.settings.items() if name in recipe_settings()}
    return Job(job.config, **recipe, gpu="h100-sxm-80gb", gpus=8)


def command_line(job: Job, command: str = "cheapest") -> list[str]:
    """Return the words of the command that asks a job, with all of its settings."""
    words = ["gpufare", command]
    for name, value in job.settings.items():
        if name == "model" and job.config is not None:
            words += ["--config", str(job.config)]
        elif value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value is not False:
            words += [f"--{name.replace('_', '-')}", _word(value)]
    return words


def _word(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _unused_terms(session: Session) -> str:
    """Why a short job has no reserved answer."""
    least = "SELECT value FROM main.cost_parameters WHERE name = 'least_term_share'"
    ((share,),) = session.ask(least).rows
    return (
        f"a reservation is paid for its whole term and ranked for jobs that use at least {share:.0%} of it; "
        "on-demand prices need no term"
    )


def explained(row: Mapping[str, Any], replayed: Collection[str] = ()) -> list[str]:
    """The first answer in sentences: what it is, what waiting longer would save, why, what was assumed, how
    far to trust it.

    ``replayed``: sources whose prices are of saved pages, and could pass for live ones."""
    return [_what(row), *_wait(row), _why(row), *assumptions(row), _trust(row, row["source"] in replayed)]


def _what(row: Mapping[str, Any]) -> str:
    kind = _words(row["price_kind"])
    tier = f", {row['tier']}" if row["tier"] and _words(row["tier"]) != kind else ""
    money = f"${row['total_usd']:,.2f} (${row['total_usd_low']:,.2f} to ${row['total_usd_high']:,.2f})"
    idle = f" ({row['gpus_billed']} are paid)" if row["gpus_billed"] > row["gpu_count"] else ""
    spot = f" Interruptions are ${row['interruption_usd']:,.2f} of it." if row["price_kind"] == "spot" else ""
    reserved = (
        f" It is paid for whole terms of {row['term_days']} days at ${row['commitment_usd']:,.2f}, and uses"
        f" {row['term_share_used']:.1%} of them."
        if row["term_days"] and row["commitment_usd"]
        else ""
    )
    electricity = " of electricity" if kind == "own" else ""
    return (
        f"{row['gpu_count']} x {row['gpu']}{idle}{_where(row, tier)}: {money} for the "
        f"finished job, {_hours(row)} at ${price_text(row['usd_per_hour'])}{electricity} per hour."
        f"{spot}{reserved}"
    )


def _words(name: str) -> str:
    """A price kind as people write it."""
    return name.replace("_", "-")


def _duration(hours: float) -> str:
    return f"{hours:,.1f} hours" + (f" ({_days(hours)})" if hours >= MIN_HOURS_IN_DAYS else "")


def _days(hours: float) -> str:
    return f"{hours / 24:,.0f} days"


def _hours(row: Mapping[str, Any]) -> str:
    """How long it takes, with the band, and how much of it is unpaid waiting for the machine."""
    days = f"{_days(row['hours'])}; " if row["hours"] >= MIN_HOURS_IN_DAYS else ""
    band = f"{row['hours']:,.1f} hours ({days}{row['hours_low']:,.1f} to {row['hours_high']:,.1f})"
    if row["price_kind"] != "flex_start":
        return band
    return f"{band}, {row['wait_hours']:,.1f} of them an assumed and unpaid wait for capacity,"


def _wait(row: Mapping[str, Any]) -> list[str]:
    """The deadline, where it is missed or costs something."""
    lines = []
    if not row["meets_deadline"]:
        deadline = _duration(row["max_hours"])
        lines.append(
            f"Nothing finishes within {deadline}; "
            "the ranking has the fastest answer and what takes little longer."
        )
    if row["longer_wait_usd"] is not None:
        late = f"{way_text(json.loads(row['longer_wait_way']))} in {_duration(row['longer_wait_hours'])}"
        lines.append(f"If you can wait, it costs ${row['longer_wait_usd']:,.2f}: {late}.")
    return lines


def _why(row: Mapping[str, Any]) -> str:
    kept = "frozen weights" if row["method"] in ADAPTER_METHODS else "training state"
    offload = f", its {kept} in host memory" if row["offload"] else ""
    # memory_gib has what the allocator keeps without need, and may be all of the card.
    needed = row["usable_memory_gib"] - row["memory_margin_gib"]
    return (
        f"It needs {needed:.1f} of {row['usable_memory_gib']:.1f} GiB per GPU and fits with a "
        f"probability of {percent_text(row['fit_probability'])}, with micro-batch "
        f"{row['micro_batch']}, checkpointing {row['checkpointing']}{offload}, and trains "
        f"{row['tokens_per_second']:,.0f} tokens/s; most of the time goes to {row['bottleneck']}."
    )


_IN_WORDS = {
    "all_linear": "all linear layers",
    "nf4dq": "base weights in NF4 with double quantization",
    "liger": "Liger kernels",
    "adamw_fused": "fused AdamW",
}
"""Assumed values as people write them; others are shown as the assumptions have them."""


def assumptions(row: Mapping[str, Any]) -> list[str]:
    """What was assumed in a row of ``cheapest_for``, in lines: how the job is trained, what a place that was
    asked for leaves out, and sequences that the model does not support."""
    taken = json.loads(row["assumptions"])
    lines = [assumed(taken, row["method"])]
    if "offers_without_place" in taken:
        lines.append(f"Left out: {taken['offers_without_place']:,} offers whose place is not known.")
    if "max_context" in taken:
        longer = f"sequences longer than the {taken['max_context']} tokens that the model supports"
        lines.append(f"CAREFUL: {longer}.")
    return [line for line in lines if line]


def assumed(taken: Mapping[str, Any], method: str) -> str | None:
    """How a job is trained where the question left that open, in one line, from its assumptions; csv and json
    have every one of them."""
    named = {name: _IN_WORDS.get(value, value) for name, value in taken.items() if isinstance(value, str)}
    packed = "packed " if taken.get("is_packed") else ""
    parts = (
        f"planned as {named['model']}" if "model" in named else None,
        f"method {named['method']}" if "method" in named else None,
        _adapters(taken.get("lora_rank"), named.get("lora_targets")),
        named.get("quantization"),
        named.get("stack"),
        _precision(named["training_precision"], method) if "training_precision" in named else None,
        named.get("optimizer"),
        f"{packed}sequences of {taken['seq_len']:,} tokens"
        if "seq_len" in taken
        else packed and f"{packed}sequences",
        f"{taken['global_batch_tokens']:,} tokens per optimizer step"
        if "global_batch_tokens" in taken
        else None,
        _epochs(taken["epochs"], taken["tokens_per_epoch"]) if "epochs" in taken else None,
        *(
            "examples not used, tokens is given"
            if name == "examples"
            else f"{name} not used by method {method}"
            for name in taken.get("unused_settings", ())
        ),
    )
    line = ", ".join(filter(None, parts))
    return f"Assumed: {line}." if line else None


def _adapters(rank: int | None, targets: str | None) -> str | None:
    if rank is None and targets is None:
        return None
    return "LoRA" + (f" rank {rank}" if rank else "") + (f" on {targets}" if targets else "")


def _epochs(epochs: float, tokens_per_epoch: float) -> str:
    tokens = tokens_per_epoch * epochs
    return f"{tokens:,.0f} tokens are {round(epochs, 3)} epochs of {tokens_per_epoch:,.0f}"


def _precision(name: str, method: str) -> str:
    """What is kept in the assumed precision, and the planner's other choice."""
    if method == "full" and name == "bf16":
        kept = "weights, gradients and optimizer moments in bf16 without fp32 masters"
    elif name == "amp":
        kept = "fp32 weights under bf16 autocast"
    else:
        kept = f"{name} compute" if method == "qlora" else f"{name} weights"
    return f"{kept} (fp16 where the GPU has no bf16)"


def percent_text(probability: float) -> str:
    """A probability in whole percent, rounded down: 99.96% is not called certain, nor 89.6% called 90%."""
    if 0.99 < probability < 1:
        return "over 99%"
    return "under 1%" if 0 < probability < 0.01 else f"{math.floor(round(100 * probability, 6))}%"


def _trust(row: Mapping[str, Any], is_replayed: bool) -> str:
    cautions = []
    # A saved page may be filed under a later day than its own.
    seen_on = min(row["price_day"], observed_day(row["observed_at"]))
    age_days = row["price_age_days"] + (row["price_day"] - seen_on).days
    if is_replayed:
        cautions.append("the price was replayed from a saved page, the provider was not asked")
    if age_days > OLD_PRICE_DAYS:
        cautions.append(f"the price is {age_days} days old")
    if row["size_evidence"] == "assumed":
        cautions.append("the source does not say that it sells such a machine")
    if row["verdict"] == "tight":
        cautions.append(f"the fit is tight, {percent_text(row['fit_probability'])}")
    if row["meets_deadline"] and row["hours_high"] > row["max_hours"]:
        slow = f"at the slow end of its band it takes {row['hours_high']:,.1f} hours"
        cautions.append(f"{slow}, more than the {row['max_hours']:,.1f} of the deadline")
    if row["evidence"] == "extrapolated":
        cautions.append("the evidence is thin: no published run is close")
    nearest = f", closest published run {row['evidence_run']}" if row["evidence_run"] else ""
    address = row["source_url"].partition("?")[0]
    converted = (
        f" ({row['native_price'].normalize():f} {row['native_currency']} per {row['native_unit']}, "
        f"one {row['native_currency']} at ${row['fx_rate'].normalize():f} of {row['fx_date']})"
        if row["fx_rate"]
        else ""
    )
    seen = {
        "own": f"Electricity as you gave it, {row['raw_label']}, and nothing else is paid",
        "quote": f"Price as you gave it, {row['raw_label']}; other charges at their defaults",
    }.get(row["price_kind"], f"Price seen {seen_on} at {address}{converted}")
    seen += f"; speed {row['evidence']}{nearest}."
    return seen + (f" CAREFUL: {'; '.join(cautions)}." if cautions else "")
