"""A day's reading of a source, judged: refused as a whole, or accepted without the prices that are held."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Built, Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates.acceptance import (
    MIN_SHARE_OF_LAST_ROWS,
    Acceptance,
    judge,
    missing_cards,
    why_grown,
    why_in_another_currency,
)
from pipeline.gates.price_history import OtherSources, read_history
from pipeline.gates.price_moves import HELD_DAYS, History, sift
from pipeline.record.records import Records

GROWTH_DAYS = 7
"""Accepted days whose numbers of offers a reading's is compared with."""


def judged(
    built: Built,
    answers: Sequence[Answer],
    config: SourceConfig,
    day: date,
    records: Records,
    *,
    lacks_answers: bool = False,
) -> tuple[Built, Acceptance]:
    """The reading without held prices, which are added to its rejects, and whether it is accepted.

    Where answers are lacking, the reading's size is compared with the last one's for HELD_DAYS only: what the
    other requests give is better than nothing for ever.
    """
    history = read_history(records, config.name, day)
    if config.kind == "imported":
        return _judged_by_provider(built, history, config, day, records)
    last_rows = len(history.last) if history.last_day else None
    lasts = lacks_answers and history.last_day is not None and (day - history.last_day).days >= HELD_DAYS
    acceptance = judge(built.offers, config, None if lasts else last_rows, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if lasts and last_rows and len(built.offers) < MIN_SHARE_OF_LAST_ROWS * last_rows:
        warnings += (
            f"{len(built.offers)} offers where the reading of {history.last_day} had {last_rows}: "
            "not all requests are answered",
        )
    reason = (
        acceptance.reason
        or why_in_another_currency(answers, config)
        or why_grown(len(built.offers), _earlier_counts(config.name, day, records), history.last_day, day)
    )
    if reason:
        return built, Acceptance(False, reason, warnings)
    elsewhere = OtherSources(records, config.name, day)
    sifted = sift(built.offers, history, config, day, elsewhere.moves)
    built = replace(built, offers=sifted.offers, rejects=built.rejects + sifted.rejects)
    if missing := missing_cards(built.offers, config):
        # They were read, so the page is the usual one and its other prices are not in doubt.
        warnings += (f"held, though this source always has it: {', '.join(missing)}",)
    return built, Acceptance(sifted.failure is None, sifted.failure, warnings)


def _judged_by_provider(
    built: Built, history: History, config: SourceConfig, day: date, records: Records
) -> tuple[Built, Acceptance]:
    """Judge an imported day. Its rows are those that somebody chose, so that their number says nothing, and a
    doubt about one provider's prices is none about another's. A price is compared with the same provider's
    earlier one where that is at most ``stale_after_days`` old. Every offer that is not in doubt is flagged as
    imported."""
    acceptance = judge(built.offers, config, None, built.rejects)
    warnings = (*acceptance.warnings, *built.warnings)
    if not acceptance.accepted:
        return built, Acceptance(False, acceptance.reason, warnings)
    if history.last_day and (day - history.last_day).days > config.stale_after_days:
        history = replace(history, last=())
    elsewhere = OtherSources(records, config.name, day)
    before = _by_provider(history.last)
    offers, rejects = list[Offer](), list(built.rejects)
    for provider, now in _by_provider(built.offers).items():
        own = replace(history, last=before.get(provider, ()))
        sifted = sift(now, own, config, day, elsewhere.moves)
        offers += sifted.offers
        rejects += sifted.rejects
        warnings += (f"{provider}: {sifted.failure}",) if sifted.failure else ()
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


def _earlier_counts(source: str, day: date, records: Records) -> list[int]:
    """How many offers the best accepted attempt of each of the last days had."""
    days = [each for each in records.accepted_days(source) if each < day][-GROWTH_DAYS:]
    counts = (
        [row["rows"] for row in records.outcomes(source, each) if row["accepted"] and row["rows"]]
        for each in days
    )
    return [max(rows) for rows in counts if rows]
