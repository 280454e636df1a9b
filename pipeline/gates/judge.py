"""All gates of a reading in their order: it is refused as a whole, or accepted without the held prices.

Contradictions within the reading were flagged before, when its offers were built (``contradictions``).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Built, Offer, RejectedRow
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates import thresholds
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
)
from pipeline.gates.release import Doubt, Moves, held_reject, is_released
from pipeline.record.records import Records


@dataclass(frozen=True)
class Screened:
    """A reading's believed offers, and its held prices as rejects; ``failure`` if these are too many."""

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

    With ``lacks_answers``, the reading's size is compared with the last one's for HELD_DAYS only: the missing
    answers may never come again. Raises RecordError and CatalogError.
    """
    history = read_history(records, config.name, day)
    if config.kind == "imported":
        return _judge_by_provider(built, history, config, day, records)
    last_day = history.last_day or day
    last_rows = len(history.last) if history.last_day else None
    is_lasting = lacks_answers and (day - last_day).days >= thresholds.HELD_DAYS.value
    acceptance = check_reading(built.offers, config, None if is_lasting else last_rows, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if is_lasting and last_rows and len(built.offers) < thresholds.MIN_SHARE_OF_LAST_ROWS.value * last_rows:
        warnings += (
            f"{len(built.offers)} offers where the reading of {last_day} had {last_rows}: "
            "not all requests are answered",
        )
    reason = (
        acceptance.reason
        or why_in_another_currency(answers, config)
        or why_grown(len(built.offers), accepted_counts(records, config.name, day), history.last_day, day)
    )
    if reason:
        return built, Acceptance(False, reason, warnings)
    screened = screen(
        built.offers, history, config, day, partial(moves_at_other_sources, records, config.name, day)
    )
    built = replace(built, offers=screened.offers, rejects=built.rejects + screened.rejects)
    if missing := missing_cards(built.offers, config):
        # They were read, so the page is the usual one and its other prices are not in doubt.
        warnings += (f"held, though this source always has it: {', '.join(missing)}",)
    return built, Acceptance(screened.failure is None, screened.failure, warnings)


def _judge_by_provider(
    built: Built, history: History, config: SourceConfig, day: date, records: Records
) -> tuple[Built, Acceptance]:
    """Judge an imported day: its rows are those that somebody chose, so their number says nothing, and a
    doubt about one provider's prices is none about another's.

    A price is compared with the same provider's earlier one where that is at most ``stale_after_days`` old.
    Every offer that is not in doubt is flagged as imported.
    """
    acceptance = check_reading(built.offers, config, None, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if not acceptance.accepted:
        return built, Acceptance(False, acceptance.reason, warnings)
    if history.last_day and (day - history.last_day).days > config.stale_after_days:
        history = replace(history, last=())
    elsewhere = partial(moves_at_other_sources, records, config.name, day)
    before = _by_provider(history.last)
    offers, rejects = list[Offer](), list(built.rejects)
    for provider, now in _by_provider(built.offers).items():
        own = replace(history, last=before.get(provider, ()))
        screened = screen(now, own, config, day, elsewhere)
        offers += screened.offers
        rejects += screened.rejects
        warnings += (f"{provider}: {screened.failure}",) if screened.failure else ()
    flagged = [
        offer if offer.flag_reason else offer.model_copy(update={"flag_reason": FlagReason.IMPORTED})
        for offer in offers
    ]
    reason = None if flagged else "none of its prices is believed at once"
    return replace(built, offers=flagged, rejects=rejects), Acceptance(reason is None, reason, warnings)


def _by_provider(offers: Sequence[Offer]) -> dict[str, list[Offer]]:
    found: dict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        found[offer.provider].append(offer)
    return found


def screen(
    offers: Sequence[Offer],
    history: History,
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves = lambda *_: (),
) -> Screened:
    """Split a day's offers into those whose prices are believed, and the rejects of held ones.

    ``moves_elsewhere`` gives the changes of a card's price at other sources since a day.
    """
    earlier = EarlierPrices(history)
    beside = OtherPrices(offers)
    judged = [_judge_price(offer, earlier, beside, config) for offer in offers]
    doubts = doubt_most_moved(offers, earlier)
    doubts |= {place: doubt for place, (_, doubt) in enumerate(judged) if doubt}
    held = {
        place: doubt
        for place, doubt in doubts.items()
        if not is_released(
            offers[place], doubt, history.held.get(price_key(offers[place])), config, day, moves_elsewhere
        )
    }
    return Screened(
        [offer for place, offer in enumerate(offers) if place not in held],
        [held_reject(offers[place], doubt) for place, doubt in held.items()],
        _why_too_many(held, sum(is_compared for is_compared, _ in judged)),
    )


def _judge_price(
    offer: Offer, earlier: EarlierPrices, beside: OtherPrices, config: SourceConfig
) -> tuple[bool, Doubt | None]:
    """Return whether there is anything to compare a price with, and why it is in doubt.

    A price is compared with the same offer's last accepted price; without one, with the source's other prices
    of the card, and without these, with what was ever seen of the card.
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


def _why_too_many(held: Mapping[int, Doubt], compared: int) -> str | None:
    if (
        compared < thresholds.MIN_COMPARED_PRICES.value
        or len(held) <= thresholds.MAX_HELD_SHARE.value * compared
    ):
        return None
    ((reason, _),) = Counter(doubt.reason for doubt in held.values()).most_common(1)
    return f"{len(held)} of {compared} compared prices are not believed ({reason}): {reason.sentence}"
