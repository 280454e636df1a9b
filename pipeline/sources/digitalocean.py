"""DigitalOcean: GPU Droplets, from the tables of the documentation or from /v2/sizes."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.html import is_hidden, page, text_of, texts_of
from pipeline.parsing.json_lists import items_of, object_in, objects_in
from pipeline.parsing.prices import RowError, cell_price, optional_number, price_of
from pipeline.parsing.tables import Table, column, columns, table
from pipeline.parsing.text import UnreadableError, whole_number
from pipeline.parsing.units import gb_from_gib, gib_from_mib

_GPU_COUNT = re.compile(r"\((\d{1,2})x\)", re.IGNORECASE)
_OTHER_COUNT = re.compile(r"\b\d{1,2} ?x\b|\bx ?\d{1,2}\b|\b\d{1,2} gpus?\b", re.IGNORECASE)
_KINDS: dict[str, PriceKind] = {"on_demand": "on_demand", "spot": "spot"}
_PER_DROPLET_HOUR = frozenset({"h", "hr", "hour", "droplet/hour", "droplet/hr"})


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Droplets with GPUs: prices are per droplet, not per GPU.

    CPU sizes and tables without a GPU column are not ours and are passed over. Raises SourceChangedError
    when a page has no section for on-demand prices or nothing at all can be read.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: no GPU droplet in any answer")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    return _read_sizes(answer) if answer.is_json else _read_page(answer, config)


def _read_page(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    prices: dict[tuple[str, str], Decimal] = {}
    for tag in page(answer).find_all("table"):
        grid = table(tag)
        if is_hidden(tag) or not columns(grid.headers, config.settings["headers"]["gpu"]):
            continue
        section, heading = _section(tag, config)
        for row in _read_table(grid, section, heading, answer, config):
            if isinstance(row, Listing):
                _refuse_second_price(row, prices)
            yield row
    if not any(kind == "on_demand" for kind, _ in prices):
        raise SourceChangedError(f"{answer.url}: no on-demand price under {config.settings['sections']}")


def _section(tag: Tag, config: SourceConfig) -> tuple[str | None, str]:
    """The section a table stands in: that of the nearest heading above it, or of the heading above that."""
    nearest, levels = "", ["h1", "h2", "h3", "h4"]
    while levels and isinstance(heading := tag.find_previous(levels), Tag):
        text = text_of(heading)
        for name, wanted in config.settings["sections"].items():
            if str(wanted) in text.casefold():
                return name, text
        nearest = nearest or text
        levels = levels[: levels.index(heading.name)]
    return None, nearest


def _refuse_second_price(row: Listing, prices: dict[tuple[str, str], Decimal]) -> None:
    """A table may stand twice on the page, but not with two prices for one droplet."""
    known = prices.setdefault((row.price_kind, row.raw_label), row.native_price)
    if known != row.native_price:
        raise SourceChangedError(
            f"{row.answer.url}: {row.raw_label!r} has two {row.price_kind} prices: "
            f"{known} and {row.native_price}"
        )


def _read_table(
    grid: Table, section: str | None, heading: str, answer: Answer, config: SourceConfig
) -> Iterator[Listing | Reject]:
    gpu_at = column(grid.headers, config.settings["headers"]["gpu"], answer)
    price_at = column(grid.headers, config.settings["headers"]["price"], answer)
    for cells in grid.full_rows(answer):
        if isinstance(cells, Reject):
            yield cells
            continue
        raw = texts_of(cells)
        is_hourly = re.search(r"\b(?:hour|hourly|hr)\b", grid.headers[price_at], re.IGNORECASE)
        units = _PER_DROPLET_HOUR | {""} if is_hourly else _PER_DROPLET_HOUR
        yield _read_row(raw[gpu_at], raw[price_at], units, section, heading, raw, answer)


def _read_row(
    label: str,
    cell: str,
    units: frozenset[str],
    section: str | None,
    heading: str,
    raw: list[str],
    answer: Answer,
) -> Listing | Reject:
    """One row. A price per GPU, or without "per hour" in cell or header, is not what this table holds."""
    try:
        price, currency = cell_price(cell, units)
    except RowError as error:
        return Reject(error.reason, f"{label}: {error}", raw, answer)
    if section not in _KINDS:
        detail = f"{label}: a price under {heading!r}, whose terms are not known"
        return Reject(RejectReason.UNKNOWN_TERMS, detail, raw, answer)
    gpu_count = _gpu_count(label)
    if gpu_count is None:
        detail = f"{label!r} does not say clearly how many GPUs it has"
        return Reject(RejectReason.UNKNOWN_GPU_COUNT, detail, raw, answer)
    return Listing(
        raw_label=label,
        gpu_count=gpu_count,
        price_kind=_KINDS[section],
        native_price=price,
        native_currency=currency,
        native_unit="instance_hour",
        answer=answer,
    )


def _gpu_count(label: str) -> int | None:
    """``(8x)`` says eight; no count says one; a count in any other spelling is not guessed at."""
    counts = _GPU_COUNT.findall(label)
    if len(counts) == 1:
        return int(counts[0]) or None
    return None if counts or _OTHER_COUNT.search(label) else 1


def _read_sizes(answer: Answer) -> Iterator[Listing | Reject]:
    for size in items_of(answer, "sizes"):
        if size.get("gpu_info"):
            yield from _read_size(size, answer)


def _read_size(size: dict[str, Any], answer: Answer) -> Iterator[Listing | Reject]:
    """One listing per region: a size is created in a region, and its list of regions changes by the hour."""
    gpu = object_in(size, "gpu_info")
    try:
        price = price_of(size.get("price_hourly"))
        gpu_count = whole_number(gpu.get("count"))
        label, slug = str(gpu["model"]), str(size["slug"])
        if gpu_count < 1:
            raise UnreadableError(f"{gpu_count} GPUs")
    except RowError as error:
        yield Reject(error.reason, f"{size.get('slug')}: {error}", size, answer)
        return
    except (KeyError, UnreadableError) as error:
        detail = f"{size.get('slug')}: no readable GPU count, model or slug ({error})"
        yield Reject(RejectReason.MISSING_FIELD, detail, size, answer)
        return
    regions = size.get("regions")
    for region in (isinstance(regions, list) and regions) or [None]:
        yield Listing(
            raw_label=label,
            instance_type=slug,
            gpu_count=gpu_count,
            price_kind="on_demand",
            native_price=price,
            native_currency="USD",
            native_unit="instance_hour",
            answer=answer,
            context=_total_vram(gpu),
            region=region,
            available=_available(size),
            vcpus=optional_number(size.get("vcpus")),
            ram_gib=gib_from_mib(size.get("memory")),
            local_disk_gb=_disk_gb(size),
        )


def _available(size: dict[str, Any]) -> bool | None:
    if not size.get("regions", True):
        return False
    said = size.get("available")
    return said if isinstance(said, bool) else None


def _total_vram(gpu: dict[str, Any]) -> dict[str, str | float]:
    """The memory of all GPUs of the droplet together (640 GiB for eight H100)."""
    amount = optional_number(object_in(gpu, "vram").get("amount"))
    return {} if amount is None else {"vram_total_gb": amount}


def _disk_gb(size: dict[str, Any]) -> float | None:
    """Boot and scratch disks together."""
    amounts = [
        optional_number(object_in(disk, "size").get("amount")) for disk in objects_in(size, "disk_info")
    ]
    known = [amount for amount in amounts if amount is not None]
    return round(gb_from_gib(sum(known)), 1) if known else None
