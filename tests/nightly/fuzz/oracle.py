"""Offers that a reader could have known to be wrong, found without the readers' own code.

An accepted offer is a finding when

- its price is no well-formed number of the answers. A number is well-formed when nothing is glued to its left
  or right ("$1.3O" is none), and in JSON when its field is not repeated with another value;
- its number of GPUs is no such number, not 1, not what the catalogue says of the machine, and not a share of
  a card that follows from two such numbers; or there are more than MAX_GPUS of them;
- its currency is one that the source's sample pages do not have.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from html import unescape
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer
from pipeline.gpus import identify

MAX_GPUS = 1_024
"""Clusters are sold in hundreds of GPUs; the largest of the sample pages has 256."""

SLICED = ("gcp", "runpod", "vultr")
"""Sources that sell shares of a card."""

UNITS = {
    "cloudrift": Decimal(100), "hyperbolic": Decimal(100), "ovh": Decimal(10**8), "clore": Decimal(24),
    "oci": Decimal(2),
}  # fmt: skip
"""Stated prices are in cents, 1e-8 of the currency, or per day; a preemptible machine costs half (OCI)."""

COMPUTED = ("cudo", "nosana", "verda", "voltagepark")
"""Sources whose prices are computed from several numbers: tests/sources has the sums."""

EPSILON = Decimal("1e-8")
"""Prices are kept with eight decimals."""

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\s?\.\s?\d+)?(?:[eE][+-]?\d{1,3})?"
_GLUED = r"[\w%]|[.,']\w|\s?\.\s?\d|-[\d$€£]"
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


@dataclass
class Evidence:
    """The well-formed numbers of some answers."""

    prices: set[Decimal] = field(default_factory=set)
    counts: set[Decimal] = field(default_factory=lambda: {Decimal(1)})

    def add_text(self, text: str) -> None:
        """Take the numbers of a text."""
        found = [Decimal(re.sub(r"[\s,]", "", n)) for n in {match["n"] for match in _PRICE.finditer(text)}]
        self.prices.update(filter(_is_sane, found))
        self.counts.update(map(Decimal, {match["n"] for match in _COUNT.finditer(text)}))
        for match in _SHARE.finditer(text):
            if int(match["under"]):
                self.counts.add(Decimal(match["over"]) / Decimal(match["under"]))


@lru_cache(maxsize=100)  # of a visit's answers, most are as they were
def _evidence_of(body: bytes) -> Evidence:
    """The facts in an answer. A body that cannot be decoded has none."""
    found, text = Evidence(), body.decode("utf-8-sig", errors="replace")
    try:
        waiting = [json.loads(text, parse_float=Decimal, object_pairs_hook=_without_contradictions)]
    except (ValueError, ArithmeticError, RecursionError):
        for shown in _shown(text):
            found.add_text(shown)
        return found
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found.add_text(" ".join(map(_plain, node)))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, str):
            for shown in _shown(node) if "<" in node else [_plain(node)]:
                found.add_text(shown)
        elif isinstance(node, int | Decimal) and not isinstance(node, bool) and _is_sane(Decimal(node)):
            found.prices.add(Decimal(node))
            found.counts.add(Decimal(node))
    return found


def _without_contradictions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object without the keys that it has with several values: none of these is certain."""
    kept = dict(pairs)
    repeated = {key for key, value in pairs if kept[key] != value}
    return {key: value for key, value in kept.items() if key not in repeated}


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


def _is_sane(number: Decimal) -> bool:
    return number.is_finite() and abs(number.adjusted()) < 30


def findings(
    offers: Sequence[Offer], answers: Iterable[Answer], config: SourceConfig, currencies: frozenset[str]
) -> list[str]:
    """The errors of accepted offers by their own answers; ``currencies`` are those of the sample pages."""
    parts = [_evidence_of(answer.body) for answer in answers]
    prices = {price for part in parts for price in part.prices}
    counts = {count for part in parts for count in part.counts}
    unit = UNITS.get(config.name, Decimal(1))
    found: list[str] = []
    for offer in offers:
        if offer.flag_reason is not None:
            continue  # in doubt already: it is not ranked
        price = offer.native_price
        shown = f"{offer.raw_label} ({offer.price_kind}) at {price} {offer.native_currency}"
        if config.name not in COMPUTED and not any(
            stated == price or abs(stated / divisor - price) < EPSILON
            for stated in prices
            for divisor in {unit, Decimal(1)}
        ):
            found.append(f"price: {shown}")
        if not _count_is_known(offer, counts, config):
            found.append(f"count: {offer.gpu_count:g} GPUs: {shown}")
        if offer.native_currency not in currencies:
            found.append(f"currency: {shown}")
    return found


def _count_is_known(offer: Offer, counts: set[Decimal], config: SourceConfig) -> bool:
    count, own = Decimal(str(offer.gpu_count)), _numbers_of(config)
    if count > MAX_GPUS:
        return False
    if count in counts or any(number and count / number in counts for number in own):
        return True
    names = {offer.instance_type, offer.raw_label} - {None}
    if offer.gpu_count in [
        identify(name, provider=offer.source, kind="instance_type").gpu_count for name in names
    ]:
        return True
    memory = counts | own
    is_share = count < 1 and any(abs(count * card - part) < EPSILON for card in memory for part in memory)
    return config.name in SLICED and (is_share or any(count * number in counts for number in own))


def _numbers_of(config: SourceConfig) -> set[Decimal]:
    """The numbers of the yaml's settings: memory of whole cards, least number of machines in a cluster."""
    found: set[Decimal] = set()
    waiting: list[Any] = [dict(config.settings)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, int | float) and not isinstance(node, bool):
            found.add(Decimal(str(node)))
    return found
