"""Shapes of a misread that only many prices together show: a list that moved by one factor, and a page of an
earlier day."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from statistics import median
from typing import Any

from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.factors import known_factor
from pipeline.gates.held import Doubt
from pipeline.gates.history import History, dated_price
from pipeline.gates.price_moves import Move
from pipeline.gates.prices import is_product, is_same_price, relative_change
from pipeline.gates.thresholds import THRESHOLDS


def doubt_lists(moves: Iterable[Move], history: History, page_days: Mapping[str, date]) -> dict[int, Doubt]:
    """Return the doubts that many prices together raise, by their indexes in the reading. Asks on
    marketplaces are not compared: each host sets its own price. ``page_days`` gives the day that an answer
    states of itself, by its hash."""
    moves = [move for move in moves if not move.offer.is_marketplace]
    if found := dict(_older_than_the_last(moves, page_days)):
        return found
    for find in (_earlier_page, _one_factor, _digits_lost, _moved_apart):
        if found := dict(find(moves, history)):
            return found
    return {}


_Found = Iterator[tuple[int, Doubt]]


def _older_than_the_last(moves: Sequence[Move], page_days: Mapping[str, date]) -> _Found:
    """Doubt prices that moved although the page says that it is much older than the last accepted reading."""
    for move in moves:
        day = page_days.get(move.offer.capture_sha256)
        if day and move.has_moved and (move.before.day - day).days > THRESHOLDS.max_page_lag_days:
            why = f"the page says that it is of {day}, and the last price was read on {move.before.day}"
            yield move.index, move.doubt(RejectReason.EARLIER_PAGE, why)


def _earlier_page(moves: Sequence[Move], history: History) -> _Found:
    """Doubt all moved prices if nearly all of them are those of one earlier day. A single offer's earlier
    price that returns is no such sign."""
    moved = [move for move in moves if move.has_moved]
    if not _are_most(moved, len(moves)):
        return
    days: Counter[date] = Counter()
    prices = history.earlier()
    for move in moved:
        days.update(prices.get(dated_price(move.offer), ()))
    for day, count in days.most_common(1):
        if count >= THRESHOLDS.nearly_all * len(moved):
            why = f"{count} of {len(moved)} moved prices are those of {day}"
            yield from ((move.index, move.doubt(RejectReason.EARLIER_PAGE, why)) for move in moved)


def _are_most(moved: Sequence[Move], compared: int) -> bool:
    return len(moved) >= max(THRESHOLDS.min_moved_prices, THRESHOLDS.min_moved_share * compared)


def _grouped(moves: Iterable[Move], key: Callable[[Move], Any]) -> dict[Any, list[Move]]:
    groups: dict[Any, list[Move]] = defaultdict(list)
    for move in moves:
        groups[key(move)].append(move)
    return groups


def _one_factor(moves: Sequence[Move], history: History) -> _Found:
    """Doubt prices that moved by one factor: those of the whole list, or else of a kind, tier, region or page
    of which nearly all moved by a factor with the shape of a misread."""
    if factor := _factor(moves, THRESHOLDS.min_moved_share):
        shape = known_factor(factor, moves[0].offer.source, history.rates)
        if shape and _is_usual(shape[0], [move for move in moves if move.has_moved]):
            shape = None
        is_far = relative_change(factor, Decimal(1)) > THRESHOLDS.max_day_change
        reason = RejectReason.PRICE_TOO_FAR if is_far else RejectReason.LIST_MOVED
        yield from _moved_by(factor, *(shape or (reason, "the whole list moved")), moves)
        return
    for part in ("price_kind", "tier", "region", "capture_sha256"):
        for members in _grouped(moves, partial(_part_of, part)).values():
            is_list = _are_of_several_cards(members, moves)
            factor = _factor(members, THRESHOLDS.nearly_all) if is_list else None
            shape = known_factor(factor, members[0].offer.source, history.rates) if factor else None
            if factor and shape and not _is_usual(shape[0], members):
                yield from _moved_by(factor, *shape, members)


def _number_of_cards(moves: Iterable[Move]) -> int:
    return len({move.card for move in moves})


def _are_of_several_cards(members: Iterable[Move], moves: Iterable[Move]) -> bool:
    """True if a part of a list has several cards, or as many as the whole list."""
    return _number_of_cards(members) >= min(THRESHOLDS.min_column_prices, _number_of_cards(moves))


def _part_of(part: str, move: Move) -> Any:
    return getattr(move.offer, part)


def _is_usual(shape: RejectReason, members: Sequence[Move]) -> bool:
    """True if a factor means nothing: spot prices double and halve with demand, and the discount for spot and
    reserved machines changes."""
    kinds = {move.offer.price_kind for move in members}
    if shape == RejectReason.MOVED_BY_A_DISCOUNT:
        return "on_demand" not in kinds
    return shape == RejectReason.MOVED_BY_A_UNIT and kinds == {"spot"}


def _factor(members: Sequence[Move], share: float) -> Decimal | None:
    """Return the factor by which at least ``share`` of the prices moved, if it is large enough; None if
    there is none. The factor of the sums is more exact than that of any price, which may be rounded."""
    least = math.log1p(float(THRESHOLDS.moved_together))
    moved = [move for move in members if abs(move.log) >= least]
    amounts = {move.before.native_price for move in moved}
    is_whole = len(moved) == len(members) and len(amounts) >= THRESHOLDS.min_column_prices
    is_most = len(moved) >= share * len(members) and _number_of_cards(moved) >= THRESHOLDS.min_moved_prices
    if not is_whole and not is_most:
        return None
    usual = Decimal(math.exp(median(move.log for move in moved)))
    alike = [move for move in moved if _is_product(move, usual)]
    if len(alike) < THRESHOLDS.nearly_all * len(moved):
        return None
    return Decimal(
        sum(move.offer.native_price for move in alike) / sum(move.before.native_price for move in alike)
    )


def _is_product(move: Move, factor: Decimal) -> bool:
    return is_product(move.offer.native_price, move.before.native_price, factor, THRESHOLDS.same_factor)


def _moved_by(factor: Decimal, reason: RejectReason, what: str, members: Sequence[Move]) -> _Found:
    moved = [move for move in members if move.has_moved]
    why = f"{len(moved)} of {len(members)} prices moved, by a factor of {factor:.4g} ({what})"
    yield from ((move.index, move.doubt(reason, why)) for move in moved)


def _digits_lost(moves: Sequence[Move], history: History) -> _Found:
    """Doubt prices that are the earlier ones without some digits, if there are several: one price may be cut
    to a round one."""
    found = [
        move
        for move in moves
        if not is_same_price(move.before.native_price, move.offer.native_price)
        and _lacks_digits(move.before.native_price, move.offer.native_price)
    ]
    if len({move.before.native_price for move in found}) >= THRESHOLDS.min_column_prices:
        why = f"{len(found)} prices lack digits that they had"
        yield from ((move.index, move.doubt(RejectReason.DIGITS_LOST, why)) for move in found)


def _lacks_digits(before: Decimal, now: Decimal) -> bool:
    """True if a price is the earlier one without its decimals, or without the zero after the point."""
    old, new = f"{before.normalize():f}", f"{now.normalize():f}"
    return old.startswith(f"{new}.") or (".0" in old and old.replace(".0", ".", 1) == new)


def _moved_apart(moves: Sequence[Move], history: History) -> _Found:
    """Doubt every moved price if most list prices moved far. Spot prices follow demand, so they say nothing
    of the page, but are in doubt with it."""
    listed = [move for move in moves if move.offer.price_kind != "spot"]
    moved = [move for move in listed if abs(move.log) >= math.log1p(float(THRESHOLDS.moved_apart))]
    if _are_most(moved, len(listed)):
        why = f"{len(moved)} of {len(listed)} prices moved far"
        yield from (
            (move.index, move.doubt(RejectReason.MOST_PRICES_MOVED, why)) for move in moves if move.has_moved
        )
