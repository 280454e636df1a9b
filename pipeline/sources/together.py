"""Together AI: the GPU Clusters table, per GPU-hour, on demand and by length of commitment.

Two other tables look like it and are not read: a hidden copy of the same section, and Dedicated Inference,
which prices model endpoints.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.html import exactly_one, is_hidden, page, texts_of
from pipeline.parsing.json_objects import FieldAudit
from pipeline.parsing.prices import gpu_hour_row
from pipeline.parsing.tables import (
    PriceColumn,
    Table,
    column,
    price_columns,
    prices_in_unknown_columns,
    require_on_demand,
    table,
)

SECTION = "gpu-clusters"

_ON_DEMAND = re.compile(r"\bon[ -]?demand\b|^pay as you go\b", re.IGNORECASE)
"""A caption that only ends in "Pay as you go" names another product, such as one that may be interrupted."""


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One listing per GPU and price column; ``term_days`` is the shortest commitment a price is given for."""
    audit = FieldAudit(config)
    for answer in answers:
        grid = table(exactly_one(_cluster_tables(answer), "visible GPU cluster table", answer))
        audit.columns(grid.headers)
        yield from _read_table(grid, answer, config)
    yield from audit.warnings()


def _cluster_tables(answer: Answer) -> list[Tag]:
    """Visible tables between the section's anchor and the next section's."""
    document = page(answer)
    anchors = (tag for tag in document.find_all(id=SECTION) if not is_hidden(tag))
    anchor = exactly_one(anchors, f"visible section {SECTION!r}", answer)
    following = anchor.find_next(lambda tag: tag.name == "div" and tag.get("class") == anchor.get("class"))
    end = set(map(id, following.find_all_next("table"))) if isinstance(following, Tag) else set()
    return [t for t in anchor.find_all_next("table") if id(t) not in end and not is_hidden(t)]


def _read_table(grid: Table, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    label_at = column(grid.headers, r"^(?:hardware|GPU|GPU model|model|instance)\b", answer)
    prices = [
        price
        for price in price_columns(grid.headers, answer)
        if price.at != label_at and (price.kind != "on_demand" or _ON_DEMAND.search(price.header))
    ]
    require_on_demand(prices, grid.headers, answer)
    if not grid.rows:
        raise SourceChangedError(f"{answer.url}: the GPU cluster table has no rows")
    yield from grid.other_rows(answer)
    for cells in grid.full_rows():
        texts = texts_of(cells)
        known = {label_at, *(price.at for price in prices)}
        yield from prices_in_unknown_columns(grid.headers, texts, known, answer)
        for price in prices:
            row = _read_price(texts[label_at], price, cells, texts, answer)
            yield _smallest_reservation(row, config.settings["smallest_reservations"], answer)


def _read_price(
    label: str, price: PriceColumn, cells: list[Tag], texts: list[str], answer: Answer
) -> Listing | Reject:
    row = gpu_hour_row(
        label,
        price.kind,
        texts[price.at],
        texts,
        answer,
        term_days=price.term_days,
        effective_from=price.effective_from,
        flag_reason=FlagReason.SUPERSEDED if price.superseded else None,
    )
    if isinstance(row, Listing) and sum(cell is cells[price.at] for cell in cells) > 1:
        detail = f"{label}: the price {texts[price.at]!r} spans several columns"
        return Reject(RejectReason.UNREADABLE_PRICE, detail, texts, answer)
    return row


def _smallest_reservation(
    row: Listing | Reject, smallest: Mapping[str, int], answer: Answer
) -> Listing | Reject:
    """A reserved price with the fewest GPUs that it is for, which is another number for each card."""
    if isinstance(row, Reject) or row.price_kind != "reserved":
        return row
    found = [count for card, count in smallest.items() if re.search(rf"\b{card}\b", row.raw_label)]
    if len(found) != 1:
        detail = f"{row.raw_label}: from how many GPUs this card is reserved is not known"
        return Reject(RejectReason.UNKNOWN_TERMS, detail, row.raw_label, answer)
    return replace(row, min_gpu_count=found[0])
