"""Prime Intellect: an aggregator's offers, each with the cloud that owns the machine."""

from pipeline.sources import kit

_SOLD_OUT = frozenset({"unavailable", "out_of_stock", "none"})


@kit.reader("no offer with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Every offer with GPUs; machines without GPUs (``CPU_NODE``) are skipped."""
    not_gpus = audit.config.settings["not_gpus"]
    offers = [offer for offer in audit.items(answer, "items") if offer.peek("gpuType") not in not_gpus]
    return kit.read_rows(offers, _read_offer, "provider", "cloudId")


def _read_offer(offer: kit.JsonObject) -> kit.Listings:
    prices, vcpus, memory = (offer.object(name) for name in ("prices", "vcpu", "memory"))
    stock, tier = offer.optional_text("stockStatus"), offer.optional_text("security")
    yield offer.listing(
        offer.text("gpuType"),
        offer.gpu_count("gpuCount"),
        prices.price("onDemand", "communityPrice"),
        native_currency=prices.optional_text("currency") or offer.config.currency,
        price_kind="spot" if offer.get("isSpot") is True else "on_demand",
        instance_type=offer.optional_text("cloudId"),
        context=kit.known(form_factor=offer.optional_text("socket")),
        region=offer.optional_text("region", "country"),
        country=offer.optional_text("country"),
        available=stock.casefold() not in _SOLD_OUT if stock else None,
        tier=tier.removesuffix("_cloud") if tier else None,
        upstream_provider=_upstream(offer.optional_text("provider"), offer.config),
        interconnect=offer.optional_text("interconnectType"),
        node_network_gbps=offer.optional_number("interconnect") or None,
        vcpus=vcpus.optional_number("defaultCount"),
        ram_gib=memory.optional_number("defaultCount"),
        flag_reason=_flag(offer, [vcpus, memory]),
    )


def _upstream(name: str | None, config: kit.SourceConfig) -> str | None:
    """Return the cloud that owns the machine, named as in the cloud's own source, if any."""
    source = kit.configs().get(config.settings["upstream_sources"].get(name, ""))
    return source.provider if source else name


def _flag(offer: kit.JsonObject, parts: list[kit.JsonObject]) -> kit.FlagReason | None:
    """Return the reason why the price might not be a machine's price per hour, or None."""
    if offer.get("prepaidTime"):
        return kit.FlagReason.PREPAID_TIME
    terms = [(part.get("pricePerUnit"), part.get("defaultIncludedInPrice")) for part in parts]
    if any(price and is_included is False for price, is_included in terms):
        return kit.FlagReason.PARTS_PRICED_APART
    return None
