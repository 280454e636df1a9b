"""Offers' prices as the gates compare them: keys across days, dollars, and how far apart two prices are."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.offer import Offer
from pipeline.gates.thresholds import THRESHOLDS

PriceKey = tuple[Any, ...]


def price_key(offer: Offer) -> PriceKey:
    """Return the key that identifies an offer across days; all its parts survive conversion to JSON.

    A different term or effective date makes a different offer; a different currency does not. The key of a
    resold machine ends with the machine's owner.
    """
    source = configs().get(offer.source)
    owner = () if source is None or source.provider == offer.provider else (offer.provider,)
    return (
        offer.raw_label,
        offer.gpu_id,
        offer.instance_type,
        offer.gpu_count,
        offer.price_kind,
        offer.term_days,
        offer.region,
        offer.tier,
        offer.native_unit,
        offer.effective_from and offer.effective_from.isoformat(),
        *owner,
    )


def in_unexpected_currency(label: str, currency: str, source: str, expected: Iterable[str]) -> str:
    """Return the detail of a reject in a currency that a source is not known to ask."""
    return f"{label!r} is in {currency}; {source} is expected to ask {' or '.join(sorted(expected))}"


def bounds_of(config: SourceConfig) -> tuple[Decimal, Decimal]:
    """Return the lowest and highest USD per GPU-hour that a source may charge, both inclusive."""
    return config.expect.usd_per_gpu_hour or (
        THRESHOLDS.min_usd_per_gpu_hour,
        THRESHOLDS.max_usd_per_gpu_hour,
    )


def relative_change(one: Decimal, other: Decimal) -> Decimal:
    """Return the difference between two prices as a share of the smaller price: the same up and down."""
    return abs(other - one) / min(other, one)


def is_same_price(one: Decimal, other: Decimal) -> bool:
    """True if two prices differ by at most same_price_tolerance."""
    return relative_change(one, other) <= THRESHOLDS.same_price_tolerance


def is_same_figure(one: Decimal, other: Decimal) -> bool:
    """True if two prices differ by at most same_figure_tolerance."""
    return relative_change(one, other) <= THRESHOLDS.same_figure_tolerance


def is_product(price: Decimal, earlier: Decimal, factor: Decimal, tolerance: Decimal) -> bool:
    """True if a price is an earlier one times a factor, up to a share of ``tolerance``, or rounded to cents
    or to its last decimal, if it has more than two."""
    product = earlier * factor
    last_decimal = Decimal(10) ** int(price.as_tuple().exponent)
    rounding = THRESHOLDS.rounding * min(Decimal(1), 100 * last_decimal)
    return abs(price - product) <= max(rounding, tolerance * product)


def usd_of(offer: Offer) -> Decimal:
    """Return an offer's price in USD per GPU-hour. Raises ValueError if the price in dollars is unknown."""
    if offer.usd_per_gpu_hour is None:
        raise ValueError(f"{offer.raw_label!r} has no price in dollars")
    return offer.usd_per_gpu_hour


def usd_text(amount: Decimal | None) -> str:
    """Return an amount in the form used in the details of rejects."""
    return "unknown USD" if amount is None else f"{amount.normalize():f} USD"
