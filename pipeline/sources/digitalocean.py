"""DigitalOcean: GPU Droplets, from the tables of the documentation or from /v2/sizes."""

import re

from bs4 import Tag

from pipeline.sources import kit

_KINDS: dict[str, kit.PriceKind] = {"on_demand": "on_demand", "spot": "spot"}
_PER_DROPLET_HOUR = frozenset({"h", "hr", "hour", "droplet/hour", "droplet/hr"})


@kit.reader("no GPU droplet in any answer")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Droplets with GPUs, priced per droplet. CPU sizes and tables without a GPU column are skipped.

    Raises SourceChangedError for a page without an on-demand price.
    """
    return _read_sizes(answer, audit) if answer.is_json else _read_page(answer, audit)


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    rows: list[kit.Listing | kit.Reject] = []
    for tag in kit.page(answer).find_all("table"):
        grid = kit.table(tag)
        if not kit.is_hidden(tag) and kit.columns(grid.headers, audit.config.settings["headers"]["gpu"]):
            audit.columns(grid.headers)
            rows += _read_table(grid, *_section(tag, audit.config), answer, audit.config)
    if not any(isinstance(row, kit.Listing) and row.price_kind == "on_demand" for row in rows):
        raise answer.changed(f"no on-demand price under {audit.config.settings['sections']}")
    return iter(rows)


def _section(tag: Tag, config: kit.SourceConfig) -> tuple[str | None, str]:
    """Return the section of a table, by the nearest heading above it that names one, and that heading."""
    nearest, levels = "", ["h1", "h2", "h3", "h4"]
    while levels and isinstance(heading := tag.find_previous(levels), Tag):
        text = kit.text_of(heading)
        for name, wanted in config.settings["sections"].items():
            if str(wanted) in text.casefold():
                return name, text
        nearest = nearest or text
        levels = levels[: levels.index(heading.name)]
    return None, nearest


def _read_table(
    grid: kit.Table, section: str | None, heading: str, answer: kit.Answer, config: kit.SourceConfig
) -> kit.Rows:
    headers = config.settings["headers"]
    gpu_at, price_at = (kit.column(grid.headers, headers[name], answer) for name in ("gpu", "price"))
    is_hourly = re.search(r"\b(?:hour|hourly|hr)\b", grid.headers[price_at], re.IGNORECASE)
    # A price per GPU, or one without "per hour" in cell or header, is refused.
    units = _PER_DROPLET_HOUR | {""} if is_hourly else _PER_DROPLET_HOUR
    yield from grid.other_rows(answer)
    for _, raw in grid.full_rows():
        label = raw[gpu_at]
        try:
            price = kit.cell_price(raw[price_at], units)
            if section not in _KINDS:
                detail = f"a price under {heading!r}, whose terms are unknown"
                raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
            yield price.listing(label, kit.gpu_count_in(label) or 1, answer, price_kind=_KINDS[section])
        except kit.RowError as error:
            yield error.reject(label, raw, answer)


def _read_sizes(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    sizes = (size for size in audit.items(answer, "sizes") if size.peek("gpu_info"))
    return kit.read_rows(sizes, _read_size, "slug")


def _read_size(size: kit.JsonObject) -> kit.Listings:
    """One listing per region: a size's list of regions changes by the hour."""
    gpu, regions, available = size.object("gpu_info"), size.get("regions"), size.get("available")
    total_vram_gib = gpu.object("vram").optional_number("amount")
    disks_gib = [disk.object("size").optional_number("amount") or 0 for disk in size.objects("disk_info")]
    for region in (isinstance(regions, list) and regions) or [None]:
        yield size.listing(
            gpu.text("model"),
            gpu.gpu_count("count"),
            size.price("price_hourly"),
            instance_type=size.text("slug"),
            context={} if total_vram_gib is None else {"vram_total_gb": total_vram_gib},
            region=region,
            available=False if regions == [] else available if isinstance(available, bool) else None,
            vcpus=size.optional_number("vcpus"),
            ram_gib=size.optional_number("memory", per=kit.MIB_PER_GIB),
            local_disk_gb=round(kit.gb_from_gib(sum(disks_gib)), 1) if any(disks_gib) else None,
        )
