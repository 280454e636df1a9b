"""Units that price pages and APIs use, and what they are in the units of a listing."""

import re
from decimal import Decimal
from typing import Any

from pipeline.parsing.prices import optional_number

HOURS_PER_MONTH = Decimal(730)
"""8,760 hours a year / 12: what providers' own monthly prices are made of (Scaleway's and Azure's are)."""

MIB_PER_GIB = 1024

GB_PER_GIB = Decimal("1.073741824")

DAYS_PER = {"day": 1, "week": 7, "month": 30, "year": 365}
"""Days of a term that is given in these units."""

_TERM = re.compile(r"(\d{1,3})[ -]?(day|week|month|year)", re.IGNORECASE)


def term_days(text: str) -> int | None:
    """The days of the term that a text names ("12-month commitment"); None where it names none."""
    found = _TERM.search(text)
    return int(found[1]) * DAYS_PER[found[2].lower()] if found else None


def gib_from_mib(value: Any) -> float | None:
    """Memory given in MiB as GiB; None where it is not given or unreadable."""
    amount_mib = optional_number(value)
    return None if amount_mib is None else amount_mib / MIB_PER_GIB


def gb_from_gib(amount_gib: float) -> float:
    """A disk's size given in GiB, in GB."""
    return amount_gib * float(GB_PER_GIB)
