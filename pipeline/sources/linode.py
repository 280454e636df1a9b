"""Linode (Akamai Cloud): GPU plans of the public list of types."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import items_of, object_in, objects_in
from pipeline.parsing.prices import RowError, optional_number, price_of
from pipeline.parsing.text import UnreadableError, whole_number
from pipeline.parsing.units import gib_from_mib

MB_PER_GB = 1000


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Plans with GPUs, priced per Linode: one listing for the plan and one per region with its own price.

    Plans without GPUs are not ours and are passed over. Raises SourceChangedError without any GPU plan.
    """
    rows = (
        row
        for answer in answers
        for plan in items_of(answer, "data")
        if plan.get("class") == "gpu" or plan.get("gpus")
        for row in _read_plan(plan, answer)
    )
    return at_least_one(rows, f"{config.name}: no GPU plan in the list of types")


def _read_plan(plan: dict[str, Any], answer: Answer) -> Iterator[Listing | Reject]:
    try:
        plan_id, label, gpu_count = plan.get("id"), plan.get("label"), whole_number(plan.get("gpus"))
        if not isinstance(plan_id, str) or not isinstance(label, str):
            raise UnreadableError("id and label are not text")
    except UnreadableError as error:
        detail = f"{plan.get('id')}: no readable id, label or number of GPUs ({error})"
        yield Reject(RejectReason.MISSING_FIELD, detail, plan, answer)
        return
    if gpu_count < 1:
        detail = f"{plan_id} is in the GPU class but has {gpu_count} GPUs"
        yield Reject(RejectReason.UNKNOWN_GPU_COUNT, detail, plan, answer)
        return
    places = [
        (None, object_in(plan, "price")),
        *((place.get("id"), place) for place in objects_in(plan, "region_prices")),
    ]
    for region, money in places:
        try:
            price = price_of(money.get("hourly"))
        except RowError as error:
            where = region or "everywhere"
            yield Reject(error.reason, f"{plan_id}, {where}: {error}", plan, answer)
            continue
        yield Listing(
            raw_label=label,
            instance_type=plan_id,
            gpu_count=gpu_count,
            price_kind="on_demand",
            native_price=price,
            native_currency="USD",
            native_unit="instance_hour",
            answer=answer,
            region=region,
            vcpus=optional_number(plan.get("vcpus")),
            ram_gib=gib_from_mib(plan.get("memory")),
            local_disk_gb=_disk_gb(plan),
        )


def _disk_gb(plan: dict[str, Any]) -> float | None:
    disk_mb = optional_number(plan.get("disk"))
    return None if disk_mb is None else disk_mb / MB_PER_GB
