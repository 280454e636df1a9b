"""OVHcloud: GPU machines in the order catalogue, per hour and per month for the whole machine, without VAT.

A price is an integer in units of 1e-8 of the catalogue's currency. Each price is checked against the text
that the catalogue shows for it, so that a price on another scale is refused.
"""

import re
from decimal import Decimal

from pipeline.sources import kit

PRICE_UNIT = Decimal("1e-8")
ROUNDING = Decimal("0.005")
"""The displayed price is rounded to cents: 155819000 is shown as $1.56."""

PLAN_CODE = re.compile(r"(?P<flavor>[\w-]+)\.(?P<mode>consumption|monthly\.postpaid)(?:\.(?P<zone>[\w.-]+))?")
MODES: dict[str, tuple[kit.PriceKind, int | None, kit.NativeUnit]] = {
    "consumption": ("on_demand", None, "instance_hour"),
    "monthly.postpaid": ("reserved", 30, "instance_month"),
}
SIGNS = {"€": "EUR", "$": "USD", "£": "GBP"}


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per Linux GPU plan. Windows plans become rejects; add-ons of bricks other than "gpu" are
    skipped.

    A plan tagged as coming soon has a price but cannot be ordered, so it is flagged and not ranked.
    """
    currency, addons = _catalogue(answer, audit)
    for addon in addons:
        try:
            yield _listing(addon, currency)
        except kit.RowError as error:
            raw = {name: addon.raw.get(name) for name in ("planCode", "pricings", "blobs")}
            yield addon.reject(error, addon.name("planCode"), raw)


def _catalogue(answer: kit.Answer, audit: kit.FieldAudit) -> tuple[str | None, list[kit.JsonObject]]:
    """Return the currency and the GPU add-ons. In a bare list of add-ons, the displayed prices give the
    currency."""
    body = audit.envelope(answer, "addons")
    is_list = answer.body.lstrip().startswith(b"[")
    currency = None if is_list else body.object("locale").optional_text("currencyCode")
    if not is_list and currency is None:
        raise answer.changed("the catalogue does not state its currency")
    addons = [a for a in body.items("addons") if a.peek("blobs", "commercial", "brick") == "gpu"]
    if not addons:
        raise answer.changed("the catalogue has no add-on of the brick 'gpu'")
    return currency, addons


def _listing(addon: kit.JsonObject, currency: str | None) -> kit.Listing:
    blobs = addon.object("blobs")
    technical = blobs.object("technical")
    gpu = technical.object("gpu")
    flavor, mode, zone = _plan(addon.optional_text("planCode") or "", technical)
    kind, term_days, unit = MODES[mode]
    pricing = _pricing(addon, unit)
    price, native_currency = _price(pricing, currency)
    vram_gb = gpu.object("memory").optional_number("size")
    is_coming = "coming_soon" in str(blobs.get("tags"))
    return addon.listing(
        kit.clean_text(gpu.text("model")),
        gpu.gpu_count("number"),
        price,
        instance_type=flavor,
        price_kind=kind,
        term_days=term_days,
        native_currency=native_currency,
        native_unit=unit,
        context=kit.known(vram_gb=vram_gb),
        region=zone,
        available=False if is_coming else None,
        vcpus=technical.object("cpu").optional_number("cores"),
        ram_gib=technical.object("memory").optional_number("size"),
        flag_reason=kit.FlagReason.COMING_SOON if is_coming else None,
        **(addon.config.settings["billing"].get(native_currency, {}) if kind == "on_demand" else {}),
    )


def _plan(code: str, technical: kit.JsonObject) -> tuple[str, str, str | None]:
    """Return the flavor, billing mode and zone in a plan code such as ``h100-380.consumption``."""
    found = PLAN_CODE.fullmatch(code)
    if found is None:
        detail = "the plan code does not end in a known billing mode"
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
    if found["flavor"].startswith("win-") or technical.object("os").get("family") == "windows":
        raise kit.RowError(kit.RejectReason.NOT_LINUX, "the price includes a Windows licence")
    return found["flavor"], found["mode"], found["zone"]


def _pricing(addon: kit.JsonObject, unit: kit.NativeUnit) -> kit.JsonObject:
    """Return an entry with the only recurring price (several may repeat it); set-up prices are ignored.

    The price's interval must be the plan's own, or "none", which leaves the interval open.
    """
    running = [p for p in addon.objects("pricings") if p.peek("capacities") != ["installation"]]
    if not running:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "no running price")
    kit.agreed(str(pricing.get("price")) for pricing in running)
    intervals = {str(pricing.get("intervalUnit") or "none") for pricing in running}
    if others := intervals - {"none", unit.removeprefix("instance_")}:
        raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"a price per {sorted(others)} in a plan of {unit}")
    return running[0]


def _price(pricing: kit.JsonObject, currency: str | None) -> tuple[Decimal, str]:
    """Return the price and its currency, checked against the displayed price. Raises RowError."""
    text = pricing.optional_text("formattedPrice") or ""
    stated = {code for sign, code in SIGNS.items() if sign in text} | ({currency} if currency else set())
    if len(stated) != 1:
        raise kit.RowError(kit.RejectReason.UNKNOWN_CURRENCY, f"{text!r} in a catalogue of {currency}")
    price, shown = pricing.price("price") * PRICE_UNIT, _shown_amount(text)
    if shown is not None and abs(shown - price) > ROUNDING:
        raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, f"{price} is shown as {text!r}")
    return price, stated.pop()


def _shown_amount(text: str) -> Decimal | None:
    """Return the amount in ``2.80 €``, ``$1,387.00 USD``, ``1 940,00 €`` or ``3 $``; None if there is none,
    or if three digits after a comma or point could be either thousands or a fraction."""
    digits = re.sub(r"[^\d.,]", "", text)
    if found := re.fullmatch(r"([\d.,]*\d)[.,](\d{1,2})", digits):
        return Decimal(f"{re.sub('[.,]', '', found[1])}.{found[2]}")
    return Decimal(digits) if digits.isdecimal() else None
