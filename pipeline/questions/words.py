"""An answer in sentences: why the first row is the cheapest, or why there is no row."""

import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline.catalog.job_settings import recipe_settings
from pipeline.contracts.training import ADAPTER_METHODS
from pipeline.offers.money import price_text
from pipeline.questions.job import Job
from pipeline.questions.session import Session
from pipeline.warehouse.replays import observed_day

MIN_HOURS_IN_DAYS = 72
"""A run of at least this many hours is also given in days."""

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
        needs = [row["way"] for row in nearest] or ["no offer runs it at all"]
        return f"{what}: {needs[0]}\ntry: {shlex.join(command_line(_to_fit(job), 'fit'))}"
    lines = [f"{what}; there is an answer with"]
    lines += [
        f"  {_change(job, row)}: {row['way']} for ${row['total_usd']:,.2f} in {_duration(row['hours'])}"
        for row in ways
    ]
    if job["kind"] == "reserved":
        lines.append(_unused_terms(session))
    # Rather one that keeps every constraint, with another value, than one that leaves a constraint open, and
    # rather another constraint than another recipe, or a run that may die.
    easiest = min(ways, key=lambda row: (_drops_a_setting(job, row), _changes_the_run(row)))
    return "\n".join([*lines, f"try: {shlex.join([*command_line(changed(job, easiest)), *more])}"])


def machine_lines(job: Job, session: Session, shown: int | None = None) -> list[str]:
    """Where the quotes and own machines of a job rank, or why they do not, but for those among the first
    ``shown`` answers. Raises JobError."""
    if job["quote"] is None and job["own"] is None:
        return []
    rows = session.machine_ranks(job)
    return [
        _machine(row) for row in rows if row["rank"] is None or (shown is not None and row["rank"] > shown)
    ]


def _machine(row: Mapping[str, Any]) -> str:
    what = f"Your {'quote' if row['source'] == 'quote' else 'own'} {row['machine']}"
    if row["rank"] is None:
        return f"{what} is not ranked: {row['detail']}."
    return (
        f"{what} has rank {row['rank']} of {row['ranks']}: ${row['total_usd']:,.2f} in "
        f"{_duration(row['hours'])} on {row['gpu_count']} GPU{'' if row['gpu_count'] == 1 else 's'}."
    )


def _drops_a_setting(job: Job, row: Mapping[str, Any]) -> bool:
    return not job.settings.keys() <= changed(job, row).settings.keys()


def _changes_the_run(row: Mapping[str, Any]) -> bool:
    return not {*row["constraint"].split(" + ")}.isdisjoint({*recipe_settings(), "min_fit_probability"})


def _change(job: Job, row: Mapping[str, Any]) -> str:
    """The constraints that have to give, and to what."""
    parts = zip(*(str(row[name]).split(" + ") for name in ("constraint", "nearest", "asked")), strict=True)
    return " and ".join(
        f"{_with(name, nearest)} instead of {asked if job[name] is None else _word(job[name])}"
        for name, nearest, asked in parts
    )


def _with(name: str, nearest: str) -> str:
    return f"{name} {'without ' if name.startswith('exclude_') else ''}{nearest}"


def changed(job: Job, row: Mapping[str, Any]) -> Job:
    """The job with the constraints of a row of ``nearest_answers`` as that says; what is to be excluded no
    longer is left open."""
    values = zip(*(str(row[name]).split(" + ") for name in ("constraint", "nearest")), strict=True)
    changes: dict[str, Any] = {}
    for name, nearest in values:
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
    where = {"own": " of your own", "quote": " as quoted"}.get(kind, f" at {row['provider']} ({kind}{tier})")
    electricity = " of electricity" if kind == "own" else ""
    return (
        f"{row['gpu_count']} x {row['gpu']}{idle}{where}: {money} for the "
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
        late = f"{row['longer_wait_way']} in {_duration(row['longer_wait_hours'])}"
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
    "nf4dq": "base weights in NF4 with double quantization",
    "liger (fused kernels)": "Liger kernels",
    "adamw_fused": "fused AdamW",
}
"""Assumed values as people write them; others are shown as the assumptions have them."""


def assumptions(row: Mapping[str, Any]) -> list[str]:
    """What was assumed in a row of ``cheapest_for``, in lines: how the job is trained, what a place that was
    asked for leaves out, and sequences that the model does not support."""
    text = row["assumptions"] or ""
    line = assumed(text, row["method"])
    unplaced = re.search(r"([\d,]+) offers of unknown place left out", text)
    left_out = f"Left out: {unplaced[1]} offers whose place is not known." if unplaced else None
    too_long = re.search(r"sequences longer than the \d+ tokens that the model supports", text)
    return [each for each in (line, left_out, f"CAREFUL: {too_long[0]}." if too_long else None) if each]


def assumed(text: str, method: str) -> str | None:
    """How a job is trained where the question left that open, in one line, from its assumptions; csv and json
    have every one of them."""
    open_settings = {
        name: _IN_WORDS.get(value, value)
        for name, colon, value in (part.partition(": ") for part in text.split("; "))
        if colon
    }
    rank = re.search(r"\blora_rank:? (\d+)", text)
    tokens = re.search(r"\bsequences of (\d+) tokens", text)
    epochs = re.search(r"([\d,]+) tokens are [\d.]+ epochs of [\d,]+", text)
    unused = [
        part for part in text.split("; ") if part.startswith("examples not used") or " not used by " in part
    ]
    batch = open_settings.get("global_batch_tokens")
    packed = "packed sequences" in text.split("; ")
    precision = open_settings.get("training_precision")
    targets = open_settings.get("lora_targets")
    parts = (
        "method lora" if "method lora" in text.split("; ") else None,
        f"LoRA rank {rank[1]}" + (f" on {targets}" if targets else "") if rank else None,
        f"LoRA on {targets}" if targets and not rank else None,
        open_settings.get("quantization"),
        open_settings.get("stack"),
        _precision(precision, method) if precision else None,
        open_settings.get("optimizer"),
        f"{'packed ' * packed}sequences of {int(tokens[1]):,} tokens"
        if tokens
        else "packed sequences" * packed,
        f"{int(batch):,} tokens per optimizer step" if batch and batch.isdigit() else None,
        epochs[0] if epochs else None,
        *unused,
    )
    line = ", ".join(filter(None, parts))
    return f"Assumed: {line}." if line else None


def _precision(assumed: str, method: str) -> str:
    """What is kept in the assumed precision, for example "bf16, fp16 where the GPU has no bf16"."""
    name, _, otherwise = assumed.partition(", ")
    if method == "full" and name == "bf16":
        kept = "weights, gradients and optimizer moments in bf16 without fp32 masters"
    elif name == "amp":
        kept = "fp32 weights under bf16 autocast"
    else:
        kept = f"{name} compute" if method == "qlora" else f"{name} weights"
    return kept + (f" ({otherwise})" if otherwise else "")


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
