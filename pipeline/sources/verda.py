"""Verda (formerly DataCrunch): the API's instance types with where they are free, and the page's JSON-LD.

Prices are per hour of the whole machine; a long-term period states a discount on them. The page repeats the
API's machines and adds clusters and serverless containers; where both list a machine the API's row is taken,
because it names the instance type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from pipeline.sources import kit

STORAGE = "Monthly storage price per GiB"


@dataclass(frozen=True, slots=True)
class _Tier:
    suffix: str
    kind: kit.PriceKind
    tier: str | None = None


TIERS = {
    "Hourly on-demand instance price": _Tier("on-demand", "on_demand"),
    "Hourly spot instance price": _Tier("spot", "spot"),
    "Hourly instant cluster price": _Tier("instant cluster", "on_demand", "cluster"),
    "Hourly serverless container price": _Tier("serverless continuous", "serverless"),
    "Hourly serverless spot container price": _Tier("serverless spot", "spot", "serverless"),
}
"""What the page's offers say they are: their description, and the words their name must end in."""

API_PRICES: tuple[tuple[str, kit.PriceKind, str | None, bool], ...] = (
    ("price_per_hour", "on_demand", None, True),
    ("spot_price", "spot", None, True),
    ("serverless_price", "serverless", None, False),
    ("serverless_spot_price", "spot", "serverless", False),
)
"""Price fields of an instance type: field, kind, tier, and whether 0 is worth a reject."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """What an instance type says of its GPUs; without a description its own name is the label."""

    label: str
    label_kind: Literal["gpu_name", "instance_type"]
    instance_type: str
    gpu_count: int | None
    currency: str


@dataclass(frozen=True, slots=True)
class _Period:
    """A length of time to commit to, and what is left of the hourly price then."""

    term_days: int
    share_of_price: Decimal


@dataclass(slots=True)
class _Answers:
    """The objects of the answers by what they are."""

    types: list[kit.JsonObject] = field(default_factory=list)
    periods: list[kit.JsonObject] = field(default_factory=list)
    offers: list[kit.JsonObject] = field(default_factory=list)
    free_at: dict[kit.PriceKind, dict[str, list[str]]] = field(default_factory=dict)


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """The address that an earlier version of the API had for the same list."""
    earlier = config.settings["earlier_urls"].get(answer.url)
    return [kit.Request(earlier)] if earlier else []


def read(answers: kit.Answers, config: kit.SourceConfig) -> kit.Reading:
    """One listing per machine, price kind, long-term period and location where it is free.

    A machine that is free nowhere keeps one listing without region, ``available`` False. CPU machines and
    storage are skipped.
    """
    audit = kit.FieldAudit(config)
    found = _sort(answers, audit)
    periods, refused = _read_periods(found.periods)
    yield from refused
    rows = list(kit.read_rows(found.types, lambda item: _read_type(item, found.free_at), "instance_type"))
    rows += [row for each in rows if isinstance(each, kit.Listing) for row in _long_term(each, periods)]
    by_api = {_price_key(row): row.native_price for row in rows if isinstance(row, kit.Listing)}
    rows += [_unless_by_api(row, by_api) for row in kit.read_rows(found.offers, _read_page_offer, "name")]
    yield from kit.at_least_one(rows, f"{config.name}: no GPU machine with a price")
    yield from audit.warnings()


def _sort(answers: kit.Answers, audit: kit.FieldAudit) -> _Answers:
    found = _Answers()
    for answer in answers:
        for document in _documents(answer):
            found.offers += [audit.item(offer, answer, "offer.") for offer in _offers_in(document)]
            if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
                continue
            items = [audit.item(item, answer) for item in document]
            if any("instance_type" in item for item in document):
                if not any("price_per_hour" in item for item in document):
                    raise answer.changed("no instance type has a price_per_hour")
                found.types += items
            elif any("discount_percentage" in item for item in document):
                found.periods += items
            elif any("availabilities" in item for item in document):
                kind: kit.PriceKind = "spot" if "is_spot=true" in answer.url.lower() else "on_demand"
                found.free_at[kind] = _locations_by_type(items)
    return found


def _documents(answer: kit.Answer) -> list[Any]:
    """The JSON in an answer: all of it, or each JSON-LD script of a page."""
    if answer.is_json:
        return [answer.json()]
    documents = kit.json_ld(kit.page(answer), answer)
    if not documents:
        raise answer.changed("the page has no JSON-LD")
    return documents


def _offers_in(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [offer for part in value for offer in _offers_in(part)]
    if not isinstance(value, dict):
        return []
    kinds = value.get("@type")
    if kinds == "Offer" or (isinstance(kinds, list) and "Offer" in kinds):
        return [value]
    return [offer for part in value.values() for offer in _offers_in(part)]


def _locations_by_type(places: list[kit.JsonObject]) -> dict[str, list[str]]:
    free: dict[str, list[str]] = {}
    for place in places:
        location, types = place.optional_text("location_code"), place.get("availabilities")
        if location is None or not isinstance(types, list):
            raise place.answer.changed("a location's availability cannot be read")
        for instance_type in types:
            free.setdefault(str(instance_type), []).append(location)
    return free


def _read_periods(items: list[kit.JsonObject]) -> tuple[list[_Period], list[kit.Reject]]:
    """The periods that are on sale, and those that cannot be read."""
    periods, refused = list[_Period](), list[kit.Reject]()
    for item in items:
        try:
            if item.get("is_enabled") is not True:
                raise kit.RowError(kit.RejectReason.NOT_OFFERED, "the period is not on sale")
            length = f"{item.whole_number('unit_value')} {item.text('unit_name')}"
            days, discount = kit.term_days(length), item.decimal("discount_percentage")
            if not days:
                raise kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, f"a period of {length!r}")
            if not 0 <= discount < 100:
                raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, f"a discount of {discount} per cent")
            periods.append(_Period(days, 1 - discount / 100))
        except kit.RowError as error:
            refused.append(item.reject(error, item.name("code")))
    return periods, refused


def _long_term(listing: kit.Listing, periods: list[_Period]) -> kit.Listings:
    """What an instance's hourly price is under each period; containers and spot have none."""
    if listing.price_kind != "on_demand" or listing.tier is not None:
        return
    for period in periods:
        yield replace(
            listing,
            price_kind="reserved",
            term_days=period.term_days,
            native_price=listing.native_price * period.share_of_price,
            # A period is sold on a quote only: no machine can be ordered for it.
            flag_reason=kit.FlagReason.CUSTOM_QUOTE,
        )


def _read_type(item: kit.JsonObject, free_at: Mapping[kit.PriceKind, Mapping[str, list[str]]]) -> kit.Rows:
    machine = _machine_of(item)
    if machine is None:
        return
    fixed_price: dict[str | None, Decimal] = {}  # by tier; of the instance the tier is None
    context = kit.known(vram_total_gb=item.object("gpu_memory").optional_number("size_in_gigabytes"))
    for name, kind, tier, is_expected in API_PRICES:
        try:
            price = item.price(name)
        except kit.RowError as error:
            if error.reason is kit.RejectReason.ZERO_PRICE and kind == "spot":
                error.reason = kit.RejectReason.NOT_OFFERED
            if is_expected:
                yield item.reject(error, f"{machine.instance_type} {kind}")
            continue
        if kind != "spot":
            fixed_price[tier or ("serverless" if kind == "serverless" else None)] = price
        free = free_at.get(kind) if tier is None else None  # where instances are free, not containers
        for region, available in _where(machine.instance_type, free):
            yield kit.Listing(
                raw_label=machine.label,
                label_kind=machine.label_kind,
                instance_type=machine.instance_type,
                gpu_count=machine.gpu_count,
                price_kind=kind,
                native_price=price,
                native_currency=machine.currency,
                native_unit="instance_hour",
                answer=item.answer,
                context=context,
                tier=tier,
                region=region,
                available=available,
                vcpus=item.object("cpu").optional_number("number_of_cores"),
                ram_gib=item.object("memory").optional_number("size_in_gigabytes"),
                local_disk_gb=item.object("storage").optional_number("size_in_gigabytes"),
                # The two kinds can be free in different places, so they are compared here and not by region.
                flag_reason=kit.spot_flag(price, fixed_price.get(tier)) if kind == "spot" else None,
            )


def _machine_of(item: kit.JsonObject) -> _Machine | None:
    """The machine of an instance type, None for a CPU machine."""
    gpu, instance_type = item.peek("gpu"), item.peek("instance_type")
    if gpu is None and str(instance_type).startswith("CPU."):
        return None
    if isinstance(gpu, dict) and gpu.get("number_of_gpus") in (0, "0"):
        return None
    instance_type = item.text("instance_type")
    currency = item.text("currency") if "currency" in item else item.config.currency
    described = item.object("gpu")
    count = None if gpu is None else described.gpu_count("number_of_gpus")
    label = kit.clean_text(described.optional_text("description") or "")
    if not label:
        return _Machine(instance_type, "instance_type", instance_type, count, currency.upper())
    in_label = kit.gpu_count_in(label)
    if in_label is not None and count is not None and in_label != count:
        detail = f"{label!r} with number_of_gpus {count}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return _Machine(label, "gpu_name", instance_type, count, currency.upper())


def _where(instance_type: str, free: Mapping[str, list[str]] | None) -> list[tuple[str | None, bool | None]]:
    """Regions to list a machine in: where it is free, or once without a region."""
    if free is None:
        return [(None, None)]
    return [(region, True) for region in free.get(instance_type, [])] or [(None, False)]


def _read_page_offer(offer: kit.JsonObject) -> kit.Listings:
    description = kit.clean_text(offer.optional_text("description") or "")
    name = kit.clean_text(offer.optional_text("name") or "")
    if description == STORAGE:
        return
    tier = TIERS.get(description.capitalize())
    label, suffix = _split_name(name)
    if tier is None or suffix not in (tier.suffix, ""):
        raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, f"described as {description!r}")
    if not label or label.startswith("CPU"):
        return  # CPU machines mostly have no name on the page
    price, currency = _page_price(offer)
    yield kit.Listing(
        raw_label=label,
        gpu_count=kit.gpu_count(kit.gpu_count_in(label)),
        price_kind=tier.kind,
        native_price=price,
        native_currency=currency,
        native_unit="instance_hour",
        answer=offer.answer,
        tier=tier.tier,
    )


def _split_name(name: str) -> tuple[str, str]:
    """The machine's name and the words behind it that say what kind of price it is, "" without such words."""
    suffixes = sorted((tier.suffix for tier in TIERS.values()), key=len, reverse=True)
    suffix = next((words for words in suffixes if name.lower().endswith(words)), "")
    return name[: len(name) - len(suffix)].strip(), suffix


def _page_price(offer: kit.JsonObject) -> tuple[Decimal, str]:
    """Price and currency, which an offer states twice."""
    places = [offer, offer.object("priceSpecification")]
    units = {str(unit).lower() for place in places if (unit := place.get("unitText"))}
    if not units <= {"hour", "hur", "h"}:
        raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"the price is per {sorted(units)}")
    price = kit.agreed(kit.price_of(place.get("price")) for place in places if "price" in place)
    return price, kit.agreed(str(text).upper() for place in places if (text := place.get("priceCurrency")))


def _price_key(row: kit.Listing) -> tuple[Any, ...]:
    return (row.raw_label, row.price_kind, row.tier)


def _unless_by_api(
    row: kit.Listing | kit.Reject, by_api: Mapping[tuple[Any, ...], Decimal]
) -> kit.Listing | kit.Reject:
    if isinstance(row, kit.Reject) or _price_key(row) not in by_api:
        return row
    listed = by_api[_price_key(row)]
    raw = {"label": row.raw_label, "kind": row.price_kind, "price": str(row.native_price)}
    if listed == row.native_price:
        return kit.Reject(kit.RejectReason.DUPLICATE, "the API lists the same machine", raw, row.answer)
    detail = f"the API lists the same machine at {listed}"
    return kit.Reject(kit.RejectReason.CONFLICTING_PRICES, detail, raw, row.answer)
