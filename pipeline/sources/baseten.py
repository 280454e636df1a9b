"""Baseten: GPU instances for models, charged per minute."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, NativeUnit, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import page
from pipeline.parsing.running_text import visible_texts
from pipeline.parsing.text import UnreadableError, is_not_offered, money, number

MINUTES_PER_HOUR = 60
HOURLY_ROUNDING_USD = Decimal("0.006")
MAX_TEXTS_PER_ROW = 12

_VRAM = re.compile(
    r"(?P<label>.{0,40}?) ?(?P<vram>\d{1,4}) ?Gi?B VRAM\b[ ,|·]*(?P<rest>.{0,200})", re.IGNORECASE
)
_COUNT = re.compile(r"(\d{1,2}) ?[x×] ", re.IGNORECASE)
_SPECS = re.compile(
    r"(?:(?P<vcpus>\d{1,4}) ?vCPUs?)?[ ,|·]*(?:(?P<ram>\d{1,5}) ?Gi?B RAM)?[ ,|·]*", re.IGNORECASE
)
_PRICE = re.compile(
    r"(?P<amount>\S? ?\d[\d,.]{0,12})(?: ?(?:/|per) ?(?P<unit>[a-z]{1,8}))?[ |]*", re.IGNORECASE
)
_UNITS: Mapping[str, str] = {"min": "minute", "minute": "minute", "hr": "hour", "hour": "hour", "h": "hour"}
_NATIVE_UNITS: Mapping[tuple[str, bool], NativeUnit] = {
    ("minute", True): "gpu_minute",
    ("hour", True): "gpu_hour",
    ("minute", False): "instance_minute",
    ("hour", False): "instance_hour",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A GPU instance: its name, its memory of GPUs (GiB, all together) and what is written after that."""

    label: str
    vram_gib: Decimal
    rest: str


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One offer per instance with GPU memory. Raises SourceChangedError when there is none."""
    for answer in answers:
        rows = [_read(row, config, answer) for row in _rows(visible_texts(page(answer)))]
        if not rows:
            raise SourceChangedError(f'{answer.url}: no instance with "GiB VRAM"')
        prices: dict[str, Decimal] = {}
        for read_row in rows:
            if isinstance(read_row, Listing):
                price = prices.setdefault(read_row.raw_label, read_row.native_price)
                if price != read_row.native_price:
                    raise SourceChangedError(f"{answer.url}: two prices for {read_row.raw_label}")
        yield from rows


def _rows(texts: list[str]) -> Iterator[Row]:
    """Rows around "80 GiB VRAM"; the name stands before it, in the same text or the one before."""
    found = [(at, match) for at, text in enumerate(texts) if (match := _VRAM.fullmatch(text))]
    for place, (at, match) in enumerate(found):
        end = min(len(texts), at + MAX_TEXTS_PER_ROW)
        if place + 1 < len(found):
            next_at, next_match = found[place + 1]
            end = min(end, next_at if next_match["label"] else next_at - 1)
        label = match["label"] or (texts[at - 1] if at else "")
        yield Row(
            label.strip(" ,|·"),
            number(match["vram"]),
            " ".join([match["rest"], *texts[at + 1 : end]]).strip(),
        )


def _read(row: Row, config: SourceConfig, answer: Answer) -> Listing | Reject:
    if re.search(r"\bMIG\b", row.label, re.IGNORECASE):
        return _reject(
            RejectReason.UNKNOWN_GPU_SHARE,
            f"{row.label}: a slice of a GPU, and the page does not say how much",
            row,
            answer,
        )
    specs = _SPECS.match(row.rest)
    vcpus, ram = (specs["vcpus"], specs["ram"]) if specs else (None, None)
    tail = row.rest[specs.end() :] if specs else row.rest
    if not row.label or not re.search(r"[A-Za-z]", row.label) or "$" in row.label:
        return _reject(RejectReason.UNREADABLE_ROW, "no name before the GPU memory", row, answer)
    if is_not_offered(" ".join(tail.split()[:2])):
        return _reject(RejectReason.NOT_OFFERED, f"{row.label}: {tail[:40]!r}", row, answer)
    try:
        amount, unit = _price(tail, config)
        if amount <= 0:
            return _reject(RejectReason.ZERO_PRICE, f"{row.label}: {tail[:40]!r}", row, answer)
    except UnreadableError as error:
        return _reject(RejectReason.UNREADABLE_PRICE, f"{row.label}: {error}", row, answer)
    count = _COUNT.match(row.label)
    gpu_count = int(count[1]) if count else 1
    return Listing(
        raw_label=row.label,
        gpu_count=gpu_count,
        price_kind="serverless",
        native_price=amount,
        native_currency="USD",
        native_unit=_NATIVE_UNITS[unit, gpu_count == 1],
        answer=answer,
        context={"vram_gb" if gpu_count == 1 else "vram_total_gb": row.vram_gib},
        vcpus=float(vcpus) if vcpus else None,
        ram_gib=float(ram) if ram else None,
    )


def _price(tail: str, config: SourceConfig) -> tuple[Decimal, str]:
    """Amount and unit (minute, hour). A second amount has to be the same price per hour.

    Raises UnreadableError.
    """
    first = _PRICE.match(tail)
    if first is None:
        raise UnreadableError(f"no price in {tail[:60]!r}")
    unit = _UNITS.get((first["unit"] or config.settings["bare_price_unit"]).lower())
    if unit is None:
        raise UnreadableError(f"a price per {first['unit']}")
    amount = money(first["amount"])
    second = _PRICE.match(tail, first.end()) if tail[first.end() :].startswith("$") else None
    if second is not None:
        hourly = amount * MINUTES_PER_HOUR if unit == "minute" else amount
        if abs(hourly - money(second["amount"])) > HOURLY_ROUNDING_USD:
            raise UnreadableError(
                f"{first['amount']} and {second['amount']} are not one price per minute and hour"
            )
    return amount, unit


def _reject(reason: RejectReason, detail: str, row: Row, answer: Answer) -> Reject:
    raw = f"{row.label} {row.vram_gib} GiB VRAM {row.rest[:200]}"
    return Reject(reason, detail, raw, answer)
