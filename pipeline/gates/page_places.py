"""Where a page shows a price: a change is the source's own if the new figure stands where the former one did.

A reader that was right yesterday is right today if the page is laid out as it was. So when a price has moved,
the page of its last accepted reading is compared with the new one: the former figure has to be gone, and the
new one has to stand between the same tags, words and field names. A struck-through price, a promotion, a new
column or the price of another machine fails this test, however small the move.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import islice

from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer
from pipeline.gates.page_terms import new_terms
from pipeline.gates.price_moves import EarlierPrices
from pipeline.gates.prices import is_same_figure
from pipeline.gates.thresholds import THRESHOLDS

Surroundings = tuple[str, ...]
"""The tokens before and after a figure, without other figures."""

_TOKEN = re.compile(
    r"[^\W\d]\w*"  # a word, such as H100
    r"|\d{1,9}(?:[.,]\d{3}(?!\d)){0,2}(?:[.,]\d{1,12})?"  # a figure, such as 1,234.50
    r"|[^\s\"'\\]"
)

_CHANGING = frozenset({"true", "false", "null"})
"""Values, such as that of a machine's availability, that change as figures do."""

MAX_CHARACTERS = 20

PRICE_DECIMALS = 8
"""Prices in the record have at most this many decimals."""

MAX_TERMS = 5
"""At most this many terms are quoted in a detail."""

SCALES = (Decimal(1), Decimal(100))
"""A page may state cents where the reader states dollars."""

Move = tuple[Decimal, Decimal]
"""A former price and a new one."""

FormerAnswers = Callable[[str, date], Sequence[Answer]]
"""Maps the hash of an answer and its day to all answers of the capture that contains it, if it is kept."""


def why_not_shown(
    offers: Sequence[Offer], earlier: EarlierPrices, answers: Sequence[Answer], former: FormerAnswers
) -> dict[int, str | None]:
    """Return for each offer whose price has moved why the page does not show the move, or None if it does, by
    index in ``offers``. Offers of which the pages say nothing are absent; so are asks on marketplaces, unless
    the page has new terms: they come and go, and each host sets its own price."""
    found: dict[int, str | None] = {}
    for (sha256, day), (moves, unmoved) in _by_capture(offers, earlier).items():
        last = former(sha256, day) if moves else ()
        if not last or {answer.sha256 for answer in last} == {answer.sha256 for answer in answers}:
            continue
        if terms := new_terms(last, answers):
            said = ", ".join(map(repr, terms[:MAX_TERMS]))
            found.update(dict.fromkeys(moves, f"the page has new texts with {said}"))
            continue
        listed = {index: move for index, move in moves.items() if not offers[index].is_marketplace}
        shown = moved_in_place(set(listed.values()), unmoved, last, answers)
        for index, move in listed.items():
            if move in shown:
                found[index] = None if shown[move] else "the page shows no such change in the same place"
    return found


def _by_capture(
    offers: Iterable[Offer], earlier: EarlierPrices
) -> dict[tuple[str, date], tuple[dict[int, Move], set[Decimal]]]:
    """Return the moved prices by index, and the unmoved ones, by the answer and the day of the earlier
    prices."""
    found: dict[tuple[str, date], tuple[dict[int, Move], set[Decimal]]] = defaultdict(lambda: ({}, set()))
    for index, offer in enumerate(offers):
        before = earlier.price(offer)
        if before and before.native_currency == offer.native_currency:
            moves, unmoved = found[before.capture_sha256, before.day]
            if is_same_figure(before.native_price, offer.native_price):
                unmoved.add(offer.native_price)
            else:
                moves[index] = before.native_price, offer.native_price
    return found


@dataclass(frozen=True)
class _Page:
    """The figures of some answers: in their order, by their surroundings; and how often each stands where."""

    figures: Mapping[Surroundings, Sequence[frozenset[Decimal]]]
    counts: Mapping[Decimal, Counter[Surroundings]]

    def places(self, figure: Decimal) -> Collection[Surroundings]:
        return self.counts.get(figure, {}).keys()

    def count(self, figure: Decimal, place: Surroundings) -> int:
        return self.counts[figure][place] if figure in self.counts else 0

    def total(self, figure: Decimal) -> int:
        return self.counts[figure].total() if figure in self.counts else 0


def moved_in_place(
    moves: Collection[Move], unmoved: Collection[Decimal], former: Sequence[Answer], now: Sequence[Answer]
) -> dict[Move, bool]:
    """Return for each move whether the page shows it, given the answers of the former and the new price.

    ``unmoved`` are the prices that were read from both: a place like theirs is known to be right. A move is
    absent if the former price was not stated literally, or if there are max_page_tokens or more.
    """
    before, after = _read(former), _read(now)
    if before is None or after is None:
        return {}
    found = {}
    for scale in SCALES:
        known = {place for price in unmoved for place in after.places(_rounded(price * scale))}
        for move in moves:
            old, new = (_rounded(price * scale) for price in move)
            if move not in found and before.total(old):
                found[move] = _is_in_place(old, new, before, after, known)
    return found


def _is_in_place(
    old: Decimal, new: Decimal, before: _Page, after: _Page, known: Collection[Surroundings]
) -> bool:
    """True if the new figure stands where the old one did: at the same position among the figures with the
    same surroundings, or instead of an old one, or in a place like those of unmoved prices."""
    is_gone = after.total(old) < before.total(old)
    for place in after.places(new):
        earlier, later = before.figures.get(place, ()), after.figures[place]
        pairs = zip(earlier, later, strict=True) if len(earlier) == len(later) else ()
        if any(old in one and new in other for one, other in pairs):
            return True
        has_come = after.count(new, place) > before.count(new, place)
        has_left = after.count(old, place) < before.count(old, place)
        if has_come and (has_left or (is_gone and place in known)):
            return True
    return False


def _read(answers: Iterable[Answer]) -> _Page | None:
    """Return the figures of some answers; None if there are max_page_tokens or more."""
    figures: dict[Surroundings, list[frozenset[Decimal]]] = defaultdict(list)
    counts: dict[Decimal, Counter[Surroundings]] = defaultdict(Counter)
    left = THRESHOLDS.max_page_tokens
    for answer in answers:
        tokens = [match[0] for match in islice(_TOKEN.finditer(answer.body.decode(errors="replace")), left)]
        left -= len(tokens)
        if not left:
            return None
        for at, token in enumerate(tokens):
            if token[0].isdecimal():
                place, values = _surroundings(tokens, at), _values(token)
                figures[place].append(values)
                for value in values:
                    counts[value][place] += 1
    return _Page(figures, counts)


@lru_cache(maxsize=100_000)
def _values(figure: str) -> frozenset[Decimal]:
    """Return the amounts that a figure can mean: a comma separates thousands or decimals. No price has more
    than MAX_CHARACTERS."""
    if len(figure) > MAX_CHARACTERS:
        return frozenset()
    texts = {figure.replace(",", ""), figure.replace(".", "").replace(",", ".")}
    return frozenset(_rounded(Decimal(text)) for text in texts if text.count(".") <= 1)


def _rounded(price: Decimal) -> Decimal:
    """Return a price as the record keeps it."""
    return round(price, PRICE_DECIMALS)


def _surroundings(tokens: Sequence[str], at: int) -> Surroundings:
    start, end = max(at - THRESHOLDS.tokens_before, 0), at + 1 + THRESHOLDS.tokens_after
    return (*map(_masked, tokens[start:at]), "", *map(_masked, tokens[at + 1 : end]))


def _masked(token: str) -> str:
    return "#" if token in _CHANGING or token[0].isdecimal() else token
