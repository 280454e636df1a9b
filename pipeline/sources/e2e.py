"""E2E Networks: the table of GPU machines on the price page, by the hour, the month and the year.

Buttons above the table multiply its machines: the page comes with that of one GPU pressed. A line under the
table says that prices are per GPU-hour. Both are checked, because a multiplied table looks the same.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from bs4 import BeautifulSoup

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, NativeUnit, PriceKind, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.gpu_counts import gpu_count_in
from pipeline.parsing.html import page, text_of, texts_of
from pipeline.parsing.json_objects import FieldAudit
from pipeline.parsing.prices import RowError, cell_price, optional_number
from pipeline.parsing.tables import Table, column, columns, prices_in_unknown_columns, visible_tables
from pipeline.parsing.terms import DAYS_PER
from pipeline.parsing.text import HOURLY

BARE = frozenset({""})
PRICES: tuple[tuple[str, PriceKind, int | None, NativeUnit, frozenset[str]], ...] = (
    ("^hourly", "on_demand", None, "instance_hour", HOURLY),
    ("^monthly$", "reserved", DAYS_PER["month"], "instance_month", BARE),
    ("^annually$", "reserved", DAYS_PER["year"], "instance_term", BARE),
)
PER_GPU = re.compile(r"prices are per GPU[- ]hour", re.IGNORECASE)

_COUNT_BUTTON = re.compile(r"(\d{1,2}) ?x")


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One listing per GPU and term.

    Raises SourceChangedError without the one table of GPUs, and when it may be of more than one GPU.
    """
    audit = FieldAudit(config)
    for answer in answers:
        soup = page(answer)
        tables = [table for table in visible_tables(soup) if _is_of_gpus(table)]
        if len(tables) != 1:
            raise SourceChangedError(f"{answer.url}: {len(tables)} tables of GPUs")
        if PER_GPU.search(text_of(soup)) is None:
            raise SourceChangedError(f"{answer.url}: the page does not say that prices are per GPU-hour")
        _check_count(soup, answer)
        audit.columns(tables[0].headers)
        yield from _read_table(tables[0], answer, config)
    yield from audit.warnings()


def _is_of_gpus(table: Table) -> bool:
    return bool(
        columns(table.headers, "^item$")
        and columns(table.headers, "^vRAM")
        and columns(table.headers, "^hourly")
    )


def _check_count(soup: BeautifulSoup, answer: Answer) -> None:
    """The button that looks unlike the others is the pressed one."""
    buttons = [
        (found[1], tuple(tag.get_attribute_list("class")))
        for tag in soup.find_all("button")
        if (found := _COUNT_BUTTON.fullmatch(text_of(tag)))
    ]
    looks = Counter(look for _, look in buttons)
    pressed = [count for count, look in buttons if looks[look] == 1]
    if buttons and pressed != ["1"]:
        raise SourceChangedError(f"{answer.url}: of the numbers of GPUs, {pressed} are pressed")


def _read_table(table: Table, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    at = {pattern: column(table.headers, pattern, answer) for pattern, *_ in PRICES}
    label, memory = (column(table.headers, pattern, answer) for pattern in ("^item$", "^vRAM"))
    known = {*at.values(), *columns(table.headers, "^item$|^vRAM|^vCPUs?$|^RAM")}
    yield from table.other_rows(answer)
    for row in table.full_rows():
        texts = texts_of(row)
        yield from prices_in_unknown_columns(table.headers, texts, known, answer)
        vram_gb = optional_number(texts[memory])
        for pattern, kind, days, unit, spellings in PRICES:
            try:
                price, currency, flag = cell_price(texts[at[pattern]], spellings, [config.currency])
                yield Listing(
                    raw_label=_label(texts[label]),
                    gpu_count=1,
                    price_kind=kind,
                    native_price=price,
                    native_currency=currency,
                    native_unit=unit,
                    answer=answer,
                    context={"vram_gb": vram_gb} if vram_gb else {},
                    term_days=days,
                    flag_reason=flag,
                    vcpus=optional_number(table.text(texts, "^vCPUs?$")),
                    ram_gib=optional_number(table.text(texts, "^RAM, GB$")),
                )
            except RowError as error:
                yield Reject(error.reason, f"{texts[label]}, {kind}: {error}", texts, answer)


def _label(text: str) -> str:
    """The name of the GPU. Raises RowError without one, and for one that states a number of GPUs."""
    if not text:
        raise RowError(RejectReason.MISSING_FIELD, "the row names no GPU")
    if gpu_count_in(text) is not None:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, "a number of GPUs in a table of one")
    return text
