"""How a second reading of a day differs from what was published of it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pipeline.contracts.offer import Offer
from pipeline.gates.prices import price_key


def changes(before: Sequence[Offer], after: Sequence[Offer]) -> list[str]:
    """The differences between two readings of a day, one line per price."""
    old, new = _by_key(before), _by_key(after)
    lines = [f"no longer read: {_priced(offer)}" for key, offer in old.items() if key not in new]
    lines += [f"newly read: {_priced(offer)}" for key, offer in new.items() if key not in old]
    for key in old.keys() & new.keys():
        if _content(old[key]) != _content(new[key]):
            lines.append(f"read differently: {_priced(old[key])} -> {_priced(new[key])}")
    return sorted(lines)


def _by_key(offers: Sequence[Offer]) -> dict[tuple[Any, ...], Offer]:
    """Offers by their key; marketplace asks with the same key are numbered from the cheapest."""
    counts: Counter[tuple[Any, ...]] = Counter()
    found = {}
    for offer in sorted(offers, key=lambda offer: offer.native_price):
        key = price_key(offer)
        found[*key, counts[key]] = offer
        counts[key] += 1
    return found


def _content(offer: Offer) -> tuple[Any, ...]:
    return (offer.gpu_id, offer.native_price, offer.usd_per_hour, offer.flag_reason)


def _priced(offer: Offer) -> str:
    what = f"{offer.raw_label} x{offer.gpu_count:g} ({offer.gpu_id}) {offer.price_kind} {offer.region or ''}"
    return f"{what}: {offer.native_price.normalize():f} {offer.native_currency} per {offer.native_unit}"
