"""Civo: the GPU tables of the price page, per machine-hour, on demand and for terms of 6 to 36 months.

The page hides the terms and the monthly prices until a visitor selects them, so hidden cells are read, too.
Each price is given per hour and per month of 730 hours; if the two disagree, both are rejected.
"""

import re
from decimal import Decimal
from typing import Any

from bs4 import Tag

from pipeline.sources import kit

MONTH_TOLERANCE = Decimal("0.005")
"""Monthly prices are 730 times the hourly prices; one captured price is 0.14% off."""

_CAPTION = re.compile(r"(?P<model>NVIDIA .{1,60}) GPU pricing", re.IGNORECASE)
_DETAIL = re.compile(
    r"(?P<count>\d{1,3}) ?x (?P<model>NVIDIA [\w ]{1,40}?) ?- ?(?P<vram>\d{1,4}) ?GB\b.{0,20}", re.IGNORECASE
)
_MEMORY = re.compile(r"\b(\d{1,4}) ?GB\b", re.IGNORECASE)
_TERM = re.compile(r"(\d{1,2})_months")
_LEADING_NUMBER = re.compile(r"(\d{1,4})(?: ?cores)?", re.IGNORECASE)


@kit.reader("no table of GPU prices")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per machine and term. Tables of other products are skipped."""
    tables = [
        (found["model"], table)
        for table in kit.named(kit.page(answer), "table")
        for caption in kit.named(table, "caption")
        if (found := _CAPTION.fullmatch(kit.text_of(caption)))
    ]
    for _, table in tables:
        audit.columns(kit.texts_of(kit.named(table, "th")))
        audit.columns(str(td.get("data-title") or "") for td in kit.named(table, "td"))
    for model, table in tables:
        yield from _read_table(model, table, answer, audit.config)


def _read_table(model: str, table: Tag, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    trs = [tr for tr in kit.named(table, "tr") if kit.named(tr, "td")]
    if not trs:
        raise answer.changed(f"the table of {model!r} has no rows")
    for tr in trs:
        try:
            machine = _machine(model, tr) | {"answer": answer}
            on_demand, commitment = (_cell(tr, f"{kind}-pricing") for kind in ("on-demand", "commitment"))
        except kit.RowError as error:
            yield error.reject(model, kit.text_of(tr), answer)
            continue
        yield _read_price(machine, None, on_demand, answer, config)
        yield from _read_terms(machine, commitment, answer, config)


def _cell(tr: Tag, name: str) -> Tag:
    """Return a row's only cell with the given class. Raises RowError if there is no such cell, or several."""
    cells = kit.with_class(tr, name)
    if len(cells) != 1:
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"{len(cells)} cells of {name}")
    return cells[0]


def _machine(model: str, tr: Tag) -> dict[str, Any]:
    """Return the columns for a row's machine, checked against the table's caption. Raises RowError."""
    cells = {str(td.get("data-title")): td for td in kit.named(tr, "td")}
    details = [
        found
        for tag in kit.with_class(tr, "product-detail")
        if (found := _DETAIL.fullmatch(kit.text_of(tag)))
    ]
    if len(details) != 1 or "Size" not in cells:
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"not a machine: {kit.text_of(tr)[:80]!r}")
    (found,) = details
    chip, stated = found["model"].casefold(), [memory[1] for memory in _MEMORY.finditer(model)]
    if not model.casefold().startswith(chip) or any(memory != found["vram"] for memory in stated):
        raise kit.RowError(
            kit.RejectReason.UNREADABLE_ROW, f"a row of {found[0]!r} in the table of {model!r}"
        )
    texts = {name: kit.text_of(td) for name, td in cells.items()}
    cpus = _LEADING_NUMBER.fullmatch(texts.get("vCPU", ""))
    size = texts["Size"].removesuffix(kit.text_of(kit.with_class(tr, "product-detail")[0])).strip()
    return {
        "label": model,
        "instance_type": size or None,
        "gpu_count": int(found["count"]),
        "context": {"vram_gb": float(found["vram"])},
        "vcpus": kit.optional_number(cpus[1]) if cpus else None,
        "ram_gib": kit.gigabytes(texts.get("RAM")),
        "local_disk_gb": kit.gigabytes(texts.get("Storage", "").removesuffix("NVMe").strip()),
    }


def _read_terms(machine: dict[str, Any], cell: Tag, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    terms = [(found, tag) for tag in kit.named(cell, "div") if (found := _TERM.fullmatch(str(tag.get("id"))))]
    inside = {id(part) for _, tag in terms for part in tag.descendants}
    stray = [tag for tag in kit.with_class(cell, "price-value") if id(tag) not in inside]
    if not terms or stray:
        error = kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, "prices of a commitment without its term")
        yield error.reject(f"{machine['label']}, {machine['instance_type']}", kit.text_of(cell), answer)
    for found, tag in terms:
        days = int(found[1]) * kit.DAYS_PER["month"]
        yield _read_price(machine, days, tag, answer, config)


def _read_price(
    machine: dict[str, Any], days: int | None, cell: Tag, answer: kit.Answer, config: kit.SourceConfig
) -> kit.Listing | kit.Reject:
    kind: kit.PriceKind = "on_demand" if days is None else "reserved"
    count = machine["gpu_count"]
    try:
        price = _hourly_price(cell, config.currency)
    except kit.RowError as error:
        name = f"{count} x {machine['label']}, {kind}{f' for {days} days' if days else ''}"
        return error.reject(name, kit.text_of(cell), answer)
    return price.listing(**machine, price_kind=kind, term_days=days)


def _hourly_price(cell: Tag, currency: str) -> kit.CellPrice:
    """Return the price per hour, checked against the price per month, if any. Raises RowError."""
    texts: dict[str, list[str]] = {"hourly": [], "monthly": []}
    for tag in kit.with_class(cell, "price-value"):
        texts.setdefault(str(tag.get("data-option")), []).append(_bare(kit.text_of(tag)))
    if len(texts) != 2 or len(texts["hourly"]) != 1 or len(texts["monthly"]) > 1:
        raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, f"not one price per hour: {texts}")
    hourly = kit.cell_price(texts["hourly"][0], {"hour"}, [currency])
    for text in texts["monthly"]:
        if kit.is_not_offered(text):
            continue
        monthly = kit.cell_price(text, {"month"}, [currency])
        if abs(monthly.amount / (hourly.amount * kit.HOURS_PER_MONTH) - 1) > MONTH_TOLERANCE:
            detail = f"{hourly.amount} per hour is not {monthly.amount} per month of 730 hours"
            raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, detail)
    return hourly


def _bare(text: str) -> str:
    """Return a price cell's text, dropping the unit if there is no price ("N/A per hour")."""
    bare = re.sub(r" ?per (?:hour|month)$", "", text)
    return bare if kit.is_not_offered(bare) else text
