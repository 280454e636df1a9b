"""CloudRift: variants of instance types, priced in cents per hour for the whole machine, by data centre."""

from functools import partial

from pipeline.sources import kit

CENTS_PER_DOLLAR = 100


@kit.reader("no instance type with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU variant and data centre; without data centres, one listing without a region."""
    page = audit.envelope(answer, "instance_types")
    for kind in page.object("data").items("instance_types"):
        # CPU types have variants without GPUs.
        variants = [variant for variant in kind.objects("variants") if variant.peek("gpu_count") != 0]
        yield from kit.read_rows(variants, partial(_read_variant, kind=kind), "name")


def _read_variant(variant: kit.JsonObject, kind: kit.JsonObject) -> kit.Listings:
    vram_gib, ram_gib, disk_gib = (
        variant.optional_number(name, per=kit.BYTES_PER_GIB) for name in ("vram", "dram", "disk")
    )
    for region, available in _places(variant):
        yield variant.listing(
            kind.text("brand_short"),
            variant.gpu_count("gpu_count"),
            variant.price("cost_per_hour") / CENTS_PER_DOLLAR,
            instance_type=variant.text("name"),
            context={"vram_gb": round(vram_gib)} if vram_gib else {},  # memory of one GPU
            region=region,
            available=available,
            vcpus=variant.optional_number("cpu_count"),
            ram_gib=ram_gib,
            local_disk_gb=None if disk_gib is None else kit.gb_from_gib(disk_gib),
        )


def _places(variant: kit.JsonObject) -> list[tuple[str | None, bool | None]]:
    """Return the regions that have machines of the variant, and whether any machine is free in each."""
    machines, free = variant.get("nodes_per_dc"), variant.get("available_nodes_per_dc")
    free = free if isinstance(free, dict) else {}
    names = dict.fromkeys([*(machines if isinstance(machines, dict) else ()), *free])
    if not names:
        available = kit.is_available(variant.get("available_nodes"))
        if available is None:
            raise kit.RowError(
                kit.RejectReason.NOT_OFFERED, "neither a region nor a number of machines is given"
            )
        return [(None, available)]
    return [(name, (kit.optional_number(free.get(name)) or 0) > 0 if free else None) for name in names]
