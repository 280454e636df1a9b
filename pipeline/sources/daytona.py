"""Daytona: GPU sandboxes, whose vCPUs, memory and disk are charged apart from the GPU, on demand and spot."""

from decimal import Decimal
from functools import partial

from pipeline.sources import kit

_KINDS: dict[str, kit.PriceKind] = {"onDemand": "on_demand", "spot": "spot"}


@kit.reader("no GPU")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU type and price kind. A type that cannot be created becomes a reject."""
    page = audit.envelope(answer, "gpus")
    gpus, hosts = page.items("gpus"), page.object("resources")
    for name, kind in _KINDS.items():
        yield from kit.read_rows(gpus, partial(_read_gpu, name, kind, hosts.object(name)), "type")


def _read_gpu(name: str, kind: kit.PriceKind, host: kit.JsonObject, gpu: kit.JsonObject) -> kit.Listings:
    label, price = gpu.text("type"), gpu.price(f"{name}PricePerHour")
    if label not in gpu.config.settings["gpu_types"]:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "no sandbox is known to be created with this type")
    for part, counted in gpu.config.settings["counted_host_prices"].items():
        if (asked := host.price(part)) > Decimal(counted):
            detail = f"{part} is {asked}, and rankings count {counted}"
            raise kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, detail)
    disk = kit.usd_per_gb_month(host.get("diskGiBPerHour"), kit.GB_PER_GIB)
    yield gpu.listing(
        label,
        1,
        price,
        price_kind=kind,
        native_unit="gpu_hour",
        storage_usd_per_gb_month=disk,
        host_usd_per_vcpu_hour=host.price("vcpuPerHour"),
        host_usd_per_gib_hour=host.price("memoryGiBPerHour"),
    )
