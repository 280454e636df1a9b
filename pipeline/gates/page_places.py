"""Where a page shows a price: a change is the source's own if the new figure stands where the former one did.

A reader that was right yesterday is right today if the page is laid out as it was. So when a price has moved,
the page of its last believed price is compared with the new one. The new figure has to stand between the same
tags, words and field names as the former one, or as a price that has not moved. A struck-through price beside
it, a promotion in its cell or a new column fails this test; another price in the same cell passes it, unless
the page has new terms (``page_terms``).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache

from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import MIN_PRICE
from pipeline.gates.page_terms import new_terms, phrases
from pipeline.gates.price_moves import Move
from pipeline.gates.prices import is_same_price
from pipeline.gates.thresholds import THRESHOLDS

Surroundings = tuple[str, ...]
"""The tokens before and after a figure, without other figures."""

_TOKEN = re.compile(
    r"[^\W\d]\w*"  # a word, such as H100
    r"|\d+(?:[.,]\d{3}(?!\d))*(?:[.,]\d+)?"  # a figure, such as 1,234.50
    r"|[^\s\"'\\]"
)
_POINT_BEFORE_DECIMALS = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_COMMA_BEFORE_DECIMALS = re.compile(r"\d+,\d+|\d{1,3}(?:\.\d{3})+(?:,\d+)?")

_CHANGING = frozenset({"true", "false", "null"})
"""Values, such as that of a machine's availability, that change as figures do."""

_CURRENCY_SIGNS = frozenset("$€£₹¥")

MAX_CHARACTERS = 20
"""Longer figures are cut."""

SCALES = (Decimal(1), Decimal(100))
"""A page may state cents where the reader states dollars."""

FormerAnswers = Callable[[str, date], Sequence[Answer]]
"""Maps the hash of an answer and its day to all answers of the capture that contains it, if it is kept."""


@dataclass(frozen=True, slots=True)
class OnPage:
    """What the pages say of a price's move: whether the new figure stands where the former one did, which is
    None if the former price was not stated literally; and the new terms, with what they concern."""

    in_place: bool | None
    terms: str

    @property
    def shows_move(self) -> bool:
        """True if the page shows the move and says nothing new of its prices."""
        return bool(self.in_place) and not self.terms

    @property
    def change(self) -> str | None:
        """Return what changed on the page besides the price; None if nothing did."""
        if self.terms:
            return f"the page has new texts with {self.terms}"
        return "the page shows no such change in the same place" if self.in_place is False else None


def moves_on_page(
    moves: Sequence[Move], answers: Sequence[Answer], former: FormerAnswers
) -> dict[int, OnPage]:
    """Return what the pages say of each price that has moved, by its index in the reading.

    Absent are prices whose former page is not kept, or is the same, and all prices if a capture is larger
    than max_compared_mib. Asks on marketplaces come and go, so their places are not compared. New terms count
    for asks and spot prices only if most prices of the kind have moved: ordinarily some move by themselves.
    """
    captures = list(_by_capture((move for move in moves if move.has_moved), answers, former))
    if not captures or not _is_comparable(answers):
        return {}
    now, said, in_motion = _read(answers), phrases(answers), _kinds_in_motion(moves)
    unmoved = {move.offer.native_price for move in moves if not move.has_moved}
    known = [
        {place for price in unmoved for place in now.places(_rounded(price * scale))} for scale in SCALES
    ]
    found = {}
    for last, members in captures:
        terms = new_terms(phrases(last), said)
        page = _read(last) if any(not move.offer.is_marketplace for move in members) else None
        for move in members:
            in_place = (
                None if page is None or move.offer.is_marketplace else _in_place(move, page, now, known)
            )
            is_volatile = move.offer.price_kind == "spot" or move.offer.is_marketplace
            is_usual = is_volatile and move.offer.price_kind not in in_motion
            found[move.index] = OnPage(in_place, "" if is_usual else terms)
    return found


def _by_capture(
    moves: Iterable[Move], answers: Sequence[Answer], former: FormerAnswers
) -> Iterator[tuple[Sequence[Answer], list[Move]]]:
    """Yield the former captures that can be compared with the answers, each with the moves from its own
    prices."""
    captures: dict[tuple[str, date], Sequence[Answer]] = {}
    members: dict[frozenset[str], list[Move]] = defaultdict(list)
    kept: dict[frozenset[str], Sequence[Answer]] = {}
    for move in moves:
        key = move.before.capture_sha256, move.before.day
        if key not in captures:
            last = former(*key)
            captures |= {(sha256, key[1]): last for sha256 in {key[0], *_hashes(last)}}
        hashes = _hashes(captures[key])
        kept[hashes] = captures[key]
        members[hashes].append(move)
    for hashes, last in kept.items():
        if last and hashes != _hashes(answers) and _is_comparable(last):
            yield last, members[hashes]


def _kinds_in_motion(moves: Sequence[Move]) -> set[str]:
    """Return the price kinds of which most prices are others than before."""
    compared = Counter(move.offer.price_kind for move in moves)
    moved = Counter(
        move.offer.price_kind
        for move in moves
        if not is_same_price(move.before.native_price, move.offer.native_price)
    )
    return {kind for kind in moved if moved[kind] >= THRESHOLDS.min_moved_share * compared[kind]}


def _hashes(answers: Iterable[Answer]) -> frozenset[str]:
    return frozenset(answer.sha256 for answer in answers)


def _is_comparable(answers: Iterable[Answer]) -> bool:
    return sum(len(answer.body) for answer in answers) <= THRESHOLDS.max_compared_mib * 2**20


@dataclass(frozen=True)
class _Page:
    """The figures of some answers: in their order, by their surroundings; how often each stands where; and
    those that are written as amounts rather than as small numbers."""

    figures: Mapping[Surroundings, Sequence[frozenset[Decimal]]]
    counts: Mapping[Decimal, Counter[Surroundings]]
    amounts: Collection[Decimal]

    def places(self, figure: Decimal) -> Counter[Surroundings]:
        return self.counts.get(figure, Counter())


def _in_place(
    move: Move, before: _Page, after: _Page, known: Sequence[Collection[Surroundings]]
) -> bool | None:
    """Return whether a page shows a move; None if the former price was not stated literally. ``known`` are
    the places, at each scale, of prices that have not moved: a place like these is known to be right."""
    is_literal = False
    for scale, places in zip(SCALES, known, strict=True):
        old, new = (_rounded(each.native_price * scale) for each in (move.before, move.offer))
        if before.places(old) and _stands_in_place(old, new, before, after, places):
            return True
        is_literal = is_literal or old in before.amounts
    return False if is_literal else None


def _stands_in_place(
    old: Decimal, new: Decimal, before: _Page, after: _Page, known: Collection[Surroundings]
) -> bool:
    """True if the new figure stands where the old one did: at the same position among the figures with the
    same surroundings, or instead of an old one, or, if an old one is gone, in a known place."""
    is_gone = after.places(old).total() < before.places(old).total()
    for place in after.places(new):
        earlier, later = before.figures.get(place, ()), after.figures[place]
        pairs = zip(earlier, later, strict=True) if len(earlier) == len(later) else ()
        if any(old in one and new in other for one, other in pairs):
            return True
        has_come = after.places(new)[place] > before.places(new)[place]
        has_left = after.places(old)[place] < before.places(old)[place]
        if has_come and (has_left or (is_gone and place in known)):
            return True
    return False


def _read(answers: Iterable[Answer]) -> _Page:
    figures: dict[Surroundings, list[frozenset[Decimal]]] = defaultdict(list)
    counts: dict[Decimal, Counter[Surroundings]] = defaultdict(Counter)
    amounts = set[Decimal]()
    for answer in answers:
        tokens = _TOKEN.findall(answer.body.decode(errors="replace"))
        for at, token in enumerate(tokens):
            if token[0].isdecimal():
                place, values = _surroundings(tokens, at), _values(token[:MAX_CHARACTERS])
                figures[place].append(values)
                for value in values:
                    counts[value][place] += 1
                if len(token) > 2 or (at and tokens[at - 1] in _CURRENCY_SIGNS):
                    amounts |= values
    return _Page(figures, counts, amounts)


@lru_cache(maxsize=100_000)
def _values(figure: str) -> frozenset[Decimal]:
    """Return the amounts that a figure can mean: a comma separates thousands or decimals."""
    return frozenset(_rounded(Decimal(text)) for text in _readings(figure))


def _readings(figure: str) -> Iterator[str]:
    if _POINT_BEFORE_DECIMALS.fullmatch(figure):
        yield figure.replace(",", "")
    if _COMMA_BEFORE_DECIMALS.fullmatch(figure):
        yield figure.replace(".", "").replace(",", ".")


def _rounded(price: Decimal) -> Decimal:
    """Return a price as the record keeps it."""
    return price.quantize(MIN_PRICE)


def _surroundings(tokens: Sequence[str], at: int) -> Surroundings:
    start, end = max(at - THRESHOLDS.tokens_before, 0), at + 1 + THRESHOLDS.tokens_after
    return (*map(_masked, tokens[start:at]), "", *map(_masked, tokens[at + 1 : end]))


def _masked(token: str) -> str:
    return "#" if token in _CHANGING or token[0].isdecimal() else token
