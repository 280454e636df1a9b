"""CoreWeave: one GPU table per region, made of ``div``s; a price per instance, on demand and spot.

Columns are found by the header row's text, because they differ by region. The price for inference on a single
GPU is skipped: that is not a machine to train on. Tables whose header names no GPU (storage, and CPU
instances, which have the GPU tables' classes too) are skipped.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bs4 import Tag

from pipeline.sources import kit

GB_PER_TB = 1000

_COUNT = r"^(?:gpu count|(?:number|#) of gpus|gpus$)"
_NOT_PRICES = r"^(?:gpu|gpus|model|vram|vcpus|system|ram|local|inference|number|#)\b"
_REGION = re.compile(r"region\s*:?\s*(.+)", re.IGNORECASE)
_MOBILE_COPY: Mapping[kit.PriceKind, tuple[str, str]] = {
    "on_demand": ("instance-price", "item-value"),
    "spot": ("spot-price", "item-value"),
}
"""The classes of a price that the row repeats for narrow screens, and of the element around it."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a region's table."""

    headers: list[str]
    label_at: int
    count_at: int
    prices: list[kit.PriceColumn]


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Every on-demand and spot price of every region. Raises SourceChangedError without a GPU table."""
    layout: _Layout | None = None
    for tag in kit.with_class(kit.page(answer), "table-v2"):
        if tag.name != "div":
            continue
        header_rows = kit.with_class(tag, "table-v2-header")
        headers = kit.texts_of(_cells(header_rows[0])) if header_rows else []
        if kit.columns(headers, r"\bGPUs?\b"):
            layout = _layout(headers, answer)
            audit.columns(headers)
        elif headers or "gpu-pricing" not in tag.get_attribute_list("class"):
            audit.table(headers, is_read=False)
            continue
        # A table without a header has the columns of the one before it, the first one those of the yaml.
        layout = layout or _usual_layout(tag, answer, audit.config)
        yield from _read_table(tag, layout, answer)
    if layout is None:
        raise answer.changed("no table of GPUs on the page")


def _cells(row: Tag) -> list[Tag]:
    """The cells of a row's grid itself: the mobile copy repeats them one level deeper."""
    grids = kit.with_class(row, "table-grid")
    return (
        [cell for cell in kit.with_class(grids[0], "table-v2-cell") if cell.parent is grids[0]]
        if grids
        else []
    )


def _usual_layout(tag: Tag, answer: kit.Answer, config: kit.SourceConfig) -> _Layout:
    """The columns of a table that came without its header, known by how many cells its first row has."""
    rows = tag.find_all(role="listitem")
    width = len(_cells(rows[0])) if rows else 0
    headers: list[str] = config.settings["usual_columns"][:width]
    if len(headers) != width or not kit.columns(headers, r"^spot\b"):
        raise answer.changed(f"the first GPU table has no header row and {width} columns")
    return _layout(headers, answer)


def _layout(headers: list[str], answer: kit.Answer) -> _Layout:
    prices = kit.price_columns(headers, answer)
    kit.require_on_demand(prices, headers, answer)
    return _Layout(
        headers,
        label_at=kit.column(headers, r"^(?:gpu )?model", answer),
        count_at=kit.column(headers, _COUNT, answer),
        prices=[price for price in prices if price.kind in _MOBILE_COPY],
    )


def _read_table(tag: Tag, layout: _Layout, answer: kit.Answer) -> kit.Rows:
    region, headers = _region(tag), layout.headers
    grid = kit.Table(headers, [_cells(row) for row in tag.find_all(role="listitem")])
    if not grid.full_rows():
        raise answer.changed(f"no row of {region} has the {len(headers)} cells of its header")
    known = {price.at for price in layout.prices} | set(kit.columns(headers, _NOT_PRICES))
    yield from grid.other_rows(answer)
    for cells in grid.full_rows():
        texts = kit.texts_of(cells)
        yield from kit.prices_in_unknown_columns(headers, texts, known, answer)
        for price in layout.prices:
            try:
                yield _listing(grid, cells, texts, price, layout, region, answer)
            except kit.RowError as error:
                yield error.reject(f"{texts[layout.label_at]} in {region}, {price.kind}", texts, answer)


def _region(tag: Tag) -> str | None:
    """The region that the line above the table names ("REGION: EUROPE"), if it names one."""
    eyebrow = tag.find_previous("strong", class_="eyebrow")
    named = _REGION.fullmatch(kit.text_of(eyebrow)) if eyebrow else None
    return named[1] if named else None


def _listing(
    grid: kit.Table,
    cells: list[Tag],
    texts: list[str],
    price: kit.PriceColumn,
    layout: _Layout,
    region: str | None,
    answer: kit.Answer,
) -> kit.Listing:
    found = _price(cells[price.at], price.kind)
    disk_tb = kit.optional_number(grid.text(texts, r"^local storage"))
    return kit.Listing(
        raw_label=texts[layout.label_at],
        gpu_count=kit.gpu_count(texts[layout.count_at]),
        price_kind=price.kind,
        native_price=found.amount,
        native_currency=found.currency,
        native_unit="instance_hour",
        answer=answer,
        context=kit.known(vram_gb=kit.optional_number(grid.text(texts, r"^vram"))),
        region=region,
        vcpus=kit.optional_number(grid.text(texts, r"^vcpus")) or None,
        ram_gib=kit.optional_number(grid.text(texts, r"^(?:system )?ram")) or None,
        local_disk_gb=disk_tb * GB_PER_TB if disk_tb else None,
        effective_from=price.effective_from,
        flag_reason=price.flag_reason or found.flag_reason,
    )


def _price(cell: Tag, kind: kit.PriceKind) -> kit.CellPrice:
    """The price in a cell, which may have a link next to it; the row's mobile copy must state the same."""
    value = cell.find("div", recursive=False)
    priced = kit.cell_price(
        kit.text_of(value) if isinstance(value, Tag) and kit.text_of(value) else kit.text_of(cell)
    )
    row = cell.find_parent(role="listitem")
    outer, inner = _MOBILE_COPY[kind]
    copies = [copy for copy in kit.with_class(row, inner) if copy.find_parent(class_=outer)] if row else []
    stated = kit.texts_of(copies)
    kit.agreed([priced, *(None if kit.is_not_offered(text) else kit.cell_price(text) for text in stated)])
    return priced
