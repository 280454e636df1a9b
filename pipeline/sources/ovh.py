"""OVHcloud: GPU machines in the order catalogue, per hour and per month of the whole machine, without VAT.

A price is an integer of 1e-8 of the catalogue's currency. It is checked against the text that the catalogue
shows for it, so that another scale cannot pass for a price.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, NativeUnit, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.json_lists import object_in
from pipeline.parsing.prices import RowError, optional_number, price_of
from pipeline.parsing.text import UnreadableError, clean_text, whole_number

PRICE_UNIT = Decimal("1e-8")
ROUNDING = Decimal("0.005")
"""The shown text is rounded to cents: 155819000 is shown as $1.56."""

PLAN_CODE = re.compile(r"(?P<flavor>[\w-]+)\.(?P<mode>consumption|monthly\.postpaid)(?:\.(?P<zone>[\w.-]+))?")
MODES: dict[str, tuple[PriceKind, int | None, NativeUnit]] = {
    "consumption": ("on_demand", None, "instance_hour"),
    "monthly.postpaid": ("reserved", 30, "instance_month"),
}
SECONDS_PER_HOUR = 3600
SIGNS = {"€": "EUR", "$": "USD", "£": "GBP"}


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per Linux GPU plan; Windows plans are rejects, other bricks than "gpu" are not ours.

    A plan tagged as coming soon has a price but cannot be ordered: it is flagged and so not ranked.
    """
    for answer in answers:
        currency, addons = _catalogue(answer)
        for addon in addons:
            try:
                yield _listing(addon, currency, answer)
            except RowError as error:
                raw = {name: addon.get(name) for name in ("planCode", "pricings", "blobs")}
                yield Reject(error.reason, f"{addon.get('planCode')}: {error}", raw, answer)


def _catalogue(answer: Answer) -> tuple[str | None, list[dict[str, Any]]]:
    """Currency and GPU add-ons. A bare list of add-ons has no currency: its shown prices must name it."""
    body = answer.json()
    currency = None
    if isinstance(body, dict):
        locale, body = body.get("locale"), body.get("addons")
        currency = locale.get("currencyCode") if isinstance(locale, dict) else None
        if not isinstance(currency, str):
            raise SourceChangedError(f"{answer.url}: the catalogue does not say its currency")
    if not isinstance(body, list):
        raise SourceChangedError(f"{answer.url}: the catalogue has no list of add-ons")
    addons = [a for a in body if isinstance(a, dict) and _inside(a, "commercial", "brick") == "gpu"]
    if not addons:
        raise SourceChangedError(f"{answer.url}: the catalogue has no add-on of the brick 'gpu'")
    return currency, addons


def _listing(addon: dict[str, Any], currency: str | None, answer: Answer) -> Listing:
    flavor, mode, zone = _plan(addon)
    kind, term_days, unit = MODES[mode]
    pricing = _pricing(addon)
    model = clean_text(str(_technical(addon, "gpu", "model") or ""))
    if not model:
        raise RowError(RejectReason.MISSING_FIELD, "the GPU has no model")
    vram_gb = _technical(addon, "gpu", "memory")
    per_gpu = optional_number(vram_gb.get("size")) if isinstance(vram_gb, dict) else None
    coming = FlagReason.COMING_SOON in str(object_in(addon, "blobs").get("tags"))
    return Listing(
        raw_label=model,
        instance_type=flavor,
        gpu_count=_gpu_count(addon),
        price_kind=kind,
        term_days=term_days,
        native_price=_price(pricing),
        native_currency=_currency(pricing, currency),
        native_unit=unit,
        answer=answer,
        billing_increment_seconds=SECONDS_PER_HOUR if pricing.get("intervalUnit") == "hour" else None,
        context={"vram_gb": per_gpu} if per_gpu else {},
        region=zone,
        available=False if coming else None,
        vcpus=optional_number(_technical(addon, "cpu", "cores")),
        ram_gib=optional_number(_technical(addon, "memory", "size")),
        flag_reason=FlagReason.COMING_SOON if coming else None,
    )


def _plan(addon: dict[str, Any]) -> tuple[str, str, str | None]:
    """Flavor, billing mode and zone of a plan code such as ``h100-380.consumption``."""
    code = addon.get("planCode")
    found = PLAN_CODE.fullmatch(code) if isinstance(code, str) else None
    if found is None:
        raise RowError(RejectReason.UNKNOWN_TERMS, "the plan code does not end in a known billing mode")
    if found["flavor"].startswith("win-") or _technical(addon, "os", "family") == "windows":
        raise RowError(RejectReason.NOT_LINUX, "the price includes a Windows licence")
    return found["flavor"], found["mode"], found["zone"]


def _gpu_count(addon: dict[str, Any]) -> int:
    try:
        count = whole_number(_technical(addon, "gpu", "number"))
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"gpu.number: {error}") from error
    if count < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"gpu.number is {count}")
    return count


def _pricing(addon: dict[str, Any]) -> dict[str, Any]:
    """The one running price; set-up prices are left aside, repetitions of one price are one."""
    given = addon.get("pricings")
    running = [
        pricing
        for pricing in (given if isinstance(given, list) else [])
        if isinstance(pricing, dict) and pricing.get("capacities") != ["installation"]
    ]
    if len({str(pricing.get("price")) for pricing in running}) != 1:
        reason = RejectReason.CONFLICTING_PRICES if running else RejectReason.NOT_OFFERED
        raise RowError(reason, f"{len(running)} running prices")
    if running[0].get("intervalUnit") == "minute":
        raise RowError(RejectReason.UNKNOWN_UNIT, "the price is per minute")
    return running[0]


def _price(pricing: dict[str, Any]) -> Decimal:
    price = price_of(pricing.get("price")) * PRICE_UNIT
    shown = _shown_amount(str(pricing.get("formattedPrice") or ""))
    if shown is not None and abs(shown - price) > ROUNDING:
        raise RowError(RejectReason.CONFLICTING_PRICES, f"{price} is shown as {pricing['formattedPrice']!r}")
    return price


def _shown_amount(text: str) -> Decimal | None:
    """The amount in ``2.80 €``, ``$1,387.00 USD`` or ``1 940,00 €``; None where there is none."""
    digits = re.sub(r"[^\d.,]", "", text)
    found = re.fullmatch(r"([\d.,]*\d)[.,](\d{1,2})|(\d+)", digits)
    if found is None:
        return None
    if found[3]:
        return Decimal(found[3])
    return Decimal(re.sub(r"[.,]", "", found[1]) + "." + found[2])


def _currency(pricing: dict[str, Any], currency: str | None) -> str:
    text = str(pricing.get("formattedPrice") or "")
    shown = {code for sign, code in SIGNS.items() if sign in text}
    found = shown | ({currency} if currency else set())
    if len(found) != 1:
        raise RowError(RejectReason.UNKNOWN_CURRENCY, f"{text!r} in a catalogue of {currency}")
    return found.pop()


def _inside(addon: dict[str, Any], group: str, name: str) -> Any:
    return object_in(object_in(addon, "blobs"), group).get(name)


def _technical(addon: dict[str, Any], group: str, name: str) -> Any:
    return object_in(object_in(object_in(addon, "blobs"), "technical"), group).get(name)
