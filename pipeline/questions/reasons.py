"""Reasons in words, for the codes that the macros return."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pipeline.questions.numbers import number_text, price_text

INFEASIBLE = {
    "unsupported_architecture": "current frameworks no longer support this architecture",
    "no_fp8": "no fp8 on this GPU",
    "no_bf16": "no bf16 on this GPU",
    "no_4bit_kernels": "no 4-bit kernels for this vendor",
    "too_little_memory": "needs at least {needed_gib:.1f} GiB per GPU, {usable_memory_gib:.1f} usable",
}
"""Reasons why a plan does not fit, keyed by ``infeasible_reason``."""

_UNRANKED_MACHINES = {
    "gpu": "the job leaves this GPU out",
    "gpus": "it uses {gpus_used}, but the job allows at most {max_gpus}",
    "min_gpus": "it uses {gpus_used}, but the job asks for at least {min_gpus}",
    "max_nodes": "it is {node_count} machines, but the job allows at most {max_nodes}",
    "min_fit_probability": "it fits with a probability of {fit}, but the job asks for {asked_fit}",
    "evidence": "its speed is {evidence}, but the job asks for at least {least_evidence}",
    "max_hours": "it takes {hours_text} hours, but the deadline is {max_hours:,g} hours",
    "max_usd": "it costs {total_usd:,.2f} USD, but the budget is {max_usd:,.2f} USD",
    "another_costs_less": "another such machine costs less with as many GPUs",
    "too_many_gpus": "it has {gpus} GPUs, but the job allows at most {max_gpus}",
    "not_planned": "there is no plan for this number of these GPUs, or their specifications are incomplete",
}
"""Why a machine that a job names is not ranked, keyed by ``reason`` or ``missed`` of ``machine_ranks``."""

_WHY_NOT = {
    "ranked": "{gpu_count} of it at {provider}",
    "not_planned": "its specifications are incomplete",
    "might_not_fit": "fits with a probability of at most {fit}, but the job asks for {asked_fit}",
    "fits_in_another_number": "fits on {fits_from_gpus} GPUs or more, but the job allows at most {max_gpus}",
    "no_price": "no source has a ranked price for it",
    "not_asked_for": "the job leaves it out",
    "does_not_fit": "{short} GiB short per GPU (needs {needed}, {usable} usable)",
    "not_offered_so": "not {known}sold {ruled_out}; the nearest offer is ${cheapest[usd]:.2f} per GPU-hour "
    "at {cheapest_at}",
    "not_rented_in_that_number": "fits on {fits_on} GPUs, but can be rented only with {rented_in}",
    "network_too_slow": "several machines of it are planned with {planned_gbps:,.0f} Gbit/s between them, "
    "but the fastest that can be rented have {network_gbps:,.0f}",
    "host_memory_too_small": "each machine needs {planned_host:,.0f} GiB of host memory to load the model, "
    "but the largest that can be rented has {host:,.0f}",
    "thin_evidence": "its speed has weaker evidence than the job asks for",
    "too_late": "{nearest_way} takes {nearest_hours} hours, but the deadline is "
    "{nearest[max_hours]:,g} hours",
    "too_expensive": "{nearest_way} costs ${nearest[total_usd]:,.2f}, more than the budget",
    "stops_before_the_end": "{nearest_way} stops after {nearest[max_run_hours]:,g} hours, before the job is "
    "done",
    "mostly_unused": "{nearest_way} costs ${nearest[total_usd]:,.2f} and uses {used} of "
    "the GPU-hours paid for",
    "interrupted_too_often": "{nearest_way} would be taken away {nearest[interruptions]:,.0f} times: too "
    "often to finish in practice",
}
"""The place of a GPU in a ranking, or why it has no place, keyed by ``reason`` of ``why_not_for``."""


_SOLD = {
    "max_nodes": "as no more machines than {asked}",
    "tier": "on {asked} machines",
    "assumed_sizes": "in a size that a source states",
    "kind": "at {kind} prices",
    "max_term_days": "for terms of at most {asked} days",
    "max_age_days": "at a price at most {asked} days old",
    "provider": "by {asked}",
    "exclude_provider": "by anyone but {asked}",
    "source": "in the price list {asked}",
    "exclude_source": "outside the price list {asked}",
    "country": "in {place}",
    "exclude_country": "outside {place}",
    "continent": "in {place}",
    "sanctions": "outside countries under sanctions",
}
"""How a GPU would have to be sold, keyed by the ``constraints`` of ``why_not_for``, in the order of a
sentence."""


def _sold_text(names: Sequence[str], asked: Sequence[str | None]) -> str:
    """Return how a GPU would have to be sold to meet constraints with these values."""
    values = {name: (value or "").split(", ") for name, value in zip(names, asked, strict=True)}
    return " ".join(
        _SOLD[name].format(
            asked=_choice(values[name]),
            kind=_choice(map(kind_text, values[name])),
            place=_choice(map(_place, values[name])),
        )
        for name in _SOLD
        if name in values
    )


def _choice(names: Iterable[str]) -> str:
    """Return names as a choice, such as "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _place(name: str) -> str:
    """Return a country or continent, as a job gives it, in a sentence."""
    if name.lower() in ("eu", "us"):
        return f"the {name.upper()}"
    return name.upper() if len(name) == 2 else name.replace("_", " ").title()  # a country's code


def infeasible_text(row: Mapping[str, Any]) -> str:
    """Return why a plan does not fit, from its infeasible_reason, needed_gib and usable_memory_gib."""
    return INFEASIBLE[row["infeasible_reason"]].format_map(row)


def why_not_text(row: Mapping[str, Any]) -> str:
    """Return the place of a GPU in a ranking, or why it has no place, from a row of ``why_not_for``."""
    if row["reason"] == "does_not_fit" and row["infeasible_reason"] != "too_little_memory":
        return infeasible_text(row)
    facts = {**row, "asked_fit": f"{row['min_fit_probability']:.0%}"}
    if row["reason"] == "does_not_fit":
        facts |= _shortfall(row["needed_gib"], row["usable_memory_gib"])
    if row["constraints"]:
        sets = zip(row["constraints"], row["asked"], strict=True)
        facts["ruled_out"] = ", and not sold ".join(_sold_text(names, asked) for names, asked in sets)
    if row["fit_probability"] is not None:
        facts["fit"] = percent_text(row["fit_probability"])
    if row["cheapest"] is not None:
        offer = row["cheapest"]
        asks_place = {"country", "exclude_country", "continent"} & set(chain(*(row["constraints"] or ())))
        unknown = ", country not stated" if asks_place else ""
        country = f", {offer['country']}" if offer["country"] else unknown
        facts["known"] = "" if offer["country"] or not asks_place else "known to be "
        facts["cheapest_at"] = f"{offer['provider']} ({kind_text(offer['price_kind'])}{country})"
    if row["host_gib"] is not None:
        facts |= {"planned_host": math.ceil(row["planned_host_gib"]), "host": math.floor(row["host_gib"])}
    if row["nearest"] is not None:
        facts["nearest_way"] = "{gpu_count} of it at {provider}".format_map(row["nearest"])
        facts["nearest_hours"] = number_text(row["nearest"]["hours"])
        facts["used"] = percent_text(row["nearest"]["share_used"])
    for name, counts in (("fits_on", row["counts"]), ("rented_in", row["sold_counts"])):
        facts[name] = ", ".join(map(str, counts or ()))
    return _WHY_NOT[row["reason"]].format_map(facts)


def _shortfall(needed_gib: float, usable_gib: float) -> dict[str, str]:
    """Return the memory that a GPU lacks, needs and has, with as many digits as the difference takes."""
    digits = 1 if needed_gib - usable_gib >= 0.05 else 2  # rounds to 0.1
    needed, usable = (round(gib, digits) for gib in (needed_gib, usable_gib))
    gib = {"short": needed - usable, "needed": needed, "usable": usable}
    return {name: f"{amount:,.{digits}f}" for name, amount in gib.items()}


_DEARER_PARTS = {
    "interruption_usd": "its interruptions cost ${more:,.2f} more",
    "failure_usd": "its failures cost ${more:,.2f} more",
    "storage_usd": "its disk costs ${more:,.2f} more",
    "egress_usd": "its data transfer costs ${more:,.2f} more",
}
"""What makes an answer dearer besides its machine, keyed by the part of the total."""


def worse_text(row: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """Return why an answer is ranked below another one, the decisive reason first: what makes it dearer, or
    slower in a ranking by time. Both are rows of ``cheapest_for``."""
    longer = row["billed_hours"] / best["billed_hours"]
    slower = best["tokens_per_second"] / row["tokens_per_second"]
    time = (
        f"{_times(slower)} slower than rank {best['rank']} ({row['tokens_per_second']:,.0f} tokens/s against "
        f"{best['tokens_per_second']:,.0f})"
    )
    if row["objective"] == "time":
        took = (
            f"takes {number_text(row['hours'])} hours against {number_text(best['hours'])} of "
            f"rank {best['rank']}"
        )
        return time if slower > 1 else took
    more = {name: row[name] - best[name] for name in ("compute_usd", *_DEARER_PARTS)}
    dearest = max(more, key=lambda name: more[name])
    if dearest in _DEARER_PARTS:
        return _DEARER_PARTS[dearest].format(more=more[dearest])
    if slower <= 1:
        hours = f"{row['billed_hours']:,.2f} against {best['billed_hours']:,.2f}"
        time = f"more hours are paid for than on rank {best['rank']} ({hours})"
    return _dearer_machine(row, best, longer, time)


def _dearer_machine(row: Mapping[str, Any], best: Mapping[str, Any], longer: float, time: str) -> str:
    """Return why the machine costs more: the ``time``, that is ``longer`` times as long, or its price."""
    price, usual = (each["usd_per_hour"] + each["host_usd_per_hour"] for each in (row, best))
    against = f"(${price_text(price)} against ${price_text(usual)})"
    if not usual:
        return f"its hour costs ${price_text(price)}, that of rank {best['rank']} nothing"
    hourly = float(price / usual)
    if hourly <= 1:
        saved = f", and its hour costs only {_times(1 / hourly)} less {against}" if hourly < 1 else ""
        return f"{time}{saved}"
    hour = f"its hour costs {_times(hourly)} as much {against}"
    if longer <= 1:
        speed = row["tokens_per_second"] / best["tokens_per_second"]
        return f"{hour} for {_times(speed)} the speed" if speed > 1 else hour
    return f"{time}, and {hour}" if longer >= hourly else f"{hour}, and it is {time}"


def _times(ratio: float) -> str:
    """Return a ratio above 1 in words, such as 2.3 times."""
    return f"{ratio:,.{2 if ratio < 1.1 else 1 if ratio < 10 else 0}f} times"


def unranked_text(row: Mapping[str, Any]) -> str:
    """Return why a machine that a job names is not ranked, from a row that joins the machine's row of
    ``machine_ranks`` with the job's row of ``completed_jobs``."""
    if row["reason"] == "does_not_fit":
        return f"the job does not fit: {infeasible_text(row)}"
    facts = {
        **row,
        "asked_fit": f"{100 * row['min_fit_probability']:g}%",
        "gpus_used": f"{row['gpu_count']} GPU{'' if row['gpu_count'] == 1 else 's'}",
    }
    if row["hours"] is not None:
        facts["hours_text"] = number_text(row["hours"])
    if row["evidences"]:
        facts["least_evidence"] = row["evidences"][-1]
    if row["fit_probability"] is not None:
        facts["fit"] = percent_text(row["fit_probability"])
    reasons = row["missed"] or [row["reason"]]
    return "; ".join(_UNRANKED_MACHINES[reason].format_map(facts) for reason in reasons)


def kind_text(name: str) -> str:
    """Return a price kind as people write it."""
    return name.replace("_", "-")


def percent_text(probability: float) -> str:
    """Return a probability in whole percent, rounded down: 99.96% is not certain, and 89.6% is not 90%."""
    if 0.99 < probability < 1:
        return "over 99%"
    return "under 1%" if 0 < probability < 0.01 else f"{math.floor(round(100 * probability, 6))}%"


MEMORY_PARTS = {
    "weights": ("weights", "of the model, on the GPU"),
    "adapters": ("adapters", "LoRA weights"),
    "gradients": ("gradients", "resident at the peak"),
    "optimizer": ("optimizer state", "moments and masters"),
    "activations": ("activations and logits", "all else at the peak: {peak_phase}"),
    "kept": ("kept by the allocator", "not in use; freed when needed"),
    "process": ("driver and libraries", "the process itself"),
    "own": ("own runs", "what your runs took {beyond} the estimate"),
    "peak": ("peak memory", "the sum of the above"),
    "margin": ("margin", "lost between tensors, beyond the memory in use"),
    "needed": ("minimum needed", "peak and margin, less what the allocator keeps"),
}
"""The name and the meaning of each part of ``memory_parts``."""
