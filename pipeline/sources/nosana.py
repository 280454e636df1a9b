"""Nosana: markets, each of one kind of GPU in one tier; what hosts get per hour, to which a fee is added."""

import re
from decimal import Decimal

from pipeline.sources import kit

ONE_GPU = ("PREMIUM", "COMMUNITY")
"""Types of markets whose name states no number of GPUs because it is one."""


@kit.reader("no market")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per market that is open to everybody."""
    return kit.read_rows(audit.items(answer, "markets"), _read_market, "name", "slug")


def _read_market(market: kit.JsonObject) -> kit.Listings:
    if not isinstance(slug := market.peek("slug"), str | None):
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"the slug is no text but {slug!r}")
    if (problem := _other_product(market)) is not None:
        raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, problem)
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


def _other_product(market: kit.JsonObject) -> str | None:
    """Why a market is not of a card for everybody; None where it is."""
    settings = market.config.settings
    slug = market.peek("slug") or ""
    if slug in settings["markets_of_partners"]:
        return "a partner's market, which the provider's site leaves out"
    name = market.optional_text("name") or ""
    if slug in settings["markets_left_out"] or re.search("laptop", f"{name} {slug}", re.IGNORECASE):
        return "a market that the provider's calculator leaves out"
    if name and not re.search(settings["names_of_cards"], name):
        return "a market that is not named after a card"
    return None


def _gpu_count(name: str, slug: str, tier: str | None) -> int:
    """What the name or the slug states, or the one GPU of an ordinary market. Raises RowError."""
    stated = kit.gpu_count_in(name) or kit.gpu_count_in(slug)
    if stated is None and tier not in ONE_GPU:
        raise kit.RowError(
            kit.RejectReason.UNKNOWN_GPU_COUNT, f"a market of type {tier!r} that states no number of GPUs"
        )
    return stated or 1


def _with_fee(market: kit.JsonObject) -> Decimal:
    """The network's fee is added to what the host gets. Raises RowError."""
    reward, percent = market.price("usd_reward_per_hour"), market.optional_decimal("network_fee_percentage")
    if percent is None or not 0 <= percent < 100:
        raise kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, f"network_fee_percentage {percent}")
    return reward * (100 + percent) / 100
