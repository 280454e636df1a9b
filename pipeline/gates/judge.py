"""All gates for a reading, in order; the reading is refused as a whole, or accepted without the held prices.

Contradictions within a reading were flagged earlier, when its offers were built (``contradictions``).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Built, Offer, RejectedRow
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.held import Doubt, Moves, held_reject, is_released
from pipeline.gates.history import History, accepted_counts, moves_at_other_sources, read_history
from pipeline.gates.price_bounds import OtherPrices, doubt_first_price
from pipeline.gates.price_moves import EarlierPrices, doubt_most_moved, doubt_move, doubt_new_offer
from pipeline.gates.prices import price_key
from pipeline.gates.reading import (
    Acceptance,
    check_reading,
    missing_cards,
    why_grown,
    why_in_another_currency,
    why_shrunk,
)
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.records import Records


@dataclass(frozen=True)
class Screened:
    """A reading's believed offers, with held prices as rejects; ``failure`` is set if too many are held."""

    offers: list[Offer]
    rejects: list[RejectedRow]
    failure: str | None = None


def judge(
    built: Built,
    answers: Sequence[Answer],
    config: SourceConfig,
    day: date,
    records: Records,
    *,
    lacks_answers: bool = False,
) -> tuple[Built, Acceptance]:
    """Return the reading with its held prices moved to the rejects, and whether it is accepted.

    With ``lacks_answers``, the reading's size is compared with the last reading's size only for held_days:
    the missing answers may never come back. Imported prices, which are never ranked, are neither held nor
    compared with earlier prices. Raises RecordError and CatalogError.
    """
    is_imported = config.kind == "imported"
    history = History() if is_imported else read_history(records, config.name, day)
    last_rows = len(history.last) if history.last_day else None
    is_lasting = lacks_answers and (day - (history.last_day or day)).days >= THRESHOLDS.held_days
    acceptance = check_reading(built.offers, config, None if is_lasting else last_rows, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if is_lasting and (shrunk := why_shrunk(len(built.offers), last_rows)):
        warnings += (f"{shrunk}, on {history.last_day}: not all requests are answered",)
    reason = acceptance.reason
    if is_imported:
        return _flagged_as_imported(built), Acceptance(reason is None, reason, warnings)
    earlier = accepted_counts(records, config.name, day)
    reason = reason or why_in_another_currency(answers, config)
    reason = reason or why_grown(len(built.offers), earlier, history.last_day, day)
    if reason:
        return built, Acceptance(False, reason, warnings)
    moves_elsewhere = partial(moves_at_other_sources, records, config.name, day)
    screened = screen(built.offers, history, config, day, moves_elsewhere)
    built = replace(built, offers=screened.offers, rejects=built.rejects + screened.rejects)
    if missing := missing_cards(built.offers, config):
        # These cards were read, so the page is as usual and its other prices are not in doubt.
        warnings += (f"held, though this source always has it: {', '.join(missing)}",)
    return built, Acceptance(screened.failure is None, screened.failure, warnings)


def _flagged_as_imported(built: Built) -> Built:
    """Return the reading with a flag on every offer: the flag of a contradiction, or else ``imported``."""
    offers = [
        offer if offer.flag_reason else offer.model_copy(update={"flag_reason": FlagReason.IMPORTED})
        for offer in built.offers
    ]
    return replace(built, offers=offers)


def screen(
    offers: Sequence[Offer],
    history: History,
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves = lambda *_: (),
) -> Screened:
    """Split a day's offers into offers whose prices are believed, and rejects that hold the other prices.

    ``moves_elsewhere`` gives the changes in a card's price at other sources since a given day.
    """
    earlier, beside = EarlierPrices(history), OtherPrices(offers)
    most_moved = doubt_most_moved(offers, earlier)
    believed, held, compared = list[Offer](), list[tuple[Offer, Doubt]](), 0
    for place, offer in enumerate(offers):
        is_compared, doubt = _judge_price(offer, earlier, beside, config)
        compared += is_compared
        doubt = doubt or most_moved.get(place)
        before = history.held.get(price_key(offer))
        if doubt is None or is_released(offer, doubt, before, config, day, moves_elsewhere):
            believed.append(offer)
        else:
            held.append((offer, doubt))
    failure = _why_too_many([doubt.reason for _, doubt in held], compared)
    return Screened(believed, [held_reject(offer, doubt) for offer, doubt in held], failure)


def _judge_price(
    offer: Offer, earlier: EarlierPrices, beside: OtherPrices, config: SourceConfig
) -> tuple[bool, Doubt | None]:
    """Return whether the price could be compared with anything, and the doubt about it, if any.

    A price is compared with the same offer's last accepted price; failing that, with the source's other
    prices for the card; and failing those, with every price ever seen for the card.
    """
    before = earlier.price(offer)
    if before is not None:
        return True, doubt_move(offer, before, earlier, config)
    if offer.is_marketplace:
        return False, None
    if doubt := earlier.still_held(offer):
        return True, doubt
    if offer.gpu_id is None:
        return False, None
    if doubt := earlier.mixed_up(offer, now=beside.keys):
        return True, doubt
    if offer.usd_per_gpu_hour is None or offer.flag_reason:
        return False, None
    if near := earlier.range_of_card(offer):
        return True, doubt_new_offer(offer, near, config)
    return doubt_first_price(offer, beside)


def _why_too_many(held: Sequence[RejectReason], compared: int) -> str | None:
    most = THRESHOLDS.max_held_share * compared
    if compared < THRESHOLDS.min_compared_prices or len(held) <= most:
        return None
    ((reason, _),) = Counter(held).most_common(1)
    return f"{len(held)} of {compared} compared prices are not believed ({reason}): {reason.sentence}"
