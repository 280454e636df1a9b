"""Vultr: cloud GPU plans, sold in fractions of a card, and bare metal known by its plan id.

Prices are per hour of the whole plan and the same wherever it can be deployed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import RowError, optional_number, price_of
from pipeline.parsing.text import UnreadableError, number
from pipeline.parsing.units import gib_from_mib

PRICES: tuple[tuple[str, PriceKind, str], ...] = (
    ("hourly_cost", "on_demand", "deploy_ondemand"),
    ("hourly_cost_preemptible", "spot", "deploy_preemptible"),
)
"""Price fields of a plan: field, kind, and the field that says whether it can be deployed so."""


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per GPU plan, price kind and location. Plans without a GPU are not read.

    A plan that can be deployed nowhere keeps one listing without region, ``available`` False.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: no plan with a GPU")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    plans = items_of(answer, "plans", "plans_metal")
    if plans and not any("hourly_cost" in plan for plan in plans):
        raise SourceChangedError(f"{answer.url}: no plan has an hourly_cost")
    for plan in plans:
        yield from _plan(plan, answer, config)


def _plan(plan: dict[str, Any], answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    plan_id = plan.get("id")
    try:
        if not isinstance(plan_id, str):
            raise RowError(RejectReason.MISSING_FIELD, "a plan without id")
        words = plan_id.lower().split("-")
        if plan.get("type") == "vcg" or "gpu_type" in plan:
            offers = _offers(plan, answer, config, *_cloud_gpu(plan, config))
        elif "gpu" in words or words[0] == "vcg" or plan.get("gpu_brand"):
            # Bare metal, and cloud GPUs on machines of their own (type vdm), name their GPUs in the id only.
            offers = _offers(plan, answer, config, plan_id, None, {})
        else:
            return
    except RowError as error:
        yield Reject(error.reason, f"{plan_id}: {error}", plan, answer)
        return
    yield from offers


def _cloud_gpu(plan: dict[str, Any], config: SourceConfig) -> tuple[str, float, dict[str, float]]:
    """Label, number of GPUs (a fraction for a slice) and memory per GPU of a cloud GPU plan."""
    gpu_type = plan.get("gpu_type")
    if not isinstance(gpu_type, str) or not gpu_type:
        raise RowError(RejectReason.MISSING_FIELD, "the plan has no gpu_type")
    whole = config.settings["vram_gb_per_gpu"].get(gpu_type)
    if whole is None:
        raise RowError(
            RejectReason.UNKNOWN_GPU_COUNT,
            f"the memory of a whole {gpu_type} is not in catalog/sources/vultr.yaml",
        )
    try:
        count = number(plan.get("gpu_vram_gb")) / number(whole)
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"gpu_vram_gb: {error}") from error
    if count <= 0 or (count > 1 and count != count.to_integral_value()):
        raise RowError(
            RejectReason.UNKNOWN_GPU_COUNT, f"{plan['gpu_vram_gb']} GB are no number of {whole} GB {gpu_type}"
        )
    return gpu_type, float(count), {"vram_gb": float(whole)}


def _offers(
    plan: dict[str, Any],
    answer: Answer,
    config: SourceConfig,
    label: str,
    gpu_count: float | None,
    context: dict[str, float],
) -> Iterator[Listing | Reject]:
    for name, kind, deployable in PRICES:
        if kind == "spot" and plan.get(name) is None:
            continue
        try:
            if plan.get(deployable) is False:
                raise RowError(RejectReason.NOT_OFFERED, f"{deployable} is false")
            price = price_of(plan.get(name))
        except RowError as error:
            yield Reject(error.reason, f"{plan['id']} {name}: {error}", plan, answer)
            continue
        for region, available in _where(plan):
            yield Listing(
                raw_label=label,
                label_kind="gpu_name" if gpu_count else "instance_type",
                instance_type=plan["id"],
                gpu_count=gpu_count,
                price_kind=kind,
                native_price=price,
                native_currency=config.currency,
                native_unit="instance_hour",
                answer=answer,
                context=context,
                region=region,
                available=available,
                vcpus=optional_number(plan.get("vcpu_count", plan.get("cpu_threads"))),
                ram_gib=gib_from_mib(plan.get("ram")),
                local_disk_gb=_times(plan.get("disk"), optional_number(plan.get("disk_count")) or 1),
            )


def _where(plan: dict[str, Any]) -> list[tuple[str | None, bool | None]]:
    locations = plan.get("locations")
    if not isinstance(locations, list):
        return [(None, None)]
    return [(str(region), True) for region in dict.fromkeys(locations) if region] or [(None, False)]


def _times(value: Any, factor: float) -> float | None:
    amount = optional_number(value)
    return None if amount is None else amount * factor
