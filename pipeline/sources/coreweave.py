"""CoreWeave: one GPU table per region, made of ``div``s, with on-demand and spot prices per instance.

Columns are found by the text of the header row, because they differ between regions. The reader skips the
price for inference on a single GPU (not a machine to train on) and tables whose header names no GPU (storage,
and CPU instances, which share the GPU tables' CSS classes).
"""

import re
from collections.abc import Mapping
from typing import Any

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
"""CSS classes in a price's copy for narrow screens: the class of the element and that of its price."""


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Every on-demand and spot price in every region. Raises SourceChangedError if there is no GPU table."""
    headers: list[str] = []
    for tag in kit.with_class(kit.page(answer), "table-v2"):
        if tag.name != "div":
            continue
        header_rows = kit.with_class(tag, "table-v2-header")
        own_headers = kit.texts_of(_cells(header_rows[0])) if header_rows else []
        if kit.columns(own_headers, r"\bGPUs?\b"):
            headers = own_headers
            audit.columns(headers)
        elif own_headers or "gpu-pricing" not in tag.get_attribute_list("class"):
            audit.table(own_headers, is_read=False)
            continue
        # A table without a header has the columns of the previous table or, if it is the first, the yaml's.
        headers = headers or _usual_headers(tag, answer, audit.config)
        yield from _read_table(tag, headers, answer)
    if not headers:
        raise answer.changed("no table of GPUs on the page")


def _cells(row: Tag) -> list[Tag]:
    """Return only the cells directly in a row's grid: the mobile copy repeats them one level deeper."""
    return [
        cell
        for grid in kit.with_class(row, "table-grid")[:1]
        for cell in kit.with_class(grid, "table-v2-cell")
        if cell.parent is grid
    ]


def _usual_headers(tag: Tag, answer: kit.Answer, config: kit.SourceConfig) -> list[str]:
    """Return the yaml's columns for a table without a header: as many as its first row has cells."""
    rows = tag.find_all(role="listitem")
    width = len(_cells(rows[0])) if rows else 0
    headers: list[str] = config.settings["usual_columns"][:width]
    if len(headers) != width or not kit.columns(headers, r"^spot\b"):
        raise answer.changed(f"the first GPU table has no header row and {width} columns")
    return headers


def _read_table(tag: Tag, headers: list[str], answer: kit.Answer) -> kit.Rows:
    region = _region(tag)
    prices = kit.price_columns(headers, answer)
    kit.require_on_demand(prices, headers, answer)
    prices = [price for price in prices if price.kind in _MOBILE_COPY]
    label_at = kit.column(headers, r"^(?:gpu )?model", answer)
    count_at = kit.column(headers, _COUNT, answer)
    grid = kit.Table(headers, [_cells(row) for row in tag.find_all(role="listitem")])
    if not grid.full_rows():
        raise answer.changed(f"no row of {region} has the {len(headers)} cells of its header")
    known = {price.at for price in prices} | set(kit.columns(headers, _NOT_PRICES))
    yield from grid.other_rows(answer)
    for cells, texts in grid.full_rows():
        yield from kit.prices_in_unknown_columns(headers, texts, known, answer)
        disk_tb = kit.optional_number(grid.text(texts, r"^local storage"))
        machine: dict[str, Any] = {
            "context": kit.known(vram_gb=kit.optional_number(grid.text(texts, r"^vram"))),
            "region": region,
            "vcpus": kit.optional_number(grid.text(texts, r"^vcpus")) or None,
            "ram_gib": kit.optional_number(grid.text(texts, r"^(?:system )?ram")) or None,
            "local_disk_gb": disk_tb * GB_PER_TB if disk_tb else None,
        }
        for price in prices:
            try:
                yield _price(cells[price.at], price.kind).listing(
                    texts[label_at],
                    kit.gpu_count(texts[count_at]),
                    answer,
                    price_kind=price.kind,
                    effective_from=price.effective_from,
                    flag_reason=price.flag_reason,
                    **machine,
                )
            except kit.RowError as error:
                yield error.reject(f"{texts[label_at]} in {region}, {price.kind}", texts, answer)


def _region(tag: Tag) -> str | None:
    """Return the region in the line above the table ("REGION: EUROPE"), if any."""
    eyebrow = tag.find_previous("strong", class_="eyebrow")
    named = _REGION.fullmatch(kit.text_of(eyebrow)) if eyebrow else None
    return named[1] if named else None


def _price(cell: Tag, kind: kit.PriceKind) -> kit.CellPrice:
    """Return the price in a cell (possibly next to a link), checked against the row's mobile copy."""
    value = cell.find("div", recursive=False)
    priced = kit.cell_price(
        kit.text_of(value) if isinstance(value, Tag) and kit.text_of(value) else kit.text_of(cell)
    )
    row = cell.find_parent(role="listitem")
    outer, inner = _MOBILE_COPY[kind]
    copies = kit.with_class(row, inner) if row else []
    stated = kit.texts_of(copy for copy in copies if copy.find_parent(class_=outer))
    kit.agreed([priced, *(None if kit.is_not_offered(text) else kit.cell_price(text) for text in stated)])
    return priced
