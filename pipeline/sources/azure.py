"""Azure: items from the pages of the Retail Prices API. The GPU follows from the machine size (armSkuName).

An item's names show what is priced: Windows in productName, Spot or Low Priority at the end of meterName. An
on-demand item also contains the hourly prices of its savings plans. Sizes that are not GPU sizes
(settings.gpu_sizes) are skipped.
"""

import re
from dataclasses import replace

from pipeline.sources import kit

_ORDINARY = frozenset(
    {
        kit.RejectReason.DISCONTINUED,
        kit.RejectReason.NOT_LINUX,
        kit.RejectReason.OTHER_PRICE_KIND,
        kit.RejectReason.OTHER_PRODUCT,
    }
)
_NEXT_LINK = kit.NextLinkPaging(kind="next_link", field="NextPageLink")
_SKIP = re.compile(r"&\$skip=(\d+)")


def next_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return the request for the linked page. If a full page has no link, the rest of the list is requested
    by offset."""
    linked = kit.next_page(kit.Request(answer.url), answer, _NEXT_LINK)
    if linked is not None:
        return [linked]
    body = answer.json() if answer.is_json else None
    items = body.get("Items") if isinstance(body, dict) else None
    if not isinstance(items, list) or len(items) not in config.settings["full_page_items"]:
        return []
    skipped = _SKIP.search(answer.url)
    position = len(items) + (int(skipped[1]) if skipped else 0)
    return [kit.Request(f"{_SKIP.sub('', answer.url)}&$skip={position}")]


@kit.joint_reader("no item of a GPU size")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every Linux price for a GPU size, and one reject per size and ordinary reason: meters for other
    products outnumber the offers and would crowd out the rejects that a person should see."""
    ordinary: dict[tuple[kit.RejectReason, str], list[kit.Reject]] = {}
    for row in (row for answer in answers for row in _read_page(answer, audit)):
        if isinstance(row, kit.Reject) and row.reason in _ORDINARY:
            ordinary.setdefault((row.reason, str(row.raw.get("armSkuName"))), []).append(row)
        else:
            yield row
    for first, *more in ordinary.values():
        yield replace(first, detail=f"{first.detail} (and {len(more)} more)") if more else first


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    page = audit.envelope(answer, "Items")
    items = page.items("Items")
    currency = page.optional_text("BillingCurrency") or audit.config.currency
    is_gpu_size = re.compile(audit.config.settings["gpu_sizes"]).fullmatch
    gpu_items = (item for item in items if is_gpu_size(str(item.peek("armSkuName"))))
    yield from kit.read_rows(
        gpu_items, lambda item: _read_item(item, currency), "armSkuName", "armRegionName"
    )


def _read_item(item: kit.JsonObject, currency: str) -> kit.Rows:
    _reject_other_product(item)
    starts = kit.date_of(item.optional_text("effectiveStartDate") or "")
    ends = kit.date_of(item.optional_text("effectiveEndDate") or "")
    if ends is not None and ends < max(kit.day_of(item.answer), starts or ends):
        raise kit.RowError(kit.RejectReason.DISCONTINUED, f"the price was valid from {starts} to {ends}")
    term_days = _term_days(item, "reservationTerm") if item.get("type") == "Reservation" else None
    size, region = item.text("armSkuName"), item.text("armRegionName")
    restricted = region.startswith(tuple(item.config.settings["restricted_region_prefixes"]))
    listing = item.listing(
        size,
        None,
        item.price("retailPrice"),
        instance_type=size,
        label_kind="instance_type",
        price_kind="reserved" if term_days else "spot" if _is_spot(item) else "on_demand",
        native_currency=item.optional_text("currencyCode") or currency,
        native_unit="instance_term" if term_days else "instance_hour",
        term_days=term_days,
        region=region,
        max_nodes=1 if re.fullmatch(item.config.settings["sizes_without_rdma"], size) else None,
        effective_from=kit.effective_from(starts, item.answer),
        flag_reason=kit.FlagReason.RESTRICTED_REGION if restricted else None,
    )
    yield listing
    for plan in item.objects("savingsPlan"):
        yield _read_savings_plan(plan, listing)


def _read_savings_plan(plan: kit.JsonObject, listing: kit.Listing) -> kit.Listing | kit.Reject:
    """Return the listing under a savings plan, whose price is hourly (a reservation's price is a total)."""
    try:
        if listing.price_kind != "on_demand":
            detail = f"a savings plan for a {listing.price_kind} price"
            raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, detail)
        return replace(
            listing,
            price_kind="reserved",
            tier="savings_plan",
            term_days=_term_days(plan, "term"),
            native_price=plan.price("retailPrice"),
        )
    except kit.RowError as error:
        return plan.reject(error, f"{listing.raw_label}, {listing.region}")


def _reject_other_product(item: kit.JsonObject) -> None:
    """Raise RowError for a meter that has a GPU size but is not for a Linux machine that anyone can rent."""
    product, meter = item.text("productName").lower(), item.text("meterName").lower()
    kind, unit, service = item.text("type"), item.text("unitOfMeasure"), item.get("serviceName")
    reasons, units_from = kit.RejectReason, item.get("tierMinimumUnits") or 0
    for is_refused, reason, detail in (
        (service not in (None, "Virtual Machines"), reasons.OTHER_PRODUCT, f"of the service {service!r}"),
        ("windows" in product, reasons.NOT_LINUX, f"a Windows meter: {product!r}"),
        ("cloudservices" in product.replace(" ", ""), reasons.OTHER_PRODUCT, f"Cloud Services: {product!r}"),
        (meter.endswith("low priority"), reasons.OTHER_PRICE_KIND, f"for Azure Batch only: {meter!r}"),
        (meter.endswith("expired"), reasons.DISCONTINUED, f"an expired meter: {meter!r}"),
        (kind == "DevTestConsumption", reasons.OTHER_PRODUCT, "only for Dev/Test subscriptions"),
        (kind not in ("Consumption", "Reservation"), reasons.OTHER_PRICE_KIND, f"of type {kind!r}"),
        (unit not in ("1 Hour", "1/Hour"), reasons.UNKNOWN_UNIT, f"a price per {unit!r}"),
        (kit.optional_number(units_from) != 0, reasons.VOLUME_PRICE, f"only above {units_from} units"),
    ):
        if is_refused:
            raise kit.RowError(reason, detail)


def _is_spot(item: kit.JsonObject) -> bool:
    names = [item.optional_text(name) or "" for name in ("meterName", "skuName")]
    return any(name.lower().endswith(" spot") for name in names)


def _term_days(item: kit.JsonObject, name: str) -> int:
    term = item.get(name)
    days = item.config.settings["term_days"].get(str(term))
    if days is None:
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, f"a commitment for {term!r}")
    return int(days)
