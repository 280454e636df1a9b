"""CoreWeave: one GPU table per region, made of ``div``s; a price per instance, on demand and spot.

Columns are found by the header row's text, as the regions have not the same ones. The price for inference on
a single GPU is left out: it is no machine to train on. Tables whose header names no GPU (CPU instances, which
have the GPU tables' classes too, and storage) are not ours.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import column, columns, page, text_of
from pipeline.parsing.prices import RowError, cell_price, has_price
from pipeline.parsing.text import UnreadableError, is_not_offered, number, whole_number

_COUNT = r"^(?:gpu count|(?:number|#) of gpus|gpus$)"
_KNOWN = r"(?:gpu|gpus|model|vram|vcpus|system|ram|local|on[- ]?demand|spot|inference|number|#)\b"
_REGION = re.compile(r"region\s*:?\s*(.+)", re.IGNORECASE)
_MOBILE_COPY: dict[PriceKind, str] = {
    "on_demand": ".instance-price .item-value",
    "spot": ".spot-price .item-value",
}


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where each value stands among a row's cells."""

    name: int
    count: int
    width: int
    prices: dict[PriceKind, int]
    vram: int | None
    vcpus: int | None
    ram: int | None
    disk: int | None
    unknown: list[int]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every on-demand and spot price of every region. Raises SourceChangedError without a GPU table."""
    for answer in answers:
        where: _Columns | None = None
        for table in page(answer).select("div.table-v2"):
            header = _header(table)
            if columns(header, r"\bGPUs?\b"):
                where = _columns(header, answer)
            elif header or "gpu-pricing" not in table.get_attribute_list("class"):
                continue
            # A table without a header has the columns of the one before it, the first one those of the yaml.
            where = where or _usual_columns(table, answer, config)
            yield from _read_table(table, where, answer, config)
        if where is None:
            raise SourceChangedError(f"{answer.url}: no table of GPUs on the page")


def _header(table: Tag) -> list[str]:
    row = table.select_one(".table-v2-header")
    return [text_of(cell) for cell in _direct_cells(row)] if row else []


def _direct_cells(row: Tag) -> list[Tag]:
    """The cells of a row's grid itself: the mobile copy repeats them one level deeper."""
    grid = row.select_one(".table-grid")
    return [] if grid is None else grid.find_all("div", class_="table-v2-cell", recursive=False)


def _usual_columns(table: Tag, answer: Answer, config: SourceConfig) -> _Columns:
    """The columns of a table that came without its header, known by how many cells its first row has."""
    first = table.select_one("[role=listitem]")
    width = len(_direct_cells(first)) if first else 0
    headers: list[str] = config.settings["usual_columns"][:width]
    if len(headers) != width or not columns(headers, r"^spot\b"):
        raise SourceChangedError(f"{answer.url}: the first GPU table has no header row and {width} columns")
    return _columns(headers, answer)


def _columns(header: list[str], answer: Answer) -> _Columns:
    def optional(pattern: str) -> int | None:
        found = columns(header, pattern)
        return found[0] if len(found) == 1 else None

    # A region may have no spot; a spot column of another name is a column of prices that is not known.
    prices: dict[PriceKind, int] = {"on_demand": column(header, r"^on[- ]?demand\b", answer)}
    if (spot_at := optional(r"^spot\b")) is not None:
        prices["spot"] = spot_at
    return _Columns(
        name=column(header, r"^(?:gpu )?model", answer),
        count=column(header, _COUNT, answer),
        width=len(header),
        prices=prices,
        unknown=[at for at in range(len(header)) if not re.match(_KNOWN, header[at], re.IGNORECASE)],
        vram=optional(r"^vram"),
        vcpus=optional(r"^vcpus"),
        ram=optional(r"^(?:system )?ram"),
        disk=optional(r"^local storage"),
    )


def _read_table(
    table: Tag, where: _Columns, answer: Answer, config: SourceConfig
) -> Iterator[Listing | Reject]:
    region = _region(table)
    rows = table.select("[role=listitem]")
    if not rows:
        raise SourceChangedError(f"{answer.url}: the GPU table of {region} has no rows")
    if not any(len(_direct_cells(row)) == where.width for row in rows):
        raise SourceChangedError(
            f"{answer.url}: no row of {region} has the {where.width} cells of its header"
        )
    for row in rows:
        cells = _direct_cells(row)
        if len(cells) != where.width:
            detail = f"a row of {region} has {len(cells)} cells under {where.width} headers"
            yield Reject(RejectReason.UNREADABLE_ROW, detail, text_of(row), answer)
            continue
        for at in where.unknown:
            if has_price(text_of(cells[at])):
                detail = f"{text_of(cells[where.name])}: a price in a column that is not known"
                raw = [text_of(cell) for cell in cells]
                yield Reject(RejectReason.UNKNOWN_PRICE_KIND, detail, raw, answer)
        for kind in where.prices:
            try:
                yield _listing(row, cells, kind, where, region, answer, config)
            except RowError as problem:
                raw = [text_of(cell) for cell in cells]
                detail = f"{raw[where.name]} in {region}, {kind}: {problem}"
                yield Reject(problem.reason, detail, raw, answer)


def _region(table: Tag) -> str | None:
    """What the line above the table names ("REGION: EUROPE"), if it names a region."""
    eyebrow = table.find_previous("strong", class_="eyebrow")
    said = _REGION.fullmatch(text_of(eyebrow)) if eyebrow else None
    return said[1] if said else None


def _listing(
    row: Tag,
    cells: list[Tag],
    kind: PriceKind,
    where: _Columns,
    region: str | None,
    answer: Answer,
    config: SourceConfig,
) -> Listing:
    price, currency = _price(cells[where.prices[kind]], row, kind)
    try:
        count = whole_number(text_of(cells[where.count]))
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {error}") from error
    if count < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {count}")

    def quantity(at: int | None) -> Decimal | None:
        try:
            return None if at is None else number(text_of(cells[at]))
        except UnreadableError:
            return None

    vram, vcpus, ram, disk_tb = (quantity(at) for at in (where.vram, where.vcpus, where.ram, where.disk))
    return Listing(
        raw_label=text_of(cells[where.name]),
        gpu_count=float(count),
        price_kind=kind,
        native_price=price,
        native_currency=currency,
        native_unit="instance_hour",
        answer=answer,
        context={"vram_gb": vram} if vram else {},
        region=region,
        vcpus=float(vcpus) if vcpus else None,
        ram_gib=float(ram) if ram else None,
        local_disk_gb=float(disk_tb * 1000) if disk_tb else None,
    )


def _price(cell: Tag, row: Tag, kind: PriceKind) -> tuple[Decimal, str]:
    """The price in a cell, which may hold a link beside it; the row's mobile copy must not contradict it."""
    value = cell.find("div", recursive=False)
    text = text_of(value) if isinstance(value, Tag) and text_of(value) else text_of(cell)
    priced = cell_price(text)
    for copy in row.select(_MOBILE_COPY[kind]):
        said = text_of(copy)
        if is_not_offered(said) or cell_price(said) != priced:
            raise RowError(
                RejectReason.CONFLICTING_PRICES, f"{text!r} in the table, {said!r} in its mobile copy"
            )
    return priced
