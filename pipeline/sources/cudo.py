"""CUDO Compute: machine types whose parts are priced one by one."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import RowError, is_available, price_of
from pipeline.parsing.text import UnreadableError, number, whole_number
from pipeline.parsing.units import GB_PER_GIB, HOURS_PER_MONTH


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Machine types with GPUs, as the price of the smallest machine with one GPU.

    Machine types without a GPU are not ours and are passed over. Raises SourceChangedError without any GPU.
    """
    rows = (
        _read_machine(machine, answer, config)
        for answer in answers
        for machine in items_of(answer, "machineTypes")
        if machine.get("gpuModel") or machine.get("gpuModelId")
    )
    return at_least_one(rows, f"{config.name}: no machine type with a GPU")


def _read_machine(machine: dict[str, Any], answer: Answer, config: SourceConfig) -> Listing | Reject:
    name = f"{machine.get('machineType')} in {machine.get('dataCenterId')}"
    try:
        gpu = _part_price(machine, "gpuPriceHr")
        vcpu = _part_price(machine, "vcpuPriceHr")
        memory_gib = _part_price(machine, "memoryGibPriceHr")
        vcpus = max(1, whole_number(machine.get("minVcpuPerGpu")))
        ram_gib = _least_memory_gib(vcpus, machine)
    except RowError as error:
        return Reject(error.reason, f"{name}: {error}", machine, answer)
    except UnreadableError as error:
        detail = f"{name}: the smallest machine is not clear ({error})"
        return Reject(RejectReason.MISSING_FIELD, detail, machine, answer)
    if not machine.get("gpuModel"):
        detail = f"{name} names no GPU model"
        return Reject(RejectReason.MISSING_FIELD, detail, machine, answer)
    return Listing(
        raw_label=str(machine["gpuModel"]),
        instance_type=machine.get("machineType"),
        gpu_count=1,
        price_kind="on_demand",
        native_price=gpu + vcpus * vcpu + ram_gib * memory_gib,
        native_currency="USD",
        native_unit="gpu_hour",
        answer=answer,
        region=machine.get("dataCenterId"),
        available=is_available(machine.get("totalGpuFree", machine.get("maxGpuFree"))),
        vcpus=vcpus,
        ram_gib=ram_gib,
        storage_usd_per_gb_month=_storage_usd_per_gb_month(machine, config),
    )


def _part_price(machine: dict[str, Any], part: str) -> Decimal:
    """The price of a part, written ``{"value": "0.0025"}``. Raises RowError naming the part."""
    held = machine.get(part)
    try:
        return price_of(held.get("value") if isinstance(held, dict) else held)
    except RowError as error:
        raise RowError(error.reason, f"{part}: {error}") from error


def _least_memory_gib(vcpus: int, machine: dict[str, Any]) -> int:
    """A GiB may have at most maxVcpuPerMemoryGib vCPUs; without that bound, a machine still has 1 GiB."""
    most_vcpus_per_gib = machine.get("maxVcpuPerMemoryGib")
    if most_vcpus_per_gib is None:
        return 1
    bound = number(most_vcpus_per_gib)
    if bound <= 0:
        raise UnreadableError(f"maxVcpuPerMemoryGib is {bound}")
    return max(1, math.ceil(vcpus / bound))


def _storage_usd_per_gb_month(machine: dict[str, Any], config: SourceConfig) -> Decimal | None:
    try:
        per_gib_hour = _part_price(machine, "minStorageGibPriceHr")
    except RowError:
        return None
    per_gib_month = per_gib_hour * HOURS_PER_MONTH
    return round(per_gib_month / GB_PER_GIB, 6)
