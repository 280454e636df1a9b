"""All gates for a reading, in order; the reading is refused as a whole, or accepted, with the last believed
price in place of each price that is held.

Contradictions within a reading were flagged earlier, when its offers were built (``contradictions``).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Built, Offer, RejectedRow
from pipeline.contracts.reject_reasons import Evidence, FlagReason, RejectReason
from pipeline.gates.held import Doubt, Moves, evidence_for, held_reject, reject_of
from pipeline.gates.history import (
    History,
    accepted_counts,
    dated_price,
    moves_at_other_sources,
    read_history,
    refused_counts,
)
from pipeline.gates.losses import losses, read_usual
from pipeline.gates.page_dates import page_days, stated_days, why_out_of_date
from pipeline.gates.page_places import FormerAnswers, OnPage, moves_on_page
from pipeline.gates.price_bounds import OtherPrices, doubt_first_price
from pipeline.gates.price_moves import (
    EarlierPrices,
    Move,
    NowPrices,
    doubt_move,
    doubt_new_offer,
    from_to,
    moves_of,
)
from pipeline.gates.prices import (
    PriceKey,
    in_unexpected_currency,
    is_same_price,
    price_key,
    relative_change,
)
from pipeline.gates.reading import (
    Acceptance,
    check_reading,
    missing_cards,
    why_contradictory,
    why_grown,
    why_in_another_currency,
)
from pipeline.gates.reviews import NO_REVIEWS, Reviews, Verdict
from pipeline.gates.shapes import doubt_lists
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.records import Records


@dataclass(frozen=True)
class Screened:
    """A reading's believed offers; for each held price, a reject and, if there is one, the last believed
    offer, which ``stays``; ``failure`` is set if too many prices are held."""

    believed: list[Offer]
    stays: list[Offer]
    rejects: list[RejectedRow]
    failure: str | None = None

    @property
    def offers(self) -> list[Offer]:
        """The offers to publish."""
        return self.believed + self.stays


def judge(
    built: Built,
    answers: Sequence[Answer],
    config: SourceConfig,
    day: date,
    records: Records,
    *,
    reviews: Reviews = NO_REVIEWS,
    sha256: str | None = None,
    lacks_answers: bool = False,
    former: FormerAnswers = lambda *_: (),
) -> tuple[Built, Acceptance]:
    """Return the reading with its held prices moved to the rejects, and whether it is accepted.

    With ``lacks_answers``, a reading that has lost offers is refused only for unanswered_days: the missing
    answers may never come back. A person's word in ``reviews`` outweighs every gate; ``sha256`` is the hash
    of the answers, and ``former`` finds earlier ones. Imported prices, which are never ranked, are neither
    held nor compared with earlier prices. Raises RecordError and CatalogError.
    """
    acceptance = check_reading(built.offers, config, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if config.kind == "imported":
        return _flagged_as_imported(built), replace(acceptance, warnings=warnings)
    history = read_history(records, config.name, day)
    lost = losses(built.offers, built.rejects, read_usual(records, config.name, day, reviews.usual_since))
    is_lasting = lacks_answers and (day - (history.last_day or day)).days >= THRESHOLDS.unanswered_days
    believed, foreign = _split_by_currency(built.offers, config, history)
    stated = stated_days(answers)
    reason = (
        (None if is_lasting else lost.refusal)
        or why_in_another_currency(answers, config, {offer.native_currency for offer in believed})
        or why_out_of_date(answers, stated, config, day)
        or why_grown(
            len(built.offers),
            accepted_counts(records, config.name, day, reviews.usual_since),
            refused_counts(records, config.name, day),
        )
        or (None if history.last_day else why_contradictory(built.offers))
    )
    verdict = reviews.of_reading(sha256)
    if verdict == "refused":
        reason = "a person refused this reading"
    reason = acceptance.reason or (None if verdict == "believed" else reason)
    if reason:
        return built, Acceptance(False, reason, warnings, lost.texts)
    moves_elsewhere = moves_at_other_sources(records, config.name, day)
    screened = screen(
        believed,
        history,
        config,
        day,
        reviews,
        moves_elsewhere,
        page_days(answers, stated),
        lambda moves: moves_on_page(moves, answers, former),
    )
    if missing := missing_cards(screened.believed, config):
        # These cards were read, so the page is as usual and its other prices are not in doubt.
        warnings += (f"held, though this source always has it: {', '.join(missing)}",)
    built = replace(built, offers=screened.offers, rejects=built.rejects + foreign + screened.rejects)
    return built, Acceptance(screened.failure is None, screened.failure, warnings, lost.texts)


def _flagged_as_imported(built: Built) -> Built:
    """Return the reading with a flag on every offer: the flag of a contradiction, or else ``imported``."""
    offers = [
        offer if offer.flag_reason else offer.model_copy(update={"flag_reason": FlagReason.IMPORTED})
        for offer in built.offers
    ]
    return replace(built, offers=offers)


def _split_by_currency(
    offers: Sequence[Offer], config: SourceConfig, history: History
) -> tuple[list[Offer], list[RejectedRow]]:
    """Return the offers in a currency that the source is known to ask, and rejects for the others. An offer
    that had a price in another currency before is left to ``screen``, which compares the amounts."""
    foreign = [each for each in offers if each.native_currency not in config.currencies_of(each.source_url)]
    if not foreign:
        return list(offers), []
    earlier = EarlierPrices(history)
    new = {id(offer): offer for offer in foreign if earlier.price(offer) is None}
    return [offer for offer in offers if id(offer) not in new], [
        _foreign(each, config) for each in new.values()
    ]


def _foreign(offer: Offer, config: SourceConfig) -> RejectedRow:
    expected = config.currencies_of(offer.source_url)
    detail = in_unexpected_currency(offer.raw_label, offer.native_currency, offer.source, expected)
    return reject_of(offer, RejectReason.UNEXPECTED_CURRENCY, detail, raw_label=offer.raw_label)


def screen(
    offers: Sequence[Offer],
    history: History,
    config: SourceConfig,
    day: date,
    reviews: Reviews = NO_REVIEWS,
    moves_elsewhere: Moves = lambda *_: (),
    page_days: Mapping[str, date] | None = None,
    on_page: Callable[[Sequence[Move]], Mapping[int, OnPage]] = lambda _: {},
) -> Screened:
    """Split a day's offers into offers whose prices are believed, and rejects that hold the other prices.

    ``moves_elsewhere`` gives the changes in a card's price at other sources since a given day, and
    ``page_days`` the day that an answer states of itself, by its hash. ``on_page`` tells what the pages
    say of the moves from earlier prices: see ``moves_on_page``.
    """
    earlier, beside = EarlierPrices(history), OtherPrices(offers)
    now = _now_prices(offers)
    moves = {move.index: move for move in moves_of(offers, earlier)}
    of_lists = doubt_lists(moves.values(), history, page_days or {})
    of_pages = {
        index: _since_held(of_page, earlier.still_held(offers[index]))
        for index, of_page in on_page([*moves.values()]).items()
    }

    def evidence_of(offer: Offer, doubt: Doubt, verdict: Verdict | None, index: int) -> Evidence | None:
        if verdict == "believed":
            return Evidence.PERSON
        if index not in of_lists and _had_before(offer, doubt, history):
            return Evidence.HISTORY
        held_before, last_day = history.held.get(price_key(offer)), history.last_day or day
        is_shown = index in of_pages and of_pages[index].shows_move
        return evidence_for(offer, doubt, held_before, day, last_day, moves_elsewhere, is_shown)

    believed, held, compared = list[Offer](), list[tuple[Offer, Doubt]](), 0
    for index, offer in enumerate(offers):
        is_compared, of_price = _judge_price(offer, earlier, beside, now, config, day)
        compared += is_compared
        doubt = _lasting(of_lists.get(index) or of_price, offer, earlier)
        if index in of_pages:
            doubt = _with_its_page(doubt, moves[index], of_pages[index], history)
        verdict = reviews.of_price(offer)
        if verdict == "refused":
            held.append((offer, _refused_by_a_person(offer)))
        elif doubt is None:
            believed.append(offer)
        elif evidence := evidence_of(offer, doubt, verdict, index):
            believed.append(offer.model_copy(update={"believed_because": evidence.value}))
        else:
            held.append((offer, doubt))
    failure = _why_too_many([doubt.reason for _, doubt in held], compared)
    rejects = [held_reject(offer, doubt) for offer, doubt in held]
    return Screened(believed, list(_staying(believed, held, history)), rejects, failure)


def _now_prices(offers: Iterable[Offer]) -> NowPrices:
    prices: dict[PriceKey, list[Decimal]] = defaultdict(list)
    for offer in offers:
        if offer.usd_per_gpu_hour is not None:
            prices[price_key(offer)].append(offer.usd_per_gpu_hour)
    return prices


def _lasting(doubt: Doubt | None, offer: Offer, earlier: EarlierPrices) -> Doubt | None:
    """Return the doubt, or an earlier one about the same price that had the shape of a misread: what showed
    that may be gone by now."""
    still = earlier.still_held(offer) if doubt else None
    return still if still and not still.reason.by_time else doubt


def _with_its_page(doubt: Doubt | None, move: Move, of_page: OnPage, history: History) -> Doubt | None:
    """Return the doubt, or another one if the price moved together with its page. A small move and a price
    that the offer had before raise none, and a shape of a misread says more."""
    is_shape = doubt and not doubt.reason.by_time and doubt.reason != RejectReason.PAGE_CHANGED
    is_small = is_same_price(move.before.native_price, move.offer.native_price)
    if of_page.change is None or is_shape or is_small or dated_price(move.offer) in history.earlier():
        return doubt
    detail = f"{from_to(move.offer, move.before)}, and {of_page.change}"
    return Doubt(RejectReason.PAGE_CHANGED, detail, move.before)


def _since_held(of_page: OnPage, still: Doubt | None) -> OnPage:
    """Return what the pages say without the terms that came after a price was first held: they are not about
    it."""
    return replace(of_page, terms="") if still and still.reason.by_time else of_page


def _refused_by_a_person(offer: Offer) -> Doubt:
    detail = f"{offer.raw_label!r} at {offer.native_price} {offer.native_currency} was refused"
    return Doubt(RejectReason.REFUSED_BY_A_PERSON, detail)


_OF_ONE_PRICE = (
    RejectReason.PRICE_JUMP,
    RejectReason.PRICE_TOO_FAR,
    RejectReason.MOVED_BY_A_UNIT,
    RejectReason.PRICE_OF_ANOTHER_OFFER,
    RejectReason.PRICES_EXCHANGED,
    RejectReason.COLUMN_OF_ANOTHER_KIND,
)


def _had_before(offer: Offer, doubt: Doubt, history: History) -> bool:
    """True if an offer had its price on an earlier accepted day, and not the whole page is in doubt: an old
    page has old prices."""
    is_of_one_price = doubt.before is not None and doubt.reason in _OF_ONE_PRICE
    return is_of_one_price and dated_price(offer) in history.earlier()


def _staying(
    believed: Iterable[Offer], held: Sequence[tuple[Offer, Doubt]], history: History
) -> Iterable[Offer]:
    """Yield the last believed offer in place of each held one, marked with the doubt about the newer price
    and with the day on which its own price was last read and believed."""
    left: dict[PriceKey, list[Offer]] = defaultdict(list)
    for earlier in history.last:
        left[price_key(earlier)].append(earlier)
    for offer in believed:
        _take_nearest(left, offer)
    for offer, doubt in held:
        if (stays := _take_nearest(left, offer)) is not None:
            marks = {"doubt": doubt.reason.value, "believed_on": stays.believed_on or history.last_day}
            yield stays.model_copy(update=marks | {"believed_because": None, "available": offer.available})


def _take_nearest(left: Mapping[PriceKey, list[Offer]], offer: Offer) -> Offer | None:
    """Remove and return the last offer with the same key whose currency and price are nearest."""
    same = left.get(price_key(offer))
    if not same:
        return None
    nearest = min(
        same,
        key=lambda last: (
            last.native_currency != offer.native_currency,
            relative_change(last.native_price, offer.native_price),
        ),
    )
    same.remove(nearest)
    return nearest


def _judge_price(
    offer: Offer,
    earlier: EarlierPrices,
    beside: OtherPrices,
    now: NowPrices,
    config: SourceConfig,
    day: date,
) -> tuple[bool, Doubt | None]:
    """Return whether the price could be compared with anything, and the doubt about it, if any.

    A price is compared with the same offer's last accepted price; failing that, with the source's other
    prices for the card; and failing those, with every price ever seen for the card.
    """
    before = earlier.price(offer)
    if before is not None:
        return True, doubt_move(offer, before, earlier, now, config)
    if offer.is_marketplace:
        return False, None
    if doubt := earlier.still_held(offer):
        return True, doubt
    if offer.gpu_id is None:
        return False, None
    if doubt := earlier.taken_from_a_missing_one(offer, beside.keys):
        return True, doubt
    if offer.usd_per_gpu_hour is None or offer.flag_reason:
        return False, None
    if near := earlier.range_of_machine(offer, beside.keys) or earlier.range_of_card(offer):
        return True, doubt_new_offer(offer, near, config)
    return doubt_first_price(offer, beside, day)


def _why_too_many(held: Sequence[RejectReason], compared: int) -> str | None:
    held = [reason for reason in held if reason != RejectReason.REFUSED_BY_A_PERSON]
    most = THRESHOLDS.max_held_share * compared
    if compared < THRESHOLDS.min_compared_prices or len(held) <= most:
        return None
    ((reason, _),) = Counter(held).most_common(1)
    return f"{len(held)} of {compared} compared prices are not believed ({reason}): {reason.sentence}"
