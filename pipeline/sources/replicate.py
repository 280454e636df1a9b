"""Replicate: hardware charged per second for all of its GPUs."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from pipeline.sources import kit

GPU_LABEL = re.compile(r"(?:\d{1,2}x )?nvidia [a-z0-9][a-z0-9 ()-]{0,40}", re.IGNORECASE)
ADDITIONAL = re.compile(r"additional (?:multi-gpu )?hardware\b.{0,200}", re.IGNORECASE)
_SKU = re.compile(r"gpu-[a-z0-9-]{1,40}")
_LABEL_AND_SKU = re.compile(rf"(?P<label>.+?) (?P<sku>{_SKU.pattern})", re.IGNORECASE)
_LEADING_SKU = re.compile(rf"[| ]*(?P<sku>{_SKU.pattern})?[| ]*", re.IGNORECASE)
_TOTAL_VRAM = re.compile(r"\bGPU RAM ?:? ?(\d{1,5}) ?GB", re.IGNORECASE)


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPU hardware in the page's text.

    Raises SourceChangedError when the text has no price, as when a script fills in the page in the browser.
    """
    rows: list[kit.Listing | kit.Reject] = []
    texts = kit.visible_texts(kit.page(answer))
    contract_at = next((at for at, text in enumerate(texts) if ADDITIONAL.fullmatch(text)), len(texts))
    for part, by_contract in ((texts[:contract_at], False), (texts[contract_at:], True)):
        for item in kit.items(part, [at for at, text in enumerate(part) if GPU_LABEL.fullmatch(text)]):
            if row := _read_item(item, by_contract, answer):
                rows.append(row)
    if not rows:
        by_script = "a script that is not run here fills in the table in the browser"
        raise answer.changed(f"no hardware with a price per second; {by_script}")
    yield from rows


def _read_item(item: kit.Item, by_contract: bool, answer: kit.Answer) -> kit.Listing | kit.Reject | None:
    """Return a row from a label, a SKU, a price per second and a price per hour; None for running text."""
    if together := _LABEL_AND_SKU.fullmatch(item.label):
        item = replace(item, label=together["label"], rest=f"{together['sku']} {item.rest}")
    found = _LEADING_SKU.match(item.rest)
    sku, prices = (found["sku"], item.rest[found.end() :]) if found else (None, item.rest)
    price = kit.leading_price(prices)
    if price is None or price.time_unit != "second":
        if sku is None:
            return None
        is_open = kit.is_not_offered(" ".join(prices.split()[:2]))
        reason = kit.RejectReason.NOT_OFFERED if is_open else kit.RejectReason.UNREADABLE_PRICE
        return item.reject(reason, f"no price per second in {prices[:40]!r}", answer)
    try:
        per_second, hourly = kit.cell_price(price.amount, currencies=["USD"]), kit.leading_price(price.rest)
        is_hourly = hourly and hourly.time_unit == "hour"
        if hourly and is_hourly and not kit.agrees_with_hourly(per_second.amount, "second", hourly.amount):
            detail = f"{price.amount} a second is not {hourly.amount} an hour"
            raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, detail)
        vram = _TOTAL_VRAM.search(item.rest)
        context = {"vram_total_gb": Decimal(vram[1])} if vram else {}
        return _listing(item.label, sku, per_second, context, by_contract, answer)
    except kit.RowError as error:
        return item.reject(error.reason, str(error), answer)


def _listing(
    label: str,
    sku: str | None,
    price: kit.CellPrice,
    context: Mapping[str, Decimal],
    by_contract: bool,
    answer: kit.Answer,
) -> kit.Listing:
    """Return the listing. Raises RowError if the label and the SKU state different numbers of GPUs."""
    gpu_count = kit.gpu_count_in(label) or 1
    if sku and gpu_count != (kit.gpu_count_in(sku) or 1):
        detail = f"{label!r} and {sku!r} differ in the number of GPUs"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return price.listing(
        label,
        gpu_count,
        answer,
        instance_type=sku,
        price_kind="reserved" if by_contract else "serverless",
        tier="committed_spend" if by_contract else None,
        native_unit="instance_second",
        context=context,
    )
