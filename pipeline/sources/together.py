"""Together AI: the GPU Clusters table, per GPU-hour, on demand and by length of commitment.

Two other tables look like it and are not read: a hidden copy of the same section, and Dedicated Inference,
which prices model endpoints.
"""

import re
from collections.abc import Iterator, Sequence

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing import html
from pipeline.parsing.prices import RowError, cell_price, has_price
from pipeline.parsing.units import DAYS_PER

SECTION = "gpu-clusters"
ON_DEMAND_HEADER = r"on[ -]demand|pay as you go"
TERM = re.compile(r"(\d{1,4})\s?(?:-\s?\d{1,4}|\+)?\s?(day|week|month|year)", re.IGNORECASE)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per GPU and price column; ``term_days`` is the shortest commitment a price is given for."""
    for answer in answers:
        table = html.table(html.exactly_one(_cluster_tables(answer), "visible GPU cluster table", answer))
        yield from _rows(table, answer)


def _cluster_tables(answer: Answer) -> list[Tag]:
    """Visible tables between the section's anchor and the next section's."""
    document = html.page(answer)
    anchors = (tag for tag in document.select(f"#{SECTION}") if not html.is_hidden(tag))
    anchor = html.exactly_one(anchors, f"visible section {SECTION!r}", answer)
    following = anchor.find_next(lambda tag: tag.name == "div" and tag.get("class") == anchor.get("class"))
    end = set(map(id, following.find_all_next("table"))) if isinstance(following, Tag) else set()
    return [t for t in anchor.find_all_next("table") if id(t) not in end and not html.is_hidden(t)]


def _rows(table: html.Table, answer: Answer) -> Iterator[Listing | Reject]:
    name_at = html.column(table.headers, r"^(?:hardware|GPU|GPU model|model|instance)\b", answer)
    on_demand_at = html.column(table.headers, ON_DEMAND_HEADER, answer)
    terms = {at: _term_days(header) for at, header in enumerate(table.headers)}
    priced = [at for at in terms if at == on_demand_at or (terms[at] and at != name_at)]
    if not table.rows:
        raise SourceChangedError(f"{answer.url}: the GPU cluster table has no rows")
    for row in table.rows:
        texts = [html.text_of(cell) for cell in row]
        if len(row) != len(table.headers):
            detail = f"{len(row)} cells under {len(table.headers)} columns"
            yield Reject(RejectReason.UNREADABLE_ROW, detail, texts, answer)
            continue
        for at, text in enumerate(texts):
            if at != name_at and at not in priced and has_price(text):
                detail = f"{text!r} stands in the column {table.headers[at]!r}, which is not known"
                yield Reject(RejectReason.UNKNOWN_PRICE_KIND, detail, texts, answer)
        for at in priced:
            yield _price(texts, name_at, at, None if at == on_demand_at else terms[at], row, answer)


def _term_days(header: str) -> int | None:
    found = TERM.search(header)
    return int(found[1]) * DAYS_PER[found[2].lower()] if found else None


def _price(
    texts: list[str], name_at: int, at: int, term_days: int | None, row: list[Tag], answer: Answer
) -> Listing | Reject:
    label, kind = texts[name_at], "reserved" if term_days else "on_demand"
    try:
        price, currency = cell_price(texts[at])
        if sum(cell is row[at] for cell in row) > 1:
            raise RowError(RejectReason.UNREADABLE_PRICE, f"{texts[at]!r} spans several columns")
    except RowError as error:
        detail = f"{label} {kind}{f' {term_days} days' if term_days else ''}: {error}"
        return Reject(error.reason, detail, texts, answer)
    return Listing(
        raw_label=label,
        gpu_count=1,
        price_kind="reserved" if term_days else "on_demand",
        native_price=price,
        native_currency=currency,
        native_unit="gpu_hour",
        answer=answer,
        term_days=term_days,
    )
