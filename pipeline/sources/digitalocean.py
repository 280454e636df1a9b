"""DigitalOcean: GPU Droplets, from the tables in the documentation or from /v2/sizes."""

import re

from pipeline.sources import kit

_PER_DROPLET_HOUR = frozenset({"h", "hr", "hour", "droplet/hour", "droplet/hr"})


@kit.reader("no GPU droplet in any answer")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Droplets with GPUs, priced per Droplet. CPU sizes and tables without a GPU column are skipped.

    Raises SourceChangedError for a page without an on-demand price.
    """
    return _read_sizes(answer, audit) if answer.is_json else _read_page(answer, audit)


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    rows: list[kit.Listing | kit.Reject] = []
    for tag in kit.page(answer).find_all("table"):
        grid = kit.table(tag)
        if not kit.is_hidden(tag) and kit.columns(grid.headers, audit.config.settings["headers"]["gpu"]):
            audit.columns(grid.headers)
            heading = tag.find_previous(["h1", "h2", "h3", "h4"])
            rows += _read_table(grid, kit.text_of(heading) if heading else "", answer, audit.config)
    if not any(isinstance(row, kit.Listing) and row.price_kind == "on_demand" for row in rows):
        raise answer.changed("no on-demand price")
    return iter(rows)


def _read_table(grid: kit.Table, heading: str, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    """Yield the rows of a table; the heading above it says which kind of prices it has."""
    kind = kit.price_kind(heading)
    headers = config.settings["headers"]
    gpu_at, price_at = (kit.column(grid.headers, headers[name], answer) for name in ("gpu", "price"))
    is_hourly = re.search(r"\b(?:hour|hourly|hr)\b", grid.headers[price_at], re.IGNORECASE)
    # A price per GPU, or a price without "per hour" in its cell or header, is refused.
    units = _PER_DROPLET_HOUR | {""} if is_hourly else _PER_DROPLET_HOUR
    yield from grid.other_rows(answer)
    for _, raw in grid.full_rows():
        label = raw[gpu_at]
        try:
            price = kit.cell_price(raw[price_at], units)
            if kind not in ("on_demand", "spot"):
                detail = f"a price under {heading!r}, whose terms are unknown"
                raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
            yield price.listing(label, kit.gpu_count_in(label) or 1, answer, price_kind=kind)
        except kit.RowError as error:
            yield error.reject(label, raw, answer)


def _read_sizes(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    sizes = (size for size in audit.items(answer, "sizes") if size.peek("gpu_info"))
    return kit.read_rows(sizes, _read_size, "slug")


def _read_size(size: kit.JsonObject) -> kit.Listings:
    """Yield one listing per region, because a size's list of regions changes from hour to hour."""
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
