"""GPU.ai: offers on a marketplace, each priced for all of its GPUs."""

from pipeline.sources import kit

CLASSES = {True: "community", False: "secure"}
"""Class of capacity, keyed by the value of the ``community`` field."""


@kit.joint_reader("no offer")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every offer, but only once: the list may change while its pages are requested."""
    seen: set[str] = set()
    for answer in answers:
        yield from _read_page(answer, audit, seen)


def _read_page(answer: kit.Answer, audit: kit.FieldAudit, seen: set[str]) -> kit.Rows:
    page = audit.envelope(answer, "data")
    offers = page.items("data")
    yield from kit.read_rows(offers, lambda offer: _read_once(offer, seen), "offering_id")
    if "next_cursor" not in page:
        detail = "the page does not say whether another one follows"
        yield kit.Reject(kit.RejectReason.UNREAD_PAGE, detail, sorted(page.raw)[:12], answer)


def _read_once(offer: kit.JsonObject, seen: set[str]) -> kit.Listings:
    offer_id = offer.optional_text("offering_id")
    if offer_id in seen:
        raise kit.RowError(kit.RejectReason.DUPLICATE, "shown by an earlier page")
    seen.update([offer_id] if offer_id else [])
    yield _listing(offer)


def _listing(offer: kit.JsonObject) -> kit.Listing:
    disk_usd, has_more = offer.optional_decimal("disk_price_per_gb_hour"), offer.get("disk_configurable")
    return offer.listing(
        offer.text("gpu_type"),
        offer.gpu_count("gpu_count"),
        offer.price("price_per_hour"),
        native_currency=offer.optional_text("currency") or offer.config.currency,
        price_kind=_kind(offer),
        region=offer.optional_text("region"),
        available=kit.is_available(offer.get("available")),
        tier=f"marketplace_{_capacity(offer)}",
        # 0 stands for an unknown specification.
        vcpus=offer.optional_number("cpu_cores") or None,
        ram_gib=offer.optional_number("ram_gb") or None,
        local_disk_gb=offer.optional_number("instance_disk_gb") or None,
        # The price of additional disk, if it is sold.
        storage_usd_per_gb_month=(
            round(disk_usd * kit.HOURS_PER_MONTH, 6) if has_more is True and disk_usd is not None else None
        ),
    )


def _kind(offer: kit.JsonObject) -> kit.PriceKind:
    tier = offer.get("tier")
    if tier not in ("on_demand", "spot"):
        detail = f"tier {tier!r} is neither on_demand nor spot"
        raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, detail)
    return "spot" if tier == "spot" else "on_demand"


def _capacity(offer: kit.JsonObject) -> str:
    """Return the owner's class and the type of rental, such as ``secure_vm``. Raises RowError if the class is
    missing, or if the two fields for the class contradict each other."""
    community, stated = offer.get("community"), offer.optional_text("capacity_class")
    if not isinstance(community, bool) or stated not in (None, CLASSES[community]):
        detail = f"community is {community!r}, and capacity_class {stated!r}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
    return "_".join(filter(None, (CLASSES[community], offer.optional_text("deployment_type"))))
