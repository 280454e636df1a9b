"""Native prices in US dollars per hour, unrounded."""

from decimal import Decimal
from typing import TYPE_CHECKING, cast

from pipeline.parsing.units import HOURS_PER_MONTH, TIMES_PER_HOUR, TimeUnit

if TYPE_CHECKING:
    from pipeline.contracts.listing import NativeUnit

HOURS_PER_DAY = 24


def usd_per_hour(
    native_price: Decimal,
    native_unit: "NativeUnit",
    gpu_count: float,
    term_days: int | None,
    fx: Decimal,
) -> Decimal:
    """Return the price of one hour of the whole offer, in US dollars.

    A ``gpu_*`` price is multiplied by ``gpu_count``; an ``instance_*`` price is for the whole offer; a month
    has 730 hours; an ``instance_term`` price is for all ``term_days`` days of 24 hours. ``fx`` is the dollar
    price of one unit of the native currency. Raises ValueError for a term price without a positive term.
    """
    if native_unit == "instance_term":
        if not term_days or term_days < 0:
            raise ValueError(f"a price for a whole term needs term_days above 0, not {term_days!r}")
        return native_price / (term_days * HOURS_PER_DAY) * fx
    thing, period = native_unit.split("_")
    things = Decimal(str(gpu_count)) if thing == "gpu" else Decimal(1)
    if period == "month":
        return native_price * things / HOURS_PER_MONTH * fx
    return native_price * things * TIMES_PER_HOUR[cast(TimeUnit, period)] * fx
