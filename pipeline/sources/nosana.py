"""Nosana: markets, each for one kind of GPU in one tier, at the hosts' hourly reward plus a fee."""

import re
from decimal import Decimal

from pipeline.sources import kit

ONE_GPU = ("PREMIUM", "COMMUNITY")
"""Market types that have one GPU unless the name states a number of GPUs."""


@kit.reader("no market")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per market that is open to everyone."""
    return kit.read_rows(audit.items(answer, "markets"), _read_market, "name", "slug")


def _read_market(market: kit.JsonObject) -> kit.Listings:
    if not isinstance(slug := market.peek("slug"), str | None):
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"the slug is {slug!r}, not a text")
    _reject_other_product(market)
    label, gpu_types = market.text("name"), market.get("gpu_types")
    is_one_kind = isinstance(gpu_types, list) and len(gpu_types) == 1 and isinstance(gpu_types[0], str)
    tier = market.optional_text("type")
    yield market.listing(
        label,
        _gpu_count(label, market.optional_text("slug") or "", tier),
        _with_fee(market),
        context={"gpu_name": gpu_types[0]} if is_one_kind else {},
        tier=tier.lower() if tier else None,
    )


def _reject_other_product(market: kit.JsonObject) -> None:
    """Raise RowError for a market that does not offer everyone a card to rent."""
    settings, slug = market.config.settings, market.peek("slug") or ""
    name = market.optional_text("name") or ""
    is_laptop = re.search("laptop", f"{name} {slug}", re.IGNORECASE) is not None
    if slug in settings["markets_of_partners"]:
        problem = "a partner's market, which the provider's site does not list"
    elif slug in settings["markets_left_out"] or is_laptop:
        problem = "a market that the provider's calculator does not list"
    elif name and not re.search(settings["names_of_cards"], name):
        problem = "a market that is not named after a card"
    else:
        return
    raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, problem)


def _gpu_count(name: str, slug: str, tier: str | None) -> int:
    """Return the GPU count in the name or the slug, or 1 for an ordinary market. Raises RowError."""
    stated = kit.gpu_count_in(name) or kit.gpu_count_in(slug)
    if stated is None and tier not in ONE_GPU:
        raise kit.RowError(
            kit.RejectReason.UNKNOWN_GPU_COUNT, f"a market of type {tier!r} without a number of GPUs"
        )
    return stated or 1


def _with_fee(market: kit.JsonObject) -> Decimal:
    """Return the host's reward plus the network's fee. Raises RowError if either amount is unreadable."""
    reward, percent = market.price("usd_reward_per_hour"), market.optional_decimal("network_fee_percentage")
    if percent is None or not 0 <= percent < 100:
        raise kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, f"network_fee_percentage {percent}")
    return reward * (100 + percent) / 100
