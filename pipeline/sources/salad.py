"""Salad: interruptible GPUs, from the tables or the blocks of text on the pricing page."""

import re
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

_VCPUS = re.compile(r"(\d{1,3}) ?vCPUs?", re.IGNORECASE)
_MACHINE = re.compile(
    r"\b(?P<vram>\d{1,3} ?GB) (?P<ram>\d{1,3} ?GB) (?P<vcpus>\d{1,3} ?vCPUs?)\b", re.IGNORECASE
)
_MONEY = re.compile(kit.MONEY_IN_TEXT, re.IGNORECASE)
_END = re.compile(rf"{kit.MONEY_IN_TEXT} {kit.MONEY_IN_TEXT}|\bcontact\b", re.IGNORECASE)
_MONTH_TOLERANCE = Decimal("0.01")


@kit.reader("no GPU in a table or a block of text")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPUs by the hour, one listing per priority if the priorities are named.

    Without a table whose headers name GPUs, each row is read as a block of text.
    """
    soup = kit.page(answer)
    gpu_header = audit.config.settings["headers"]["gpu"]
    headed = [grid for grid in kit.visible_tables(soup) if kit.columns(grid.headers, gpu_header)]
    for grid in headed:
        audit.columns(grid.headers)
        yield from _read_table(grid, answer, audit.config)
    for _, text in () if headed else kit.cards(soup, _MACHINE, _END):
        yield from _read_block(text, answer, audit.config)


def _read_table(grid: kit.Table, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    patterns = config.settings["headers"]
    gpu_at = kit.column(grid.headers, patterns["gpu"], answer)
    monthly = kit.columns(grid.headers, patterns["month"])
    # One price column per priority if the headers name priorities, or else the hourly column.
    prices_at: dict[int, str | None] = {
        at: priority
        for priority, words in config.settings["priorities"].items()
        for at in kit.columns(grid.headers, rf"\b({'|'.join(words)})\b")
        if at not in monthly
    }
    prices_at = prices_at or {kit.column(grid.headers, patterns["hour"], answer): None}
    yield from grid.other_rows(answer)
    for _, texts in grid.full_rows():
        machine = _machine(*(grid.text(texts, patterns[name]) for name in ("vram", "ram", "vcpus")))
        for at, tier in prices_at.items():
            yield kit.gpu_hour_row(texts[gpu_at], "spot", texts[at], texts, answer, tier=tier, **machine)


def _read_block(text: str, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    """Read a row such as ``RTX 5090 32GB 8GB 4 vCPUs $0.250 $182.50``: an hourly price, or one for each
    priority, and a monthly price.

    The prices may come in any order: the monthly price is 730 times the lowest hourly price, and a higher
    priority costs more. The GPU's memory comes before the host's memory.
    """
    priorities = tuple(config.settings["priorities"])
    try:
        label, row = kit.label_before(text, _MACHINE, _MONEY)
        rest = text[row.end() :]
        prices = _MONEY.findall(rest)
        if not prices and kit.is_not_offered(rest):
            raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"{label}: no price is given")
        if len(prices) not in (2, len(priorities) + 1):
            raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"{label}: not hourly prices and a month's")
        *hourly, month = sorted(map(kit.cell_price, prices), key=lambda price: price.amount)
        amounts = [price.amount for price in hourly]
        ratio = month.amount / (amounts[0] * kit.HOURS_PER_MONTH)
        if abs(ratio - 1) > _MONTH_TOLERANCE or len(set(amounts)) != len(amounts):
            detail = f"{label}: {', '.join(prices)} are not hourly prices and a month of the lowest"
            raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, detail)
    except kit.RowError as error:
        yield kit.Reject(error.reason, str(error), text, answer)
        return
    machine = _machine(row["vram"], row["ram"], row["vcpus"])
    tiers = priorities if len(amounts) > 1 else (None,)
    for tier, price in zip(tiers, hourly, strict=True):
        yield price.listing(label, 1, answer, price_kind="spot", native_unit="gpu_hour", tier=tier, **machine)


def _machine(vram: str | None, ram: str | None, vcpus: str | None) -> dict[str, Any]:
    """Return a listing's columns for the machine, from the text of the machine's cells."""
    vram_gb, found = kit.gigabytes(vram), _VCPUS.fullmatch(vcpus or "")
    return {
        "context": {} if vram_gb is None else {"vram_gb": vram_gb},
        "ram_gib": kit.gigabytes(ram),
        "vcpus": float(found[1]) if found else None,
    }
