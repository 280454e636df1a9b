"""Together AI: the GPU Clusters table, per GPU-hour, on demand and by length of commitment.

Two similar tables are not read: a hidden copy of the same section, and Dedicated Inference, which prices
model endpoints.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from bs4 import Tag

from pipeline.sources import kit

SECTION = "gpu-clusters"

_ON_DEMAND = re.compile(r"\bon[ -]?demand\b|^pay as you go\b", re.IGNORECASE)
"""A caption that merely ends in "Pay as you go" names another product, such as an interruptible one."""


@kit.reader("the GPU cluster table has no rows")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU and price column; ``term_days`` is the shortest commitment at that price."""
    grid = kit.table(kit.exactly_one(_cluster_tables(answer), "visible GPU cluster table", answer))
    audit.columns(grid.headers)
    label_at = kit.column(grid.headers, r"^(?:hardware|GPU|GPU model|model|instance)\b", answer)
    prices = [
        price
        for price in kit.price_columns(grid.headers, answer)
        if price.at != label_at and (price.kind != "on_demand" or _ON_DEMAND.search(price.header))
    ]
    kit.require_on_demand(prices, grid.headers, answer)
    yield from grid.other_rows(answer)
    for cells, texts in grid.full_rows():
        known = {label_at, *(price.at for price in prices)}
        yield from kit.prices_in_unknown_columns(grid.headers, texts, known, answer)
        for price in prices:
            row = kit.gpu_hour_row(
                texts[label_at],
                price.kind,
                texts[price.at],
                texts,
                answer,
                term_days=price.term_days,
                effective_from=price.effective_from,
                flag_reason=price.flag_reason,
            )
            if isinstance(row, kit.Listing) and sum(cell is cells[price.at] for cell in cells) > 1:
                detail = f"{texts[label_at]}: the price {texts[price.at]!r} spans several columns"
                row = kit.Reject(kit.RejectReason.UNREADABLE_PRICE, detail, texts, answer)
            yield _smallest_reservation(row, audit.config.settings["smallest_reservations"], answer)


def _cluster_tables(answer: kit.Answer) -> list[Tag]:
    """Return the visible tables between the section's anchor and the next section's anchor."""
    document = kit.page(answer)
    anchors = (tag for tag in document.find_all(id=SECTION) if not kit.is_hidden(tag))
    anchor = kit.exactly_one(anchors, f"visible section {SECTION!r}", answer)
    following = anchor.find_next(lambda tag: tag.name == "div" and tag.get("class") == anchor.get("class"))
    end = set(map(id, following.find_all_next("table"))) if isinstance(following, Tag) else set()
    return [t for t in anchor.find_all_next("table") if id(t) not in end and not kit.is_hidden(t)]


def _smallest_reservation(
    row: kit.Listing | kit.Reject, smallest: Mapping[str, int], answer: kit.Answer
) -> kit.Listing | kit.Reject:
    """Return a reserved price with its minimum number of GPUs, which differs by card; return other rows
    unchanged."""
    if isinstance(row, kit.Reject) or row.price_kind != "reserved":
        return row
    found = [count for card, count in smallest.items() if re.search(rf"\b{card}\b", row.raw_label)]
    if len(found) != 1:
        detail = f"{row.raw_label}: this card's minimum reservation is unknown"
        return kit.Reject(kit.RejectReason.UNKNOWN_TERMS, detail, row.raw_label, answer)
    return replace(row, min_gpu_count=found[0])
