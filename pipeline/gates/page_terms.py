"""What a page says of its prices beside the figures: a commitment, a reduction, a tax, another region.

A price that moves on the day on which such a term appears is probably another price than before.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pipeline.catalog.tables import catalog_table
from pipeline.contracts.listing import Answer

_PHRASE = re.compile(r'[^<>"{}\[\]\n]+')
_ESCAPED_TAG = re.compile(r"\\u003[ce]", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d.,]*")
_SPACE = re.compile(r"(?:[\s_\\-]|&nbsp;)+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

MAX_PHRASE_CHARACTERS = 2_000
"""Longer texts between two tags or quotes are scripts and images."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A row of price_terms.csv: words, in lower case, and what they say of a price."""

    words: str
    concerns: str


@cache
def _terms() -> re.Pattern[str]:
    words = sorted((term.words for term in catalog_table("price_terms.csv", _Term)), key=len, reverse=True)
    return re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, words))})(?![a-z])")


def new_terms(former: Iterable[Answer], now: Iterable[Answer]) -> list[str]:
    """Return the words from catalog/price_terms.csv in phrases that the former answers lacked, sorted. A
    phrase is a text between two tags or quotes, or a field's name; figures in it do not count."""
    new = _phrases(now) - _phrases(former)
    return sorted({word for phrase in new for word in _terms().findall(phrase)})


def _phrases(answers: Iterable[Answer]) -> set[str]:
    texts = set[str]()
    for answer in answers:
        text = _ESCAPED_TAG.sub("<", answer.body.decode(errors="replace"))
        texts.update(match[0] for match in _PHRASE.finditer(text) if len(match[0]) <= MAX_PHRASE_CHARACTERS)
    return {_normalized(text) for text in texts}


def _normalized(phrase: str) -> str:
    words = _CAMEL.sub(" ", _FIGURE.sub("#", phrase))
    return _SPACE.sub(" ", words).strip().casefold()
