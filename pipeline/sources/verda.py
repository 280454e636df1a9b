"""Verda (formerly DataCrunch): the API's instance types with where they are free, and the page's JSON-LD.

Prices are per hour of the whole machine. The page repeats the API's machines and adds clusters and
serverless containers; where both list a machine the API's row stands, because it names the instance type.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing import html
from pipeline.parsing.prices import RowError, optional_number, price_of
from pipeline.parsing.text import UnreadableError, clean_text, whole_number

LABEL = re.compile(r"(\d{1,4})x (\S.{0,80})")
STORAGE = "Monthly storage price per GiB"


@dataclass(frozen=True, slots=True)
class _Tier:
    suffix: str
    kind: PriceKind
    tier: str | None = None


TIERS = {
    "Hourly on-demand instance price": _Tier("on-demand", "on_demand"),
    "Hourly spot instance price": _Tier("spot", "spot"),
    "Hourly instant cluster price": _Tier("instant cluster", "on_demand", "cluster"),
    "Hourly serverless container price": _Tier("serverless continuous", "serverless"),
    "Hourly serverless spot container price": _Tier("serverless spot", "serverless", "spot"),
}
"""What the page's offers say they are: their description, and the words their name must end in."""

API_PRICES: tuple[tuple[str, PriceKind, str | None, bool], ...] = (
    ("price_per_hour", "on_demand", None, True),
    ("spot_price", "spot", None, True),
    ("serverless_price", "serverless", None, False),
    ("serverless_spot_price", "serverless", "spot", False),
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


@dataclass(slots=True)
class _Answers:
    """The answers by what they hold."""

    types: list[tuple[Answer, list[dict[str, Any]]]] = field(default_factory=list)
    offers: list[tuple[Answer, list[dict[str, Any]]]] = field(default_factory=list)
    free_at: dict[PriceKind, dict[str, list[str]]] = field(default_factory=dict)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per machine, price kind and location where it is free.

    A machine that is free nowhere keeps one listing without region, ``available`` False. CPU machines and
    storage are not read.
    """
    sorted_answers = _sort(answers)
    rows: list[Listing | Reject] = []
    for answer, types in sorted_answers.types:
        for item in types:
            rows += _instance_type(item, answer, config, sorted_answers.free_at)
    by_api = {_price_key(row): row.native_price for row in rows if isinstance(row, Listing)}
    for answer, offers in sorted_answers.offers:
        for offer in offers:
            rows += [_unless_by_api(row, by_api) for row in _page_offer(offer, answer)]
    if not rows:
        raise SourceChangedError(f"{answers[0].url if answers else 'verda'}: no GPU machine with a price")
    yield from rows


def _sort(answers: Sequence[Answer]) -> _Answers:
    found = _Answers()
    for answer in answers:
        documents = _documents(answer)
        if offers := [offer for document in documents for offer in _offers_in(document)]:
            found.offers.append((answer, offers))
        for items in documents:
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                continue
            if any("instance_type" in item for item in items):
                if not any("price_per_hour" in item for item in items):
                    raise SourceChangedError(f"{answer.url}: no instance type has a price_per_hour")
                found.types.append((answer, items))
            elif any("availabilities" in item for item in items):
                kind: PriceKind = "spot" if "is_spot=true" in answer.url.lower() else "on_demand"
                found.free_at[kind] = _locations_by_type(items, answer)
    return found


def _documents(answer: Answer) -> list[Any]:
    """The JSON in an answer: all of it, or each JSON-LD script of a page."""
    if answer.is_json:
        return [answer.json()]
    documents = html.json_ld(html.page(answer), answer)
    if not documents:
        raise SourceChangedError(f"{answer.url}: the page has no JSON-LD")
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


def _locations_by_type(items: list[dict[str, Any]], answer: Answer) -> dict[str, list[str]]:
    free: dict[str, list[str]] = {}
    for item in items:
        try:
            location = item["location_code"]
            if not isinstance(location, str):
                raise TypeError(f"location_code is {location!r}")
            for instance_type in item["availabilities"]:
                free.setdefault(str(instance_type), []).append(location)
        except (KeyError, TypeError) as error:
            raise SourceChangedError(f"{answer.url}: a location's availability cannot be read") from error
    return free


def _instance_type(
    item: dict[str, Any],
    answer: Answer,
    config: SourceConfig,
    free_at: Mapping[PriceKind, Mapping[str, list[str]]],
) -> Iterator[Listing | Reject]:
    try:
        machine = _machine_of(item, config)
    except RowError as error:
        yield Reject(error.reason, str(error), item, answer)
        return
    if machine is None:
        return
    on_demand = None
    for name, kind, tier, expected in API_PRICES:
        try:
            price = price_of(item.get(name))
        except RowError as error:
            if expected:
                free = kind == "spot" and error.reason is RejectReason.ZERO_PRICE
                reason = RejectReason.NOT_OFFERED if free else error.reason
                yield Reject(reason, f"{machine.instance_type} {name}: {error}", item, answer)
            continue
        if kind == "on_demand":
            on_demand = price
        # The two kinds can be free in different places, so they are compared here and not by region.
        doubtful = kind == "spot" and on_demand is not None and price >= on_demand
        for region, available in _where(machine.instance_type, free_at.get(kind)):
            yield Listing(
                raw_label=machine.label,
                label_kind=machine.label_kind,
                instance_type=machine.instance_type,
                gpu_count=machine.gpu_count,
                price_kind=kind,
                native_price=price,
                native_currency=machine.currency,
                native_unit="instance_hour",
                answer=answer,
                context=_memory_context(item),
                tier=tier,
                region=region,
                available=available,
                vcpus=optional_number(_inside(item, "cpu", "number_of_cores")),
                ram_gib=optional_number(_inside(item, "memory", "size_in_gigabytes")),
                local_disk_gb=optional_number(_inside(item, "storage", "size_in_gigabytes")),
                flag_reason=FlagReason.SPOT_NOT_BELOW_ON_DEMAND if doubtful else None,
            )


def _machine_of(item: dict[str, Any], config: SourceConfig) -> _Machine | None:
    """The machine of an instance type, None for a CPU machine."""
    instance_type, currency = item.get("instance_type"), item.get("currency", config.currency)
    if not isinstance(instance_type, str) or not isinstance(currency, str):
        raise RowError(RejectReason.MISSING_FIELD, "instance_type or currency is missing")
    count = _gpus_of(item)
    if count == 0 or (count is None and instance_type.startswith("CPU.")):
        return None
    label = clean_text(str(_inside(item, "gpu", "description") or ""))
    if not label:
        return _Machine(instance_type, "instance_type", instance_type, count, currency.upper())
    counted = LABEL.fullmatch(label)
    if counted and count is not None and int(counted[1]) != count:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{label!r} with number_of_gpus {count}")
    return _Machine(label, "gpu_name", instance_type, count, currency.upper())


def _gpus_of(item: dict[str, Any]) -> int | None:
    if item.get("gpu") is None:
        return None
    try:
        return whole_number(_inside(item, "gpu", "number_of_gpus"))
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"gpu.number_of_gpus: {error}") from error


def _inside(item: dict[str, Any], group: str, name: str) -> Any:
    value = item.get(group)
    return value.get(name) if isinstance(value, dict) else None


def _memory_context(item: dict[str, Any]) -> dict[str, float]:
    total = optional_number(_inside(item, "gpu_memory", "size_in_gigabytes"))
    return {"vram_total_gb": total} if total else {}


def _where(instance_type: str, free: Mapping[str, list[str]] | None) -> list[tuple[str | None, bool | None]]:
    """Regions to list a machine in: where it is free, or once without a region."""
    if free is None:
        return [(None, None)]
    return [(region, True) for region in free.get(instance_type, [])] or [(None, False)]


def _page_offer(offer: dict[str, Any], answer: Answer) -> Iterator[Listing | Reject]:
    description, name = clean_text(str(offer.get("description", ""))), clean_text(str(offer.get("name", "")))
    if description == STORAGE:
        return
    try:
        tier = TIERS.get(description.capitalize())
        if tier is None:
            raise RowError(RejectReason.UNKNOWN_PRICE_KIND, f"{name!r} is described as {description!r}")
        label, suffix = _split_name(name)
        if suffix not in (tier.suffix, ""):
            raise RowError(RejectReason.UNKNOWN_PRICE_KIND, f"{name!r} is described as {description!r}")
        if not label or label.startswith("CPU"):
            return  # CPU machines mostly have no name on the page
        counted = LABEL.fullmatch(label)
        if counted is None or int(counted[1]) == 0:
            raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{name!r} does not begin with its number of GPUs")
        price, currency = _page_price(offer)
    except RowError as error:
        yield Reject(error.reason, str(error), offer, answer)
        return
    yield Listing(
        raw_label=label,
        gpu_count=int(counted[1]),
        price_kind=tier.kind,
        native_price=price,
        native_currency=currency,
        native_unit="instance_hour",
        answer=answer,
        tier=tier.tier,
    )


def _split_name(name: str) -> tuple[str, str]:
    """The machine's name and the words behind it that say what kind of price it is, "" without such words."""
    suffixes = sorted((tier.suffix for tier in TIERS.values()), key=len, reverse=True)
    suffix = next((words for words in suffixes if name.lower().endswith(words)), "")
    return name[: len(name) - len(suffix)].strip(), suffix


def _page_price(offer: dict[str, Any]) -> tuple[Decimal, str]:
    """Price and currency, which stand twice in an offer and must agree."""
    said_twice = offer.get("priceSpecification")
    places = [offer, said_twice] if isinstance(said_twice, dict) else [offer]
    prices = {price_of(place["price"]) for place in places if "price" in place}
    currencies = {str(place["priceCurrency"]).upper() for place in places if place.get("priceCurrency")}
    units = {str(place["unitText"]).lower() for place in places if place.get("unitText")}
    if len(prices) != 1 or len(currencies) != 1:
        raise RowError(
            RejectReason.CONFLICTING_PRICES, f"prices {sorted(map(str, prices))} in {sorted(currencies)}"
        )
    if not units <= {"hour", "hur", "h"}:
        raise RowError(RejectReason.UNKNOWN_UNIT, f"the price is per {sorted(units)}")
    return prices.pop(), currencies.pop()


def _price_key(row: Listing) -> tuple[Any, ...]:
    return (row.raw_label, row.price_kind, row.tier)


def _unless_by_api(row: Listing | Reject, by_api: Mapping[tuple[Any, ...], Decimal]) -> Listing | Reject:
    if isinstance(row, Reject) or _price_key(row) not in by_api:
        return row
    listed = by_api[_price_key(row)]
    raw = {"label": row.raw_label, "kind": row.price_kind, "price": str(row.native_price)}
    if listed == row.native_price:
        return Reject(RejectReason.DUPLICATE, "the API lists the same machine", raw, row.answer)
    detail = f"the API lists the same machine at {listed}"
    return Reject(RejectReason.CONFLICTING_PRICES, detail, raw, row.answer)
