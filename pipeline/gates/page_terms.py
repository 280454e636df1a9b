"""What a page says of its prices beside the figures: a commitment, a reduction, a tax, another region.

A price that moves on the day on which such a term appears is probably another price than before.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

from pipeline.catalog.tables import catalog_table
from pipeline.contracts.listing import Answer

_PHRASE = re.compile(r'[^<>"{}\[\]\n]+')
_ESCAPED_END = re.compile(r"\\u003[ce]|\\[nrt]", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d.,]*")
_SPACE = re.compile(r"(?:[\s_\\-]|&nbsp;)+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

MAX_PHRASE_CHARACTERS = 2_000
"""Longer texts between two tags or quotes are scripts and images."""

MAX_TERMS = 5
"""At most this many terms are quoted."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A row of price_terms.csv: words, in lower case, and what they say of a price."""

    concerns: str
    words: str


@cache
def _terms() -> dict[str, str]:
    return {term.words: term.concerns for term in catalog_table("price_terms.csv", _Term)}


@cache
def _any_term() -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, _terms()))})(?![a-z])")


def new_terms(former: Collection[str], now: Collection[str]) -> str:
    """Return the words from catalog/price_terms.csv in phrases that the former answers lacked, quoted, with
    what they concern; empty if there are none."""
    new = set(now).difference(former)
    words = sorted({word for phrase in new for word in _any_term().findall(phrase)})
    return ", ".join(f"{word!r} ({_terms()[word]})" for word in words[:MAX_TERMS])


def phrases(answers: Iterable[Answer]) -> set[str]:
    """Return the texts between two tags or quotes, and the names of fields, in lower case and with figures
    masked."""
    texts = set[str]()
    for answer in answers:
        text = _ESCAPED_END.sub("<", answer.body.decode(errors="replace"))
        texts.update(match[0] for match in _PHRASE.finditer(text) if len(match[0]) <= MAX_PHRASE_CHARACTERS)
    return {_normalized(text) for text in texts}


def _normalized(phrase: str) -> str:
    words = _CAMEL.sub(" ", _FIGURE.sub("#", phrase))
    return _SPACE.sub(" ", words).strip().casefold()
