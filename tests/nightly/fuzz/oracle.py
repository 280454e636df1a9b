"""Offers that a reader could have known to be wrong, found without the readers' own code.

An accepted offer is a finding when

- its price is no well-formed number of the answers, nor derived from such numbers in the way that is
  documented for its source (``DERIVED``). A number is well-formed when nothing is glued to its left or right
  ("$1.3O" is none), and in JSON when its field is not repeated with another value;
- its number of GPUs is no such number, not 1, not what the catalogue says of the machine, and not a share of
  a card that follows from two such numbers; or there are more than MAX_GPUS of them;
- its currency is one that the source's sample pages do not have;
- it is spot, unflagged and not below the on-demand price of the same machine, or reserved and above it.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from html import unescape
from itertools import product
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer
from pipeline.gpus import identify

MAX_GPUS = 1_024
"""Clusters are sold in hundreds of GPUs; the largest of the sample pages has 256."""

SLICED = ("gcp", "runpod", "vultr")
"""Sources that sell shares of a card."""

EPSILON = Decimal("1e-8")
"""Prices are kept with eight decimals."""

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\s?\.\s?\d+)?(?:[eE][+-]?\d{1,3})?"
_GLUED = r"[\w%]|[.,']\w|\s?\.\s?\d|-[\d$€£]"
_DIGIT = re.compile(r"\d")
_PRICE = re.compile(
    r"(?=\d)(?:(?<![\w.,$-])|(?<![^\W\d_]\$)(?<=\$)|(?<=US\$)|(?<=USD)|(?<=EUR)|(?<=GBP))"
    r"(?<!\d\s\.\s)(?<!\d\s\.)"
    # Taken whole or not at all; possessive quantifiers in a group are wrong in Python 3.11.2.
    rf"(?=(?P<n>{_NUMBER}))(?P=n)(?:(?=\s?(?:USD|EUR|GBP)\b)|(?!{_GLUED}))"
)
_COUNT = re.compile(
    r"(?=\d)(?<![\w.,])(?=(?P<n>\d{1,9}))(?P=n)(?:(?=\s?[x×](?!\w))|(?!\w|[.,]\d))", re.IGNORECASE
)
_SHARE = re.compile(r"(?=\d)(?<![\w.,/])(?P<over>\d{1,3})\s?/\s?(?P<under>\d{1,3})(?![\w/]|[.,]\d)")
_FOOTNOTES = re.compile(r"[⁰¹²³⁴-⁹†‡*]|<sup\b[^<>]*>(?:[^<]|</?(?:a|b|em|i|span)\b[^<>]*>){0,80}?</sup>")
"""A superscript with a mark in it. One that is not closed ends with the element around it, as in a browser:
what a page says after it is no footnote."""
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\u00ad]")
_DASHES = re.compile(r"[‐-―−]")
_INLINE_TAG = re.compile(r"</?(?:a|abbr|b|em|font|i|mark|s|small|span|strong|u)\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
_UNICODE_ESCAPE = re.compile(r"\\+u00([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Finding:
    """An offer that is wrong by what its own page says: ``kind`` is price, count, currency or order."""

    kind: str
    source: str
    detail: str


@dataclass
class Evidence:
    """The well-formed numbers of some answers, and the objects of their JSON."""

    prices: set[Decimal] = field(default_factory=set)
    counts: set[Decimal] = field(default_factory=lambda: {Decimal(1)})
    objects: list[dict[str, Any]] = field(default_factory=list)

    def add_text(self, text: str) -> None:
        """Take the numbers of a text."""
        if _DIGIT.search(text) is None:
            return
        found = map(_decimal, {match["n"] for match in _PRICE.finditer(text)})
        self.prices.update(price for price in found if price is not None)
        self.counts.update(map(Decimal, {match["n"] for match in _COUNT.finditer(text)}))
        for match in _SHARE.finditer(text):
            if int(match["under"]):
                self.counts.add(Decimal(match["over"]) / Decimal(match["under"]))


def evidence_of(answers: Iterable[Answer]) -> Evidence:
    """The facts in the answers. A body that cannot be decoded has none."""
    found = Evidence()
    for part in (_evidence_of(answer.body) for answer in answers):
        found.prices |= part.prices
        found.counts |= part.counts
        found.objects += part.objects
    return found


@lru_cache(maxsize=100)  # of a visit's answers, most are as they were
def _evidence_of(body: bytes) -> Evidence:
    found = Evidence()
    text = body.decode("utf-8-sig", errors="replace")
    try:
        value = json.loads(text, parse_float=Decimal, object_pairs_hook=_without_contradictions)
    except (ValueError, ArithmeticError, RecursionError):
        for shown in _shown(text):
            found.add_text(shown)
    else:
        _collect(value, found)
    return found


def _without_contradictions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object without the keys that it has with several values: none of these is certain."""
    kept: dict[str, Any] = {}
    repeated: set[str] = set()
    for key, value in pairs:
        if key in kept and kept[key] != value:
            repeated.add(key)
        kept[key] = value
    return {key: value for key, value in kept.items() if key not in repeated}


def _collect(value: Any, found: Evidence) -> None:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found.objects.append(node)
            found.add_text(" ".join(map(_plain, node)))
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, str):
            for text in _shown(node) if "<" in node else [_plain(node)]:
                found.add_text(text)
        elif isinstance(node, int | Decimal) and not isinstance(node, bool) and _is_sane(Decimal(node)):
            found.prices.add(Decimal(node))
            found.counts.add(Decimal(node))


def _shown(text: str) -> list[str]:
    """A page's text with every tag as a gap, and once more with inline tags as none; scripts included."""
    text = _UNICODE_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text).replace("\\", "")
    text = _FOOTNOTES.sub("", unescape(text))
    gaps = _TAG.sub(" ", text)
    closed = _TAG.sub(" ", _INLINE_TAG.sub("", text))
    attributes = " ".join(re.findall(r'"([^"<>]{1,200})"', text))
    return [_plain(gaps), _plain(closed), _plain(attributes)]


def _plain(text: str) -> str:
    text = _INVISIBLE.sub("", _FOOTNOTES.sub("", text))
    return _DASHES.sub("-", unicodedata.normalize("NFKC", text))


def _decimal(text: str) -> Decimal | None:
    number = Decimal(re.sub(r"[\s,]", "", text))
    return number if _is_sane(number) else None


def _is_sane(number: Decimal) -> bool:
    return number.is_finite() and abs(number.adjusted()) < 30


# ------------------------------------------------------------------ derived facts, by source


def _cudo(evidence: Evidence) -> Iterator[Decimal]:
    """A GPU with 8 vCPUs and 32 GiB, or the nearest that the limits of the answer allow."""
    for machine in evidence.objects:
        gpu, vcpu, memory = (
            _part(machine.get(part)) for part in ("gpuPriceHr", "vcpuPriceHr", "memoryGibPriceHr")
        )
        vcpus = _number(machine.get("minVcpuPerGpu"))
        if None in (gpu, vcpu, memory, vcpus):
            continue
        most_vcpus = _number(machine.get("maxVcpuPerGpu"))
        vcpus = max(Decimal(1), vcpus, Decimal(8) if most_vcpus is None else min(Decimal(8), most_vcpus))
        dense, sparse = (_number(machine.get(f"{end}VcpuPerMemoryGib")) for end in ("max", "min"))
        least = math.ceil(vcpus / dense) if dense and dense > 0 else 1
        most = math.floor(vcpus / sparse) if sparse and sparse > 0 else 32
        memory_gib = max(1, least, min(32, most))
        yield gpu + vcpus * vcpu + memory_gib * memory


def _part(price: Any) -> Decimal | None:
    return _number(price.get("value") if isinstance(price, dict) else price)


def _voltagepark(evidence: Evidence) -> Iterator[Decimal]:
    """A preset is its compute and its disk."""
    for preset in evidence.objects:
        rates = [_number(preset.get(f"{part}_rate_hourly")) for part in ("compute", "storage")]
        if None not in rates:
            yield sum(rates, Decimal())


def _oci(evidence: Evidence) -> Iterator[Decimal]:
    """A preemptible shape costs half of the on-demand price, by Oracle's rule."""
    yield from (price / 2 for price in evidence.prices)


def _ovh(evidence: Evidence) -> Iterator[Decimal]:
    """Prices are whole numbers of 1e-8 of the currency."""
    yield from (price.scaleb(-8) for price in evidence.prices)


def _verda(evidence: Evidence) -> Iterator[Decimal]:
    """A long-term period takes its discount, in percent, off the hourly price of an instance type."""
    discounts = [_number(period.get("discount_percentage")) for period in evidence.objects]
    prices = [_number(machine.get("price_per_hour")) for machine in evidence.objects]
    for discount, price in product(discounts, prices):
        if discount is not None and price is not None:
            yield price * (1 - discount / 100)


def _cents(evidence: Evidence) -> Iterator[Decimal]:
    """Prices are in cents."""
    yield from (price.scaleb(-2) for price in evidence.prices)


def _clore(evidence: Evidence) -> Iterator[Decimal]:
    """Prices are per day."""
    yield from (price / 24 for price in evidence.prices)


def _nosana(evidence: Evidence) -> Iterator[Decimal]:
    """A renter pays what the host gets and the network's fee, in percent of it."""
    for market in evidence.objects:
        reward, fee = (
            _number(market.get("usd_reward_per_hour")),
            _number(market.get("network_fee_percentage")),
        )
        if reward is not None and fee is not None:
            yield reward * (1 + fee / 100)


DERIVED: Mapping[str, Callable[[Evidence], Iterator[Decimal]]] = {
    "cudo": _cudo,
    "voltagepark": _voltagepark,
    "oci": _oci,
    "ovh": _ovh,
    "verda": _verda,
    "cloudrift": _cents,
    "hyperbolic": _cents,
    "nosana": _nosana,
    "clore": _clore,
}


def _number(value: Any) -> Decimal | None:
    if isinstance(value, str):
        found = _PRICE.fullmatch(_plain(value).strip())
        return _decimal(found["n"]) if found else None
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value) if _is_sane(Decimal(value)) else None
    return None


# ------------------------------------------------------------------ findings


def findings(
    offers: Sequence[Offer],
    answers: Sequence[Answer],
    config: SourceConfig,
    currencies: frozenset[str],
) -> list[Finding]:
    """Return the errors of accepted offers by their own answers; ``currencies`` are the sample pages'."""
    evidence = evidence_of(answers)
    derived: set[Decimal] | None = None
    found: list[tuple[str, str]] = []
    for offer in offers:
        if offer.flag_reason is not None:
            continue  # in doubt already: it is not ranked
        shown = f"{offer.raw_label} ({offer.price_kind}) at {offer.native_price} {offer.native_currency}"
        if not _is_among(offer.native_price, evidence.prices):
            if derived is None:
                derived = set(DERIVED[config.name](evidence)) if config.name in DERIVED else set()
            if not _is_among(offer.native_price, derived):
                found.append(("price", shown))
        if not _count_is_known(offer, evidence, config):
            found.append(("count", f"{offer.gpu_count:g} GPUs: {shown}"))
        if offer.native_currency not in currencies:
            found.append(("currency", shown))
    found += [("order", detail) for detail in _out_of_order(offers)]
    return [Finding(kind, config.name, detail) for kind, detail in found]


def _is_among(price: Decimal, prices: set[Decimal]) -> bool:
    return price in prices or any(abs(price - other) < EPSILON for other in prices)


def _count_is_known(offer: Offer, evidence: Evidence, config: SourceConfig) -> bool:
    count = Decimal(str(offer.gpu_count))
    if count > MAX_GPUS:
        return False
    return (
        count in evidence.counts
        or _catalogued(offer, count)
        or (config.name in SLICED and _is_share(count, evidence.counts | _numbers_of(config)))
        or any(other and count / other in evidence.counts for other in _numbers_of(config))
        or (config.name in SLICED and any(count * n in evidence.counts for n in _numbers_of(config)))
    )


def _is_share(count: Decimal, numbers: set[Decimal]) -> bool:
    """True if a fraction of a card is the ratio of two numbers, its memory and the card's."""
    return count < 1 and any(abs(count * card - part) < EPSILON for card in numbers for part in numbers)


def _numbers_of(config: SourceConfig) -> set[Decimal]:
    """The numbers of the yaml's settings: memory of whole cards, least number of machines in a cluster."""
    found: set[Decimal] = set()
    waiting: list[Any] = [dict(config.settings)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)
        elif isinstance(node, int | float) and not isinstance(node, bool):
            found.add(Decimal(str(node)))
    return found


def _catalogued(offer: Offer, count: Decimal) -> bool:
    """True if the catalogue states that number of GPUs for a machine of that name."""
    names = {offer.instance_type, offer.raw_label} - {None}
    stated = [identify(name, provider=offer.source, kind="instance_type").gpu_count for name in names]
    return float(count) in stated


def _out_of_order(offers: Sequence[Offer]) -> Iterator[str]:
    """Spot not below on-demand, and reserved above it, of one machine. A commitment's tier is its kind, where
    the on-demand price has none."""

    def machine(offer: Offer, tier: str | None) -> tuple[Any, ...]:
        return (offer.raw_label, offer.instance_type, offer.gpu_count, offer.region, offer.native_unit, tier)

    dearest: dict[tuple[Any, ...], Decimal] = {}
    for offer in offers:
        if offer.price_kind == "on_demand":
            key = machine(offer, offer.tier)
            dearest[key] = max(offer.native_price, dearest.get(key, offer.native_price))
    for offer in offers:
        if offer.flag_reason is not None or offer.is_marketplace:
            continue
        limit = dearest.get(machine(offer, offer.tier))
        if limit is None and offer.price_kind == "reserved":
            limit = dearest.get(machine(offer, None))
        if limit is None:
            continue
        shown = f"{offer.raw_label} at {offer.native_price} {offer.price_kind}, {limit} on demand"
        if offer.price_kind == "spot" and offer.native_price >= limit:
            yield shown
        if offer.price_kind == "reserved" and offer.native_price > limit:
            yield shown
