"""E2E Networks: the table of GPU machines on the price page, priced by the hour, month and year.

Buttons above the table set the number of GPUs per machine; the page loads with the 1-GPU button pressed. A
line under the table says that prices are per GPU-hour. Both the button and the line are checked, because the
table looks the same for any number of GPUs.
"""

import re
from collections import Counter

from bs4 import BeautifulSoup

from pipeline.sources import kit

BARE = frozenset({""})
PRICES: tuple[tuple[str, kit.PriceKind, int | None, kit.NativeUnit, frozenset[str]], ...] = (
    ("^hourly", "on_demand", None, "instance_hour", kit.HOURLY),
    ("^monthly$", "reserved", kit.DAYS_PER["month"], "instance_month", BARE),
    ("^annually$", "reserved", kit.DAYS_PER["year"], "instance_term", BARE),
)
PER_GPU = re.compile(r"prices are per GPU[- ]hour", re.IGNORECASE)

_COUNT_BUTTON = re.compile(r"(\d{1,2}) ?x")


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU and term.

    Raises SourceChangedError unless there is exactly one table of GPUs, with prices for one GPU.
    """
    soup = kit.page(answer)
    tables = [table for table in kit.visible_tables(soup) if _lists_gpus(table)]
    if len(tables) != 1:
        raise answer.changed(f"{len(tables)} tables of GPUs")
    if PER_GPU.search(kit.text_of(soup)) is None:
        raise answer.changed("the page does not say that prices are per GPU-hour")
    _check_count(soup, answer)
    audit.columns(tables[0].headers)
    yield from _read_table(tables[0], answer, audit.config)


def _lists_gpus(table: kit.Table) -> bool:
    return all(kit.columns(table.headers, pattern) for pattern in ("^item$", "^vRAM", "^hourly"))


def _check_count(soup: BeautifulSoup, answer: kit.Answer) -> None:
    """Raise SourceChangedError unless the pressed button, which looks unlike the others, is for one GPU."""
    buttons = [
        (found[1], tuple(tag.get_attribute_list("class")))
        for tag in soup.find_all("button")
        if (found := _COUNT_BUTTON.fullmatch(kit.text_of(tag)))
    ]
    looks = Counter(look for _, look in buttons)
    pressed = [count for count, look in buttons if looks[look] == 1]
    if buttons and pressed != ["1"]:
        raise answer.changed(f"of the numbers of GPUs, {pressed} are pressed")


def _read_table(table: kit.Table, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    at = {pattern: kit.column(table.headers, pattern, answer) for pattern, *_ in PRICES}
    label, memory = (kit.column(table.headers, pattern, answer) for pattern in ("^item$", "^vRAM"))
    known = {*at.values(), *kit.columns(table.headers, "^item$|^vRAM|^vCPUs?$|^RAM")}
    yield from table.other_rows(answer)
    for _, texts in table.full_rows():
        yield from kit.prices_in_unknown_columns(table.headers, texts, known, answer)
        for pattern, kind, days, unit, spellings in PRICES:
            try:
                price = kit.cell_price(texts[at[pattern]], spellings, [config.currency])
                yield price.listing(
                    _label(texts[label]),
                    1,
                    answer,
                    price_kind=kind,
                    native_unit=unit,
                    context=kit.known(vram_gb=kit.optional_number(texts[memory])),
                    term_days=days,
                    vcpus=kit.optional_number(table.text(texts, "^vCPUs?$")),
                    ram_gib=kit.optional_number(table.text(texts, "^RAM, GB$")),
                )
            except kit.RowError as error:
                yield error.reject(f"{texts[label]}, {kind}", texts, answer)


def _label(text: str) -> str:
    """Return the GPU's name. Raises RowError if the name is missing, or if it includes a number of GPUs."""
    if not text:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, "the row names no GPU")
    if kit.gpu_count_in(text) is not None:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, "a number of GPUs in a table of single GPUs")
    return text
