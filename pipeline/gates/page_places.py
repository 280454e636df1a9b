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
from pipeline.contracts.offer import Offer
from pipeline.gates.page_terms import new_terms, phrases
from pipeline.gates.price_moves import EarlierPrices
from pipeline.gates.prices import is_same_figure, is_same_price
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

PRICE_DECIMALS = 8
"""Prices in the record have at most this many decimals."""

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


@dataclass(frozen=True, slots=True)
class _Move:
    """A price that could be compared: its index in the reading, the earlier price, and the new one."""

    index: int
    offer: Offer
    earlier: Decimal
    now: Decimal

    @property
    def has_moved(self) -> bool:
        return not is_same_figure(self.earlier, self.now)

    @property
    def is_volatile(self) -> bool:
        return self.offer.price_kind == "spot" or self.offer.is_marketplace


def moves_on_page(
    offers: Sequence[Offer], earlier: EarlierPrices, answers: Sequence[Answer], former: FormerAnswers
) -> dict[int, OnPage]:
    """Return what the pages say of each offer whose price has moved, by index in ``offers``.

    Absent are offers whose former page is not kept, or is the same, and all offers if a capture is larger
    than max_compared_mib. Asks on marketplaces come and go, so their places are not compared. New terms count
    for asks and spot prices only if most prices of the kind have moved: ordinarily some move by themselves.
    """
    captures = _Captures(former)
    moves: dict[int, list[_Move]] = defaultdict(list)
    unmoved, compared, far = set[Decimal](), Counter[str](), Counter[str]()
    for index, offer in enumerate(offers):
        before = earlier.price(offer)
        if before and before.native_currency == offer.native_currency:
            move = _Move(index, offer, before.native_price, offer.native_price)
            compared[offer.price_kind] += 1
            far[offer.price_kind] += not is_same_price(move.earlier, move.now)
            if not move.has_moved:
                unmoved.add(move.now)
            elif (capture := captures.find(before.capture_sha256, before.day)) is not None:
                moves[capture].append(move)
    if not moves or not _is_comparable(answers):
        return {}
    now, said = _read(answers), phrases(answers)
    in_motion = {kind for kind in far if far[kind] >= THRESHOLDS.min_moved_share * compared[kind]}
    found = {}
    for capture, members in moves.items():
        last = captures.answers[capture]
        if not _is_comparable(last) or _hashes(last) == _hashes(answers):
            continue
        terms = new_terms(phrases(last), said)
        page = _read(last) if any(not move.offer.is_marketplace for move in members) else None
        for move in members:
            in_place = (
                None if page is None or move.offer.is_marketplace else _in_place(move, unmoved, page, now)
            )
            is_usual = move.is_volatile and move.offer.price_kind not in in_motion
            found[move.index] = OnPage(in_place, "" if is_usual else terms)
    return found


class _Captures:
    """The former captures, each found once."""

    def __init__(self, former: FormerAnswers) -> None:
        self._former = former
        self._places: dict[tuple[str, date], int | None] = {}
        self.answers: list[Sequence[Answer]] = []

    def find(self, sha256: str, day: date) -> int | None:
        """Return the index of the capture with an answer of a day; None if it is not kept."""
        if (sha256, day) not in self._places:
            answers = self._former(sha256, day)
            self.answers.append(answers)
            for each in {sha256, *_hashes(answers)}:
                self._places.setdefault((each, day), len(self.answers) - 1 if answers else None)
        return self._places[sha256, day]


def _hashes(answers: Iterable[Answer]) -> set[str]:
    return {answer.sha256 for answer in answers}


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


def _in_place(move: _Move, unmoved: Collection[Decimal], before: _Page, after: _Page) -> bool | None:
    """Return whether a page shows a move; None if the former price was not stated literally. ``unmoved`` are
    the prices that have not moved: a place like theirs is known to be right."""
    is_literal = False
    for scale in SCALES:
        old, new = (_rounded(price * scale) for price in (move.earlier, move.now))
        known = {place for price in unmoved for place in after.places(_rounded(price * scale))}
        if before.places(old) and _stands_in_place(old, new, before, after, known):
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
    return round(price, PRICE_DECIMALS)


def _surroundings(tokens: Sequence[str], at: int) -> Surroundings:
    start, end = max(at - THRESHOLDS.tokens_before, 0), at + 1 + THRESHOLDS.tokens_after
    return (*map(_masked, tokens[start:at]), "", *map(_masked, tokens[at + 1 : end]))


def _masked(token: str) -> str:
    return "#" if token in _CHANGING or token[0].isdecimal() else token
