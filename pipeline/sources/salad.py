"""Salad: interruptible GPUs, from the pricing page's rows or cards or from the API's gpu-classes."""

import re
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

_VCPUS = re.compile(r"(\d{1,3}) ?vCPUs?", re.IGNORECASE)
_ROW = re.compile(r"\b(?P<vram>\d{1,3} ?GB) (?P<ram>\d{1,3} ?GB) (?P<vcpus>\d{1,3} ?vCPUs?)\b", re.IGNORECASE)
_TWO_PRICES = re.compile(
    rf"(?P<first>{kit.MONEY_IN_TEXT}) (?P<second>{kit.MONEY_IN_TEXT})|\bcontact\b", re.IGNORECASE
)
_MONEY = re.compile(kit.MONEY_IN_TEXT, re.IGNORECASE)
_MONTH_TOLERANCE = Decimal("0.01")


@kit.reader("no GPU in a table, a card or gpu-classes")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPUs by the hour, one listing per priority where the priorities are named."""
    return _read_gpu_classes(answer, audit) if answer.is_json else _read_page(answer, audit)


def _read_gpu_classes(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    return kit.read_rows(audit.items(answer, "items"), _read_gpu_class, "name")


def _read_gpu_class(gpu: kit.JsonObject) -> kit.Rows:
    if (count := gpu.get("gpu_count")) not in (None, 1):
        detail = f"{count} GPUs, and the price may be for one or for all"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    label, entries = gpu.text("name"), gpu.objects("prices")
    if not entries:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, "no list of prices")
    for entry in entries:
        tier, price = entry.optional_text("priority"), entry.get("price")
        yield kit.gpu_hour_field(label, "spot", price, "USD", gpu.raw, gpu.answer, tier=tier)


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Yield the rows of tables with headers, or else rows without headers in a table or in blocks of text."""
    soup = kit.page(answer)
    grids = kit.visible_tables(soup)
    headed = [grid for grid in grids if kit.columns(grid.headers, audit.config.settings["headers"]["gpu"])]
    bare = [kit.texts_of(cells) for grid in grids if not grid.headers for cells in grid.rows]
    if headed:
        for grid in headed:
            audit.columns(grid.headers)
            yield from _read_table(grid, answer, audit.config)
        return
    for texts in bare:
        yield from _read_bare_row(texts, answer, audit.config)
    if not bare:
        for _, text in kit.cards(soup, _ROW, _TWO_PRICES):
            yield from _read_block(text, answer, audit.config)


def _read_table(grid: kit.Table, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    patterns = config.settings["headers"]
    gpu_at = kit.column(grid.headers, patterns["gpu"], answer)
    monthly = kit.columns(grid.headers, patterns["month"])
    # One price column per priority if the headers name priorities, else the column per hour.
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


def _read_bare_row(raw: list[str], answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    """Read a row without headers: GPU, VRAM, RAM, vCPUs, one hourly price or one for each priority, and a
    month's.

    The month's is 730 times the lowest of the others, whatever their order. A higher priority costs more. The
    units of the other cells identify them, and the GPU's memory comes before the host's.
    """
    priorities = tuple(config.settings["priorities"])
    memory = [text for text in raw if kit.gigabytes(text) is not None]
    vcpus = [text for text in raw if _VCPUS.fullmatch(text)]
    prices = [text for text in raw if _is_price(text)]
    named = [text for text in raw if text not in memory + vcpus + prices]
    is_row = len(memory) == 2 and len(vcpus) == 1 and named and raw[0] == named[0]
    try:
        if not is_row or len(prices) not in (2, len(priorities) + 1):
            detail = "not GPU, VRAM, RAM, vCPUs, hourly prices and a month's"
            raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, detail)
        *hourly, month = sorted(map(kit.cell_price, prices), key=lambda price: price.amount)
        amounts = [price.amount for price in hourly]
        ratio = month.amount / (amounts[0] * Decimal(config.settings["hours_per_month"]))
        if abs(ratio - 1) > _MONTH_TOLERANCE or len(set(amounts)) != len(amounts):
            detail = f"{', '.join(prices)} are not hourly prices and a month of the lowest"
            raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, detail)
    except kit.RowError as error:
        yield error.reject(raw[0] if raw else "", raw, answer)
        return
    machine = _machine(memory[0], memory[1], vcpus[0])
    tiers = priorities if len(amounts) > 1 else (None,)
    for tier, price in zip(tiers, hourly, strict=True):
        yield price.listing(
            raw[0], 1, answer, price_kind="spot", native_unit="gpu_hour", tier=tier, **machine
        )


def _is_price(text: str) -> bool:
    return kit.is_not_offered(text) or any(sign in text for sign in "$€£")


def _read_block(text: str, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    """Read the same row from a block of text: ``RTX 5090 32GB 8GB 4 vCPUs $0.250 $182.50``."""
    row, found = _ROW.search(text), _TWO_PRICES.search(text)
    if row is None or found is None:
        detail = f"not a GPU with two prices: {text[:80]!r}"
        yield kit.Reject(kit.RejectReason.UNREADABLE_ROW, detail, text, answer)
        return
    prices = [price[0] for price in _MONEY.finditer(text[row.end() :])] if found["first"] else [found[0]] * 2
    raw = [text[: row.start()].strip(), row["vram"], row["ram"], row["vcpus"], *prices]
    yield from _read_bare_row(raw, answer, config)


def _machine(vram: str | None, ram: str | None, vcpus: str | None) -> dict[str, Any]:
    """Return the machine's columns of a listing, from the texts of its cells."""
    vram_gb, found = kit.gigabytes(vram), _VCPUS.fullmatch(vcpus or "")
    return {
        "context": {} if vram_gb is None else {"vram_gb": vram_gb},
        "ram_gib": kit.gigabytes(ram),
        "vcpus": float(found[1]) if found else None,
    }
