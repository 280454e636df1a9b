"""Oracle Cloud: prices per GPU-hour by part number, and the shapes that are billed by those parts.

Three lists of prices are requested, each only if the previous list fails: the products API, the cost
estimator's products and the list behind the price page. Only the first list names a part and its unit; from
the other lists, only part numbers known to be billed per GPU-hour (settings.gpu_parts) are read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pipeline.sources import kit

PAY_AS_YOU_GO = "PAY_AS_YOU_GO"
_MACHINE = re.compile(r"\bCompute ?-.{0,40}\bGPU\b")
_SHAPE_NOTE = re.compile(r" \([^()]{1,40}\)$")


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a request for the next price list after the one that failed."""
    lists = [config.requests[0].url, *config.settings["further_price_lists"]]
    after = lists[lists.index(answer.url) + 1 :] if answer.url in lists else []
    return [kit.Request(url) for url in after[:1]]


@kit.joint_reader("no product billed per GPU-hour and no GPU shape")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per GPU part, or, if the shapes are known, per shape billed by the part. Other products and
    shapes are skipped."""
    items = [item for answer in answers for item in _items(answer, audit)]
    products = [item for item in items if not _is_shape(item)]
    gpus = [product for product in products if _is_gpu_hour(product)]
    shapes = [item for item in items if _is_shape(item) and item.peek("gpuQty")]
    parts: dict[str, kit.Listing] = {}
    yield from _read_parts(gpus, parts)
    billed: set[str] = set()
    for shape in shapes:
        numbers = dict.fromkeys(str(part.get("partNumber")) for part in shape.objects("products"))
        billed.update(numbers)
        yield from _read_shape(shape, [parts[number] for number in numbers if number in parts])
    yield from (part for number, part in parts.items() if number not in billed)
    for url in dict.fromkeys(gpu.answer.url for gpu in gpus if not _names_its_unit(gpu)):
        number = len(audit.config.settings["gpu_parts"])
        yield kit.ReaderWarning(f"{url} names no units: only the {number} known part numbers are read")


def _items(answer: kit.Answer, audit: kit.FieldAudit) -> list[kit.JsonObject]:
    """Return the products or shapes in an answer. The list behind the price page gives prices by part number
    and currency; its known parts are converted to the form of the estimator's products."""
    body = answer.json()
    prices = body.get("items") if isinstance(body, dict) else None
    if not isinstance(prices, dict):
        return audit.items(answer, "items")
    known = [number for number in audit.config.settings["gpu_parts"] if isinstance(prices.get(number), dict)]
    if not known:
        raise answer.changed("none of the known part numbers has prices by currency")
    return [audit.item(_as_product(number, prices[number]), answer, "price.") for number in known]


def _as_product(number: str, by_currency: dict[str, Any]) -> dict[str, Any]:
    local = [
        {"currencyCode": currency, "prices": [{"model": PAY_AS_YOU_GO, "value": value}]}
        for currency, value in by_currency.items()
    ]
    return {"partNumber": number, "pricetype": "HOUR", "currencyCodeLocalizations": local}


def _names_its_unit(product: kit.JsonObject) -> bool:
    return "metricName" in product.raw and "serviceCategory" in product.raw


def _is_shape(item: kit.JsonObject) -> bool:
    return "gpuQty" in item.raw or "shapeType" in item.raw


def _is_gpu_hour(product: kit.JsonObject) -> bool:
    """True if a product is a GPU rented by the hour."""
    if not _names_its_unit(product):
        return product.peek("partNumber") in product.config.settings["gpu_parts"]
    metric, category = (kit.clean_text(str(product.peek(name))) for name in ("metricName", "serviceCategory"))
    prefix = re.escape(product.config.settings["category_prefix"])
    return metric == product.config.settings["metric"] and re.match(rf"{prefix}\b", category) is not None


def _read_parts(products: list[kit.JsonObject], parts: dict[str, kit.Listing]) -> Iterator[kit.Reject]:
    """Add a listing to ``parts`` (keyed by number) for each part with one price; reject the others."""
    by_number: dict[str, list[kit.JsonObject]] = defaultdict(list)
    for product in products:
        by_number[product.name("partNumber")].append(product)
    for number, same in by_number.items():
        priced: list[tuple[kit.JsonObject, kit.Listing]] = []
        for product in same:
            try:
                priced.append((product, _part(product)))
            except kit.RowError as error:
                yield product.reject(error, product.name("displayName", "partNumber"))
        if not priced:
            continue
        try:
            kit.agreed(part.native_price for _, part in priced)
            parts[number] = priced[-1][1]
        except kit.RowError as error:
            yield from (product.reject(error, part.raw_label) for product, part in priced)


def _part(product: kit.JsonObject) -> kit.Listing:
    """Return a listing of one GPU for a part number that is billed per GPU-hour."""
    part_number = product.text("partNumber")
    if _names_its_unit(product):
        label = product.text("displayName")
        if not _MACHINE.search(kit.clean_text(label)):
            detail = "billed per GPU-hour but not a machine (software has the same metric)"
            raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, detail)
    else:
        label = product.config.settings["gpu_parts"][part_number]
        if (unit := product.get("pricetype")) != "HOUR":
            raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"a price per {unit!r}")
    return _price(product).listing(label, 1, product.answer, native_unit="gpu_hour")


def _price(product: kit.JsonObject) -> kit.CellPrice:
    """Return the only pay-as-you-go price, in USD if that is among the currencies. Raises RowError."""
    priced: dict[str, list[Any]] = {}
    for local in product.objects("currencyCodeLocalizations"):
        for price in local.objects("prices"):
            if price.get("model") == PAY_AS_YOU_GO:
                priced.setdefault(str(local.get("currencyCode")), []).append(price.get("value"))
    currency = "USD" if "USD" in priced else next(iter(priced), "")
    if not currency or (currency != "USD" and len(priced) > 1):
        raise kit.RowError(
            kit.RejectReason.NOT_OFFERED, f"no pay-as-you-go price in USD, but in {sorted(priced)}"
        )
    return kit.CellPrice(kit.agreed(map(kit.price_of, priced[currency])), currency)


def _read_shape(shape: kit.JsonObject, parts: list[kit.Listing]) -> kit.Rows:
    name = _SHAPE_NOTE.sub("", kit.clean_text(shape.optional_text("name") or ""))
    is_hidden, status = shape.get("hidden") is True, shape.get("status") or "ACTIVE"
    try:
        if len(parts) != 1:
            detail = f"{len(parts)} of its parts have a price per GPU-hour, instead of one"
            raise kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, detail)
        if not name:
            raise kit.RowError(kit.RejectReason.MISSING_FIELD, "a GPU shape without a name")
        if is_hidden or status != "ACTIVE":
            raise kit.RowError(kit.RejectReason.NOT_OFFERED, "hidden or not active")
        machine = replace(
            parts[0],
            raw_label=name,
            label_kind="instance_type",
            instance_type=name,
            gpu_count=shape.gpu_count("gpuQty"),
            ram_gib=shape.config.settings["memory_gib"].get(name, shape.optional_number("bundleMemoryQty")),
        )
    except kit.RowError as error:
        yield shape.reject(error, name)
        return
    yield machine
    if shape.get("allowPreemptible") is True:
        price = machine.native_price * kit.number(shape.config.settings["preemptible_share"])
        yield replace(machine, native_price=price, price_kind="spot", tier="preemptible_by_rule")
