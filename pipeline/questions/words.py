"""Answers in sentences: an explanation of the first row, or the reason for an empty ranking."""

import json
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import takewhile
from typing import Any

from pipeline.catalog.job_settings import job_settings, recipe_settings
from pipeline.contracts.own_runs import corrections
from pipeline.contracts.training import ADAPTER_METHODS
from pipeline.home.csv_rows import read_csv
from pipeline.home.paths import CATALOG_DIR
from pipeline.questions.job import Job
from pipeline.questions.numbers import number_text, price_text
from pipeline.questions.reasons import kind_text, percent_text, unranked_text
from pipeline.questions.session import JOBS, Session
from pipeline.warehouse.replays import observed_day

MIN_HOURS_IN_DAYS = 72
"""A duration of at least this many hours is also given in days."""

LEAST_SHOWN_USD = Decimal("0.01")
"""A smaller saving is called under a cent."""

LEAST_SHOWN_HOURS = 0.005
"""Unused hours below this number are not shown."""

OLD_PRICE_DAYS = 2
"""A price older than this number of days is called old."""


def nothing_fits(job: Job, session: Session, more: Sequence[str] = ()) -> str:
    """Explain why the ranking of a job is empty and what would have to change, and give the command for the
    easiest such change, with ``more`` appended."""
    ((day, newest, ranked),) = session.ask(
        "SELECT as_of_day, newest_price_day, offers_ranked FROM main.publication"
    ).rows
    if not ranked:
        return f"as of {day}, no price is ranked; the newest is from {newest}: see `gpufare sources`"
    method = session.complete(job)["method"]
    nearest = list(session.nearest().dicts())
    what = f"nothing runs {job['model']} {method} with these constraints"
    ways = [row for row in nearest if row["total_usd"] is not None]
    if not ways:
        return f"{what}: {_lacking(nearest)}\ntry: {shlex.join(command_line(_fitting(job), 'fit'))}"
    lines = [f"{what}; there is an answer with"]
    ways.sort(key=lambda row: departure(job, row))
    lines += [
        f"  {change_text(job, method, row)}: {way_text(row)} for ${row['total_usd']:,.2f} in "
        f"{_duration(row['hours'])}"
        for row in ways[:MOST_WAYS]
    ]
    if len(ways) > MOST_WAYS:
        lines.append(f"  and {len(ways) - MOST_WAYS} others")
    if job["kind"] == "reserved":
        lines.append(_unused_terms(session))
    return "\n".join([*lines, f"try: {shlex.join([*command_line(changed(job, ways[0])), *more])}"])


MOST_WAYS = 5
"""The number of changes that are told if a job has no answer."""

_DEPARTURES = {
    **dict.fromkeys(("offload", "micro_batch", "optimizer"), 0),
    "training_precision": 3,
    "method": 4,
    "seq_len": 5,
    "min_fit_probability": 6,
}
"""How far a change of a setting departs from the job: from the same training on the same machines, over other
machines or limits (all settings that are not named here: 1, or 2 if one is dropped) and another training, to
a run that may fail."""


def departure(job: Job, row: Mapping[str, Any]) -> int:
    """Return how far the changes of a row of ``nearest_answers`` depart from the job."""
    kept = changed(job, row).settings
    return max(_DEPARTURES.get(name, 1 if name in kept else 2) for name in row["constraints"])


def _lacking(nearest: Sequence[Mapping[str, Any]]) -> str:
    """Return in words how much memory the closest GPU lacks."""
    for row in nearest:
        if row["lacking_gib"] is not None:
            return f"{row['gpu_count']} x {row['gpu_id']} lacks {row['lacking_gib']:.1f} GiB per GPU"
    return "no offer runs it at all"


def way_text(way: Mapping[str, Any]) -> str:
    """Return a way to rent, such as 8 x H100 SXM 80 GB at Lambda (on-demand)."""
    return f"{way['gpu_count']} x {way['gpu']}{_where(way)}"


def _where(way: Mapping[str, Any], tier: str = "") -> str:
    kind = kind_text(way["price_kind"])
    market = f" at {way['provider']}{place_text(way)} ({kind}{tier}{owner_text(way)})"
    return {"own": " of your own", "quote": " as quoted"}.get(kind, market)


_OWNERS = {"community": "private owner", "marketplace": "private owner", "resold": "resold"}


def owner_text(row: Mapping[str, Any]) -> str:
    """Return whose a machine is, such as ", private owner"; empty if it is the provider's own."""
    owner = _OWNERS.get(row.get("tier_class") or "")
    return f", {owner}" if owner else ""


def place_text(way: Mapping[str, Any]) -> str:
    """Return the country of a way to rent, such as ", Norway"; empty if the way has no country column."""
    if "country" not in way:
        return ""
    return f", {country_name(way['country'])}" if way["country"] else ", country not stated"


def country_name(code: str) -> str:
    """Return the English name of a country in the catalogue, given its two-letter code."""
    return _country_names()[code]


@cache
def _country_names() -> dict[str, str]:
    # The checked catalogue takes longer to load than an answer.
    rows = read_csv(CATALOG_DIR / "countries.csv").rows
    return {row.values["country"]: row.values["name"] for row in rows}


PICKS = {"cheapest": "cheapest", "best_value": "best value", "safest": "safest"}
"""The picks of a ranking, in the order in which they are told."""


def picks(rows: Sequence[Mapping[str, Any]], *, beside_table: bool = False) -> list[str]:
    """Return the picks of a ranking in a sentence each, with what speaks for them. ``beside_table``: only
    what a table of the picks does not show. ``rows``: the first rows of ``cheapest_for``, by rank."""
    each = [row for name in PICKS if (row := picked(rows, name))]
    found = list({row["rank"]: row for row in each}.values())
    cheaper = list(takewhile(lambda row: row["total_usd"] < found[0]["total_usd"], rows)) if found else []
    lines = [line for row in found if (line := _pick(row, found[0], cheaper, beside_table))]
    if found and not picked(rows, "safest"):
        lines.append("Safest: none; no company's own machine is sure to fit, to be there and to be in time.")
    return lines


def ties(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence if the order of the first answers is within the model's error; ``rows``: as for
    ``picks``."""
    tied = [row["rank"] for row in rows if row["ties_with_first"]]
    last = next((rank for rank in tied if rank + 1 not in tied), 1)
    if last == 1:
        return []
    return [f"The bands of ranks 1 to {last} overlap: the order among them is within the error."]


def _pick(
    row: Mapping[str, Any],
    cheapest: Mapping[str, Any],
    cheaper: Sequence[Mapping[str, Any]],
    beside_table: bool,
) -> str:
    """Return a pick in a sentence: what it is, what it costs, why one would pay more than the least, and what
    to be careful about. Beside a table, the sentence is empty if it would tell only what the table shows."""
    parts = [] if beside_table else [cost_text(row)]
    more = row["total_usd"] - cheapest["total_usd"]
    if row is cheapest and cheaper:
        parts.append(_first_by_cost(cheaper, row))
    if row is not cheapest:
        text = f"${abs(more):,.2f} {'more' if more >= 0 else 'less'}, {_time_against(cheapest, row)}"
        doubts, others = (set(each["cautions"] or ()) for each in (row, cheapest))
        parts.append(f"{text}, with fewer cautions" if doubts < others else text)
    if "safest" in row["pick"]:
        parts.append(safety_text(row))
    told, careful = "; ".join(parts), careful_text(row)
    text = f"{told}.{careful}" if told else careful.lstrip()
    return f"{_names_of(row['pick'])}: {text}" if text else ""


def _names_of(pick: Sequence[str]) -> str:
    """Return the names of a pick as the beginning of a sentence, such as "Cheapest and best value"."""
    names = [PICKS[name] for name in PICKS if name in pick]
    text = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{text[0].upper()}{text[1:]}"


def _first_by_cost(cheaper: Sequence[Mapping[str, Any]], cheapest: Mapping[str, Any]) -> str:
    """Return which ranks cost less than the pick, what rank 1 would save, and what speaks against it."""
    first = cheaper[0]
    saved = cheapest["total_usd"] - first["total_usd"]
    known = cautions(cheapest)
    # What the safest costs is told beside the pick.
    against = [text for text in cautions({**first, "safest_usd": None}) if text not in known]
    less = f"${saved:,.2f}" if saved >= LEAST_SHOWN_USD else "under a cent"
    others = f"ranks 1 to {len(cheaper)} cost less; " if len(cheaper) > 1 else ""
    text = f"{others}rank 1 costs {less} less, {_time_against(cheapest, first)}"
    return f"{text}, but {' and '.join(against)}" if against else text


def _time_against(other: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return how much less time an answer takes than another, or how much longer."""
    saved = other["hours"] - row["hours"]
    if abs(saved) < LEAST_SHOWN_HOURS:
        return "in the same time"
    return f"{number_text(abs(saved))} hours {'less' if saved > 0 else 'longer'}"


def told_first(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the answer to explain: the cheapest of a ranking by cost, the first of a ranking by time."""
    cheapest = picked(rows, "cheapest") if rows[0]["objective"] == "cost" else None
    return cheapest or rows[0]


def picked(rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """Return the row that is picked under a name of PICKS; None if there is none."""
    return next((row for row in rows if name in (row["pick"] or ())), None)


def cost_text(row: Mapping[str, Any]) -> str:
    """Return a way to rent with the job's cost and hours."""
    return f"{way_text(row)}, ${row['total_usd']:,.2f}, {number_text(row['hours'])} hours"


def safety_text(row: Mapping[str, Any]) -> str:
    """Return what makes an answer the safest."""
    stock = "in stock" if row["available"] else "stock not stated"
    text = f"a company's own machine, {stock}, {number_text(row['hours_high'])} hours at the slow end"
    return text if math.isinf(row["max_hours"]) else f"{text}, of {row['max_hours']:,g} allowed"


def careful_text(row: Mapping[str, Any]) -> str:
    """Return what to be careful about with an answer in a sentence; empty if there is nothing."""
    return _careful(cautions(row))


def _careful(cautions: Sequence[str]) -> str:
    return f" CAREFUL: {'; '.join(cautions)}." if cautions else ""


def cautions(row: Mapping[str, Any]) -> list[str]:
    """Return the ``cautions`` of a row of ``cheapest_for`` in words."""
    safest = "" if row["safest_usd"] is None else f", or take the safest for ${row['safest_usd']:,.2f}"
    hours = {name: number_text(row[name]) for name in ("hours", "hours_high")}
    facts = {**row, **hours, "fit": percent_text(row["fit_probability"]), "safest": safest}
    return [CAUTIONS[code].format_map(facts) for code in row["cautions"] or ()]


CAUTIONS = {
    "sanctions": "sanctions restrict payments and services in this country",
    "us_data_rule": "US law (28 CFR 202) restricts bulk personal data of US persons in this country",
    "no_eu_adequacy": "personal data from the EU needs contractual safeguards in this country",
    "private_host": "it is a private owner's machine for {hours} hours: keep checkpoints elsewhere{safest}",
    "resold": "it is a reseller's offer: ask whose machine it is",
    "too_late": "it takes {hours} hours, longer than the {max_hours:,g} allowed",
    "late_when_slow": "at the slow end of its band it takes {hours_high} hours, which is too long",
    "short_term": "at the slow end of its band a further term is paid for, ${total_usd_high:,.2f} in all",
    "dearer_than_on_demand": "on demand, the same job costs ${on_demand_usd:,.2f} on a company's own "
    "machine, and takes no longer",
    "tight_fit": "it fits with a probability of {fit} only: try a few steps first",
    "assumed_size": "the source does not say that it sells such a machine",
    "doubted": "it is the price of {price_day}, and a newer one is held as doubtful: look at the page",
    "often_interrupted": "{interruptions:,.0f} interruptions are expected",
    "several_machines": "it is {node_count} machines: ask for the quota, and for the network between them",
    "slow_links": "no fast link joins all its cards",
    "other_platform": "it is no NVIDIA card with bf16 on an x86 host: check that your software runs there",
    "young_kernels": "4-bit kernels for this vendor are young: try a few steps first",
    "thin_evidence": "no published run is close",
}
"""The cautions of ``cheapest_for`` in words, keyed by code."""


def total_parts(row: Mapping[str, Any]) -> dict[str, str]:
    """Explain each part of an answer's cost, from a row of ``cheapest_for``."""
    own = row["price_kind"] == "own"
    disk = "not charged" if not row["storage_usd"] else f"{row['storage_gb']:,.0f} GB while the machine runs"
    data = (
        "result out; image, data set and model in, where charged"
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


def machine_lines(job: Job, session: Session, shown: int) -> list[str]:
    """Return the ranks of a job's quotes and own machines, or why they are not ranked; machines among the
    first ``shown`` answers are skipped. Raises JobError."""
    if job["quote"] is None and job["own"] is None:
        return []
    rows = session.machine_ranks(job)
    (asked,) = session.ask(f"FROM {JOBS}").dicts()
    ranks = [_machine(asked | row) for row in rows if row["rank"] is None or row["rank"] > shown]
    return [*filter(None, map(_reading, asked["machines"])), *ranks]


_OTHER_CARDS = 2
"""Number of other cards of a family that are named: the most offered ones."""


def _reading(machine: Mapping[str, Any]) -> str | None:
    """Return how the price and the GPU of a quote or own machine were understood; None if there is nothing
    to understand: a card without a price."""
    price, gpus, card = machine["price"], machine["gpus"], machine["gpu_id"]
    family = machine["other_cards"] and family_text(machine["asked_gpu"], card, machine["other_cards"])
    if price is None:
        return family and f"Your own {machine['text']}: {family}."
    how = []
    if machine["watts"] is not None:
        how.append(f"{machine['watts']:,.0f} W, without the rest of the machine")
    if price["currency"] != "USD":
        how.append(f"1 {price['currency']} = ${machine['usd_per_unit']:g}")
    text = f"Your {machine['source']} {machine['text']} is read as {gpus} x {card} at "
    text += f"{_usd_text(machine['usd'])} per GPU-hour" + (f" ({'; '.join(how)})" if how else "")
    text += f", {_usd_text(machine['usd'] * gpus)} per hour for all" if gpus > 1 else ""
    return f"{text}; {family}." if family else f"{text}."


def _usd_text(usd: Any) -> str:
    """Return an amount with cents, or with three digits if it is less than a dollar and not whole cents."""
    return f"${usd:,.2f}" if usd >= 1 or round(usd, 2) == usd else f"${usd:.3g}"


def family_text(name: str, gpu_id: str, other_cards: Sequence[str]) -> str:
    """Return which card was taken for the family that somebody named, and the other cards of the family."""
    others = ", ".join(other_cards[:_OTHER_CARDS]) + (", ..." if len(other_cards) > _OTHER_CARDS else "")
    return f"{name} is taken as {gpu_id}, the card of that name that most offers have (others: {others})"


def _machine(row: Mapping[str, Any]) -> str:
    what = f"Your {'quote' if row['source'] == 'quote' else 'own'} {row['machine']}"
    if row["rank"] is None:
        return f"{what} is not ranked: {unranked_text(row)}."
    return (
        f"{what} has rank {row['rank']} of {row['ranks']}: ${row['total_usd']:,.2f} in "
        f"{_duration(row['hours'])} on {row['gpu_count']} GPU{'' if row['gpu_count'] == 1 else 's'}."
    )


def change_text(job: Job, method: str, row: Mapping[str, Any]) -> str:
    """Return the changes of a row of ``nearest_answers`` in words, with the options that make them. The job
    has this ``method``."""
    parts = zip(row["constraints"], row["nearest"], row["asked"], strict=True)
    kept = "the frozen weights" if method in ADAPTER_METHODS else "optimizer state and weights"
    changes = []
    for name, nearest, asked in parts:
        facts = {"nearest": nearest, "asked": asked if job[name] is None else word(job[name]), "kept": kept}
        changes.append(_change_of(job, name, facts, changed(job, row)))
    return " and ".join(changes)


def _change_of(job: Job, name: str, facts: dict[str, str], other: Job) -> str:
    if other[name] is None:
        return f"without {shlex.join(_option(name, job[name]))}"
    options = _option(name, other[name])
    if name == "min_gpus" and other["gpus"] != job["gpus"]:
        options += _option("gpus", other["gpus"])
    if name not in _CHANGES:
        return f"{shlex.join(options)} instead of {facts['asked']}"
    values = {key: _recipe_word(name, facts[key]) for key in ("nearest", "asked")}
    return f"{_CHANGES[name].format_map(facts | values)} ({shlex.join(options)})"


def _recipe_word(name: str, value: str) -> str:
    """Return the value of a setting of the recipe as people write it."""
    if name == "seq_len":
        return f"{int(value):,}"
    return {"method": METHODS, "training_precision": PRECISIONS}.get(name, {}).get(value.lower(), value)


PRECISIONS = {
    "bf16": "pure bf16, without fp32 masters",
    "amp": "fp32 masters, as most trainers keep them",
}
"""The usual precisions of full fine-tuning in words, keyed by ``training_precision``."""

METHODS = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA", "pretrain": "pretraining"}
"""The training methods as people write them."""

_CHANGES = {
    "offload": "offloading {kept} to host memory",
    "micro_batch": "a micro-batch of {nearest} instead of {asked}",
    "optimizer": "optimizer states in 8 bits",
    "training_precision": "{nearest}",
    "method": "{nearest} instead of {asked}",
    "seq_len": "sequences of {nearest} tokens instead of {asked}",
}
"""What a change of the training recipe means, keyed by setting."""


def changed(job: Job, row: Mapping[str, Any]) -> Job:
    """Return the job with the constraints of a row of ``nearest_answers`` changed; exclusions are dropped."""
    changes: dict[str, Any] = {}
    for name, nearest in zip(row["constraints"], row["nearest"], strict=True):
        if name == "assumed_sizes":
            changes[name] = True
        else:
            changes[name] = None if name.startswith("exclude_") else nearest
    if "min_gpus" in changes and "gpus" not in changes and job["gpus"] is not None:
        # An exact number of GPUs stays exact.
        changes["gpus"] = changes["min_gpus"] if job["gpus"] == job["min_gpus"] else job["gpus"]
    return job.but(**changes)


def _fitting(job: Job) -> Job:
    recipe = {name: value for name, value in job.settings.items() if name in recipe_settings()}
    return Job(job.config, **recipe, gpu="h100-sxm-80gb", gpus=8)


def command_line(job: Job, command: str = "cheapest") -> list[str]:
    """Return the words of the command that asks about a job, with all of its settings."""
    words = ["gpufare", command]
    for name, value in job.settings.items():
        if name == "model" and job.config is not None:
            words += ["--config", str(job.config)]
        elif value is not False:
            words += _option(name, value)
    return words


def _option(name: str, value: Any) -> list[str]:
    """Return the words that give a setting on the command line."""
    option = job_settings()[name].option
    return [option] if value is True else [option, word(value)]


def word(value: Any) -> str:
    """Return the value of a setting as one writes it on the command line."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _unused_terms(session: Session) -> str:
    """Explain why a short job gets no answer with a reserved price."""
    least = "SELECT value FROM main.cost_parameters WHERE name = 'least_share_used'"
    ((share,),) = session.ask(least).rows
    return (
        f"a reservation is paid for in full, and ranked only for jobs that use at least {share:.0%} of its "
        "GPU-hours; on-demand prices need no term"
    )


def explained(row: Mapping[str, Any], replayed: Collection[str] = ()) -> list[str]:
    """Return the first answer in sentences: its cost, the savings from a longer wait, its plan, its
    assumptions, and how far to trust it.

    ``replayed`` lists the sources whose prices come from saved pages and could pass for live ones."""
    trust = _trust(row, replayed, cautions(row))
    return [_cost(row), *wait_lines(row), plan_text(row), *assumptions(row), trust]


def _cost(row: Mapping[str, Any]) -> str:
    kind = kind_text(row["price_kind"])
    tier = f", {row['tier']}" if row["tier"] and kind_text(row["tier"]) != kind else ""
    money = f"${row['total_usd']:,.2f} (${row['total_usd_low']:,.2f} to ${row['total_usd_high']:,.2f})"
    idle = f" ({row['gpus_billed']} are paid for)" if row["gpus_billed"] > row["gpu_count"] else ""
    spot = f" {interruptions_text(row)}" if row["price_kind"] == "spot" else ""
    reserved = (
        f" Whole terms of {row['term_days']} days are paid for (${row['commitment_usd']:,.2f}); the job uses"
        f" {row['share_used']:.1%} of its GPU-hours."
        if row["term_days"] and row["commitment_usd"]
        else ""
    )
    electricity = " of electricity" if kind == "own" else ""
    return (
        f"{row['gpu_count']} x {row['gpu']}{idle}{_where(row, tier)}: {money} for the "
        f"finished job, {_hours(row)} at ${price_text(row['usd_per_hour'])}{electricity} per hour."
        f"{spot}{reserved}"
    )


def interruptions_text(row: Mapping[str, Any]) -> str:
    """Return how often spot machines are assumed to be taken away, and what that takes and costs."""
    each = "it is" if row["node_count"] == 1 else "each machine is"
    return (
        f"Interruptions are ${row['interruption_usd']:,.2f} of it: {each} assumed to be taken away every "
        f"{row['hours_between_interruptions']:g} hours ({row['interruptions']:,.2f} times in all), a restart "
        f"takes {row['restart_minutes']:,.0f} minutes, and the training must write checkpoints."
    )


def _duration(hours: float) -> str:
    return f"{number_text(hours)} hours" + (f" ({_days(hours)})" if hours >= MIN_HOURS_IN_DAYS else "")


def _days(hours: float) -> str:
    return f"{hours / 24:,.0f} days"


def _hours(row: Mapping[str, Any]) -> str:
    """Return the hours with their band, and with the unpaid wait for capacity that is part of the hours."""
    days = f"{_days(row['hours'])}; " if row["hours"] >= MIN_HOURS_IN_DAYS else ""
    middle, low, high = (number_text(row[name]) for name in ("hours", "hours_low", "hours_high"))
    band = f"{middle} hours ({days}{low} to {high})"
    if row["price_kind"] != "flex_start":
        return band
    return f"{band}, {number_text(row['wait_hours'])} of them an assumed and unpaid wait for capacity,"


def wait_lines(row: Mapping[str, Any]) -> list[str]:
    """Return notes on a deadline that is missed or that costs extra to meet."""
    lines = []
    if not row["meets_deadline"]:
        deadline = _duration(row["max_hours"])
        lines.append(
            f"Nothing finishes within {deadline}; "
            "the ranking has the fastest answer and those that take only a little longer."
        )
    if row["longer_wait_usd"] is not None:
        late = f"{way_text(json.loads(row['longer_wait_way']))} in {_duration(row['longer_wait_hours'])}"
        lines.append(f"If you can wait, it costs ${row['longer_wait_usd']:,.2f}: {late}.")
    return lines


def needed_text(plan: Mapping[str, Any], digits: int) -> str:
    """Return in words the memory without which a plan, and the smallest plan on the same GPUs, die."""
    # memory_gib includes unused memory that the allocator keeps, up to the whole card.
    usable, least = plan["usable_memory_gib"], plan["least_needed_gib"]
    needed = usable - plan["memory_margin_gib"]
    smallest = f" ({least:.{digits}f} with the smallest plan)" if f"{least:.1f}" != f"{needed:.1f}" else ""
    return f"{needed:.{digits}f} of {usable:.{digits}f} GiB per GPU{smallest}"


def plan_text(row: Mapping[str, Any]) -> str:
    """Return the memory, probability to fit, settings and speed of an answer's plan in a sentence."""
    kept = "frozen weights" if row["method"] in ADAPTER_METHODS else "training state"
    offload = f", its {kept} in host memory" if row["offload"] else ""
    return (
        f"It needs {needed_text(row, 1)} and fits with a "
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
"""Assumed values as people write them; other values are shown as they are."""


_BRIEFLY = ("model", "method", "lora_rank", "unquantized", "stack", "is_packed", "seq_len", "unused_settings")
"""The assumptions that a short line lists."""


def assumptions(row: Mapping[str, Any], *, briefly: bool = False) -> list[str]:
    """Return lines with the assumptions of a row of ``cheapest_for``: corrections from own runs, the training
    recipe (``briefly``: only what changes an answer most), the offers whose place is unknown, and sequences
    longer than the model supports."""
    taken = json.loads(row["assumptions"])
    lines = [own_runs_text(taken), assumed(taken, row["method"], briefly=briefly), *skipped(taken)]
    if "max_context" in taken:
        longer = f"sequences longer than the {taken['max_context']} tokens that the model supports"
        lines.append(f"CAREFUL: {longer}.")
    return [line for line in lines if line]


def own_runs_text(taken: Mapping[str, Any]) -> str | None:
    """Return a line on how own runs corrected an answer, if they did; ``taken``: its assumptions."""
    texts = corrections(taken)
    return f"Own runs: {', '.join(texts)}." if texts else None


def skipped(taken: Mapping[str, Any]) -> list[str]:
    """Return lines on the offers that an answer skips because of their place; ``taken``: its assumptions."""
    lines = []
    if "offers_without_place" in taken:
        lines.append(f"Skipped: {taken['offers_without_place']:,} offers whose place is not known.")
    if "countries_left_out" in taken:
        names = ", ".join(map(country_name, taken["countries_left_out"]))
        lines.append(f"Skipped: offers in {names}, under sanctions (--country ranks them).")
    return lines


def assumed(taken: Mapping[str, Any], method: str, *, briefly: bool = False) -> str | None:
    """Return one line with the values assumed for the parts of the recipe that the question left open
    (``briefly``: only what changes an answer most); CSV and JSON output lists every assumption."""
    if briefly:
        taken = {name: taken[name] for name in _BRIEFLY if name in taken}
    named = {name: _IN_WORDS.get(value, value) for name, value in taken.items() if isinstance(value, str)}
    packed = "packed " if taken.get("is_packed") else ""
    parts = (
        f"planned as {named['model']}" if "model" in named else None,
        f"method {named['method']}" if "method" in named else None,
        _adapters(taken.get("lora_rank"), named.get("lora_targets")),
        named.get("quantization"),
        "fused experts in 16 bits" if "unquantized" in named else None,
        named.get("stack"),
        _precision(named["training_precision"], method) if "training_precision" in named else None,
        named.get("optimizer"),
        f"software of {named['software_date']}" if "software_date" in named else None,
        f"{packed}sequences of {taken['seq_len']:,} tokens"
        if "seq_len" in taken
        else packed and f"{packed}sequences",
        f"{taken['global_batch_tokens']:,} tokens per optimizer step"
        if "global_batch_tokens" in taken
        else None,
        _epochs(taken["epochs"], taken["tokens_per_epoch"]) if "epochs" in taken else None,
        f"a bid of {taken['bid']:g} times the least" if "bid" in taken else None,
        *(
            "examples not used because tokens is given"
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
    """Describe the assumed precision, and the planner's choice for GPUs without bf16."""
    if name == "amp":
        kept = "fp32 weights under bf16 autocast"
    else:
        kept = f"{name} compute" if method == "qlora" else f"{name} weights"
    return f"{kept} (fp16 where the GPU has no bf16)"


def price_doubts(row: Mapping[str, Any], replayed: Collection[str], known_age_days: int = 0) -> list[str]:
    """Return what speaks against an answer's price: a source in ``replayed``, and an age of more than
    OLD_PRICE_DAYS beyond ``known_age_days``."""
    doubts = []
    age_days = row["price_age_days"] + (row["price_day"] - _seen_on(row)).days
    if row["source"] in replayed:
        doubts.append("the price was replayed from a saved page: the provider was not asked")
    if age_days > known_age_days + OLD_PRICE_DAYS:
        doubts.append(f"the price is {age_days} days old")
    return doubts


def _seen_on(row: Mapping[str, Any]) -> date:
    # A saved page may be filed under a later day than its own.
    price_day: date = row["price_day"]
    return min(price_day, observed_day(row["observed_at"]))


def _trust(row: Mapping[str, Any], replayed: Collection[str], careful: list[str]) -> str:
    doubts, seen_on = price_doubts(row, replayed), _seen_on(row)
    nearest = f", closest published run {row['evidence_run']}" if row["evidence_run"] else ""
    address = row["source_url"].partition("?")[0]
    converted = (
        f" ({row['native_price'].normalize():f} {row['native_currency']} per {row['native_unit']}, "
        f"1 {row['native_currency']} = ${row['fx_rate'].normalize():f} on {row['fx_date']})"
        if row["fx_rate"]
        else ""
    )
    seen = {
        "own": f"Electricity as you gave it, {row['raw_label']}, and nothing else is charged",
        "quote": f"Price as you gave it, {row['raw_label']}; other charges at their defaults",
    }.get(row["price_kind"], f"Price seen {seen_on} at {address}{converted}")
    seen += f"; speed {row['evidence']}{nearest}."
    return seen + _careful([*doubts, *careful])
