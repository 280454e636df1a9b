"""Kinds of renting: whose machine it is, and who sets its price."""

import re
from typing import Literal, get_args

TierClass = Literal["dedicated", "community", "marketplace", "serverless"]
TIER_CLASSES: tuple[TierClass, ...] = get_args(TierClass)

NAMED_BY_TIER = "^(community|marketplace|serverless)"
"""Tiers that begin with the name of their class, such as ``marketplace_verified``."""


def tier_class(tier: str | None, price_kind: str, of_source: TierClass) -> TierClass:
    """The class of an offer's tier; ``of_source`` where neither its price kind nor its tier names one."""
    if price_kind == "serverless":
        return "serverless"
    named = re.match(NAMED_BY_TIER, tier or "")
    return named[0] if named else of_source  # type: ignore[return-value]
