"""Conversion from the units of price pages and APIs to the units of a listing."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from pipeline.parsing.prices import RowError, price_of

HOURS_PER_MONTH = Decimal(730)
"""8,760 hours a year / 12: the factor for monthly prices (at Scaleway and Azure, among others)."""

MIB_PER_GIB = 1024

BYTES_PER_GIB = 2**30

GB_PER_GIB = Decimal("1.073741824")

TimeUnit = Literal["second", "minute", "hour"]
TIMES_PER_HOUR: Mapping[TimeUnit, int] = {"second": 3600, "minute": 60, "hour": 1}

_GIGABYTES = re.compile(r"(\d{1,4}(?:\.\d)?) ?G(?:i?B)?", re.IGNORECASE)


def usd_per_gb_month(usd_per_hour: Any, gb: Decimal = Decimal(1)) -> Decimal | None:
    """Return a disk's price per GB-month, given the hourly price of ``gb`` GB; None if that price is missing
    or unreadable."""
    try:
        return round(price_of(usd_per_hour) * HOURS_PER_MONTH / gb, 6)
    except RowError:
        return None


def gigabytes(text: str | None) -> float | None:
    """Return the amount in a string such as ``80 GB``, ``80G`` or ``1.5 GiB``; None for any other string."""
    found = _GIGABYTES.fullmatch(text or "")
    return float(found[1]) if found else None


def gb_from_gib(amount_gib: float) -> float:
    """Return a disk's size in GB, given its size in GiB."""
    return amount_gib * float(GB_PER_GIB)
