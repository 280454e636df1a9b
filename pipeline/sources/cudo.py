"""CUDO Compute: machine types whose parts are priced separately."""

import math
from decimal import Decimal
from typing import Any

from pipeline.sources import kit


@kit.reader("no machine type with a GPU")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Machine types with GPUs, each at the price of a machine with one GPU and the settings' vCPUs and
    memory, or the nearest amounts that the answer allows. Machine types without a GPU are skipped."""
    machines = audit.items(answer, "machineTypes")
    with_gpu = [machine for machine in machines if machine.peek("gpuModelId") or machine.peek("gpuModel")]
    return kit.read_rows(with_gpu, _read_machine, "machineType", "dataCenterId")


def _read_machine(machine: kit.JsonObject) -> kit.Listings:
    gpu, vcpu, memory_gib = (
        _part_price(machine, part) for part in ("gpuPriceHr", "vcpuPriceHr", "memoryGibPriceHr")
    )
    vcpus = _vcpus(machine.config.settings["vcpus_per_gpu"], machine)
    ram_gib = _memory_gib(machine.config.settings["ram_gib_per_gpu"], vcpus, machine)
    sizes = _machine_sizes(vcpus, ram_gib, machine)
    no_room = machine.get("maxGpuFree") is not None and not sizes
    yield machine.listing(
        machine.text("gpuModel"),
        1,
        gpu + vcpus * vcpu + ram_gib * memory_gib,
        native_unit="gpu_hour",
        instance_type=machine.optional_text("machineType"),
        gpu_counts=sizes,
        region=machine.optional_text("dataCenterId"),
        available=False if no_room else kit.is_available(machine.get("totalGpuFree", "maxGpuFree")),
        vcpus=vcpus,
        ram_gib=ram_gib,
        storage_usd_per_gb_month=kit.usd_per_gb_month(_part(machine, "minStorageGibPriceHr"), kit.GB_PER_GIB),
    )


def _machine_sizes(vcpus: int, ram_gib: int, machine: kit.JsonObject) -> tuple[int, ...] | None:
    """Return the GPU counts that fit, with their vCPUs and memory, on the host with the most room; None if
    nothing is free or the answer does not say. (``total...Free`` counts all hosts together.)"""
    room = {"maxGpuFree": 1, "maxVcpuFree": vcpus, "maxMemoryGibFree": ram_gib}
    fitting = [
        machine.whole_number(name) // part for name, part in room.items() if machine.get(name) is not None
    ]
    most = min(fitting) if machine.get("maxGpuFree") is not None else 0
    return tuple(range(1, most + 1)) or None


def _part_price(machine: kit.JsonObject, part: str) -> Decimal:
    """Return the price of a part. Raises a RowError that names the part."""
    try:
        return kit.price_of(_part(machine, part))
    except kit.RowError as error:
        raise kit.RowError(error.reason, f"{part}: {error}") from error


def _part(machine: kit.JsonObject, part: str) -> Any:
    """Return a part's stated price, from ``{"value": "0.0025"}`` or from a bare value."""
    price = machine.get(part)
    return price.get("value") if isinstance(price, dict) else price


def _vcpus(wanted: int, machine: kit.JsonObject) -> int:
    """Return the wanted number of vCPUs for one GPU, clamped to the answer's limits. Raises RowError."""
    most = wanted if machine.get("maxVcpuPerGpu") is None else machine.whole_number("maxVcpuPerGpu")
    return max(1, machine.whole_number("minVcpuPerGpu"), min(wanted, most))


def _memory_gib(wanted: int, vcpus: int, machine: kit.JsonObject) -> int:
    """Return the wanted memory in GiB, clamped to the answer's limits: minVcpuPerMemoryGib and
    maxVcpuPerMemoryGib are the fewest and most vCPUs per GiB. Raises RowError."""
    most_per_gib = _limit(machine, "maxVcpuPerMemoryGib")
    least_per_gib = _limit(machine, "minVcpuPerMemoryGib")
    least = math.ceil(vcpus / most_per_gib) if most_per_gib else 1
    most = math.floor(vcpus / least_per_gib) if least_per_gib else wanted
    return max(1, least, min(wanted, most))


def _limit(machine: kit.JsonObject, name: str) -> Decimal | None:
    """Return a limit, or None if it is not stated. Raises RowError for a limit that is not above zero."""
    if machine.get(name) is None:
        return None
    limit = machine.decimal(name)
    if limit <= 0:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"{name} is {limit}")
    return limit
