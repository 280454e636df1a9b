"""Verda (formerly DataCrunch): the API's instance types and their free locations, and the page's JSON-LD.

Prices are per hour of the whole machine; a long-term period states a discount on these prices. The page
repeats the API's machines and adds clusters and serverless containers. If the page and the API both list a
machine, the API's row is used, because it names the instance type.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

STORAGE = "Monthly storage price per GiB"

TIERS: dict[str, tuple[str, kit.PriceKind, str | None]] = {
    "Hourly on-demand instance price": ("on-demand", "on_demand", None),
    "Hourly spot instance price": ("spot", "spot", None),
    "Hourly instant cluster price": ("instant cluster", "on_demand", "cluster"),
    "Hourly serverless container price": ("serverless continuous", "serverless", None),
    "Hourly serverless spot container price": ("serverless spot", "spot", "serverless"),
}
"""For each description of offers on the page: how their names end, the price kind and the tier."""

API_PRICES: tuple[tuple[str, kit.PriceKind, str | None, bool], ...] = (
    ("price_per_hour", "on_demand", None, True),
    ("spot_price", "spot", None, True),
    ("serverless_price", "serverless", None, False),
    ("serverless_spot_price", "spot", "serverless", False),
)
"""Price fields of an instance type: field, kind, tier, and whether a missing price is a reject."""

_MARKS = ("instance_type", "discount_percentage", "availabilities")
"""Fields that each identify one list in the API: types, long-term periods, and free locations."""


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a request for the list's URL in an earlier version of the API."""
    earlier = config.settings["earlier_urls"].get(answer.url)
    return [kit.Request(earlier)] if earlier else []


@kit.joint_reader("no GPU machine with a price")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per machine, price kind, long-term period and location where the machine is free.

    A machine that is free nowhere has one listing, without a region and with ``available`` False. CPU
    machines and storage are skipped.
    """
    lists, offers = _sort(answers, audit)
    periods, refused = _read_periods(lists["discount_percentage"])
    yield from refused
    free = _locations_by_type(lists["availabilities"]) if "availabilities" in lists else None
    rows = list(kit.read_rows(lists["instance_type"], lambda item: _read_type(item, free), "instance_type"))
    rows += [row for each in rows if isinstance(each, kit.Listing) for row in _long_term(each, periods)]
    by_api = {_price_key(row): row.native_price for row in rows if isinstance(row, kit.Listing)}
    yield from rows
    for row in kit.read_rows(offers, _read_page_offer, "name"):
        yield _unless_by_api(row, by_api)


def _sort(
    answers: kit.Answers, audit: kit.FieldAudit
) -> tuple[dict[str, list[kit.JsonObject]], list[kit.JsonObject]]:
    """Return the API lists' objects, keyed by the field that identifies each list, and the page's offers."""
    lists: dict[str, list[kit.JsonObject]] = defaultdict(list)
    offers: list[kit.JsonObject] = []
    for answer in answers:
        documents = _documents(answer)
        if not answer.is_json and not any(map(_offers_in, documents)):
            raise answer.changed("the page's JSON-LD has no offer")
        for document in documents:
            offers += [audit.item(offer, answer, "offer.") for offer in _offers_in(document)]
            if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
                continue
            mark = next((mark for mark in _MARKS if any(mark in item for item in document)), None)
            if mark:
                lists[mark] += [audit.item(item, answer) for item in document]
    return lists, offers


def _documents(answer: kit.Answer) -> list[Any]:
    """Return the JSON in an answer: all of it, or each JSON-LD script of a page."""
    if answer.is_json:
        return [answer.json()]
    scripts = kit.page(answer).find_all("script", type="application/ld+json")
    if not scripts:
        raise answer.changed("the page has no JSON-LD")
    try:
        return [kit.read_json(script.get_text(), answer.url) for script in scripts]
    except ValueError as error:
        raise answer.changed(f"the page's JSON-LD cannot be read ({error})") from error


def _offers_in(document: Any) -> list[dict[str, Any]]:
    """Return the schema.org offers in a page's graph or a bare list, or the document if it is an offer."""
    nodes = document.get("@graph", document) if isinstance(document, dict) else document
    found = nodes if isinstance(nodes, list) else [nodes]
    return [node for node in found if isinstance(node, dict) and node.get("@type") == "Offer"]


def _locations_by_type(places: list[kit.JsonObject]) -> dict[str, list[str]]:
    free: dict[str, list[str]] = {}
    for place in places:
        location, types = place.optional_text("location_code"), place.get("availabilities")
        if location is None or not isinstance(types, list):
            raise place.answer.changed("a location's availability cannot be read")
        for instance_type in types:
            free.setdefault(str(instance_type), []).append(location)
    return free


def _read_periods(items: list[kit.JsonObject]) -> tuple[list[tuple[int, Decimal]], list[kit.Reject]]:
    """Return the periods on sale, in days, each with the share of the hourly price left after its discount,
    and the rejects."""
    periods, refused = list[tuple[int, Decimal]](), list[kit.Reject]()
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
            periods.append((days, 1 - discount / 100))
        except kit.RowError as error:
            refused.append(item.reject(error, item.name("code")))
    return periods, refused


def _long_term(listing: kit.Listing, periods: list[tuple[int, Decimal]]) -> kit.Listings:
    """Yield an instance's listing under each period; containers and spot instances have no periods."""
    if listing.price_kind != "on_demand" or listing.tier is not None:
        return
    for days, share_of_price in periods:
        yield replace(
            listing,
            price_kind="reserved",
            term_days=days,
            native_price=listing.native_price * share_of_price,
            # A period is sold by quote only: it cannot be ordered.
            flag_reason=kit.FlagReason.CUSTOM_QUOTE,
        )


def _read_type(item: kit.JsonObject, free: Mapping[str, list[str]] | None) -> kit.Rows:
    machine = _machine(item)
    if machine is None:
        return
    fixed_price: dict[str | None, Decimal] = {}  # keyed by tier, which is None for an instance
    for name, kind, tier, is_expected in API_PRICES:
        try:
            price = item.price(name)
        except kit.RowError as error:
            if error.reason is kit.RejectReason.ZERO_PRICE and kind == "spot":
                error.reason = kit.RejectReason.NOT_OFFERED
            if is_expected:
                yield item.reject(error, f"{machine['instance_type']} {kind}")
            continue
        if kind != "spot":
            fixed_price[tier or ("serverless" if kind == "serverless" else None)] = price
        # Availability is stated only for on-demand instances.
        places = _places(free if kind == "on_demand" else None, machine["instance_type"])
        for region, available in places:
            yield item.listing(
                price=price,
                **machine,
                price_kind=kind,
                tier=tier,
                region=region,
                available=available,
                flag_reason=kit.spot_flag(price, fixed_price.get(tier)) if kind == "spot" else None,
            )


def _machine(item: kit.JsonObject) -> dict[str, Any] | None:
    """Return the columns of an instance type's listings, or None for a CPU machine. If the GPUs have no
    description, the instance type's name is the label."""
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
    in_label = kit.gpu_count_in(label)
    if in_label is not None and count is not None and in_label != count:
        detail = f"{label!r} with number_of_gpus {count}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return {
        "label": label or instance_type,
        "label_kind": "gpu_name" if label else "instance_type",
        "instance_type": instance_type,
        "gpu_count": count,
        "native_currency": currency.upper(),
        "context": kit.known(vram_total_gb=item.object("gpu_memory").optional_number("size_in_gigabytes")),
        "vcpus": item.object("cpu").optional_number("number_of_cores"),
        "ram_gib": item.object("memory").optional_number("size_in_gigabytes"),
        "local_disk_gb": item.object("storage").optional_number("size_in_gigabytes"),
    }


def _places(free: Mapping[str, list[str]] | None, instance_type: str) -> list[tuple[str | None, bool | None]]:
    """Return the regions to list for a machine: the regions where it is free, or else a single None."""
    if free is None:
        return [(None, None)]
    return [(region, True) for region in free.get(instance_type, [])] or [(None, False)]


def _read_page_offer(offer: kit.JsonObject) -> kit.Listings:
    description = kit.clean_text(offer.optional_text("description") or "")
    name = kit.clean_text(offer.optional_text("name") or "")
    if description == STORAGE:
        return
    if description not in TIERS or not name.endswith(TIERS[description][0]):
        raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, f"{name!r}, described as {description!r}")
    words, kind, tier = TIERS[description]
    label = name.removesuffix(words).strip()
    if not label or label.startswith("CPU"):
        return  # most CPU machines have no name on the page
    count = kit.gpu_count(kit.gpu_count_in(label))
    yield _page_price(offer).listing(label, count, offer.answer, price_kind=kind, tier=tier)


def _page_price(offer: kit.JsonObject) -> kit.CellPrice:
    """Return an offer's price and currency, each stated twice. Raises RowError if the statements differ."""
    places = [offer, offer.object("priceSpecification")]
    units = {str(unit).lower() for place in places if (unit := place.get("unitText"))}
    if not units <= {"hour", "hur", "h"}:
        raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"the price is per {sorted(units)}")
    price = kit.agreed(kit.price_of(place.get("price")) for place in places if "price" in place)
    currencies = (str(text).upper() for place in places if (text := place.get("priceCurrency")))
    return kit.CellPrice(price, kit.agreed(currencies))


def _price_key(row: kit.Listing) -> tuple[str, str, str | None]:
    return (row.raw_label, row.price_kind, row.tier)


def _unless_by_api(
    row: kit.Listing | kit.Reject, by_api: Mapping[tuple[Any, ...], Decimal]
) -> kit.Listing | kit.Reject:
    if isinstance(row, kit.Reject) or _price_key(row) not in by_api:
        return row
    listed, reason = by_api[_price_key(row)], kit.RejectReason.DUPLICATE
    if listed != row.native_price:
        reason = kit.RejectReason.CONFLICTING_PRICES
    error = kit.RowError(reason, f"the API lists the same machine at {listed}")
    raw = {"label": row.raw_label, "kind": row.price_kind, "price": str(row.native_price)}
    return error.reject(row.raw_label, raw, row.answer)
