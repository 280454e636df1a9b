"""From archived answers to the record of a source and day: read, judge, keep.

What is accepted is written to the record; what is refused leaves the last good offers where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pipeline.offers.acceptance import Verdict, judge, quarantine_jumps
from pipeline.offers.build import Built, Rate, build_offers
from pipeline.offers.plain_text import plain
from pipeline.offers.records import Outcome, Records
from pipeline.sources import source_module
from pipeline.sources.base import Answer, SourceChangedError
from pipeline.sources.config import SourceConfig


@dataclass(frozen=True, slots=True)
class Captured:
    """What the capture of a source left for its outcome row."""

    status: str
    answers: Sequence[Answer]
    requests: int = 0
    failed_requests: int = 0
    bytes: int = 0
    duration_seconds: float = 0.0
    retries: int = 0
    error: str | None = None


def read_answers(
    answers: Sequence[Answer], config: SourceConfig, rates: Mapping[str, Rate] | None = None
) -> Built:
    """One source's answers as offers and rejects.

    Raises SourceChangedError when the answers are not in the shape that the reader knows, whatever the
    reader itself raised on them: an answer may be anything, and one source never stops the others.
    """
    try:
        return build_offers(source_module(config.name).read(answers, config), config, rates)
    except SourceChangedError as changed:
        raise SourceChangedError(plain(str(changed))) from changed
    except Exception as error:
        raise SourceChangedError(
            f"the {config.name} reader does not understand the answer "
            f"({type(error).__name__}: {plain(str(error))})"
        ) from error


def record_source(
    config: SourceConfig,
    day: date,
    captured: Captured,
    rates: Mapping[str, Rate],
    records: Records,
) -> Outcome:
    """Read a source's captured answers, judge them and write offers, rejects and the outcome row."""
    built, verdict, error = Built(), Verdict(False, _why_nothing(captured)), captured.error
    if captured.answers:
        try:
            built = read_answers(captured.answers, config, rates)
            built, verdict = _judged(built, config, day, records)
        except SourceChangedError as changed:
            verdict, error = Verdict(False, "the answer could not be read"), str(changed)
    if verdict.accepted:
        records.write_accepted(day, config.name, built.offers)
    if captured.answers:
        records.write_rejects(day, config.name, built.rejects)
    outcome = _outcome(config, day, captured, built, verdict, error)
    records.write_outcome(outcome)
    return outcome


def _why_nothing(captured: Captured) -> str:
    return captured.error or captured.status


def _judged(built: Built, config: SourceConfig, day: date, records: Records) -> tuple[Built, Verdict]:
    last = records.last_accepted(config.name, before=day)
    verdict = judge(built.offers, config, len(last[1]) if last else None, built.rejects)
    if not verdict.accepted or last is None:
        return built, verdict
    last_day, last_offers = last
    held = _held_back_since(records, config.name, last_day, day)
    quarantine = quarantine_jumps(built.offers, last_offers, held, config)
    built = Built(quarantine.offers, built.rejects + quarantine.rejects)
    return built, Verdict(False, quarantine.failure) if quarantine.failure else verdict


def _held_back_since(
    records: Records, source: str, since: date, before: date
) -> dict[tuple[Any, ...], Decimal]:
    """Prices that the last reading of an earlier day held back, by ``price_key``."""
    days = [day for day in records.rejected_days(source) if since <= day < before]
    if not days:
        return {}
    return {
        tuple(row["raw"]["price_key"]): Decimal(row["raw"]["native_price"])
        for row in records.rejects(source, days[-1])
        if row["reason"] == "price_jump"
    }


def _outcome(
    config: SourceConfig,
    day: date,
    captured: Captured,
    built: Built,
    verdict: Verdict,
    error: str | None,
) -> Outcome:
    statuses = [offer.match_status for offer in built.offers]
    return Outcome(
        day=day,
        source=config.name,
        status=captured.status,
        accepted=verdict.accepted,
        reason=verdict.reason,
        warnings=verdict.warnings,
        requests=captured.requests,
        failed_requests=captured.failed_requests,
        bytes=captured.bytes,
        sha256=captured.answers[0].sha256 if captured.answers else None,
        duration_seconds=captured.duration_seconds,
        retries=captured.retries,
        rows=len(built.offers),
        rejects=len(built.rejects),
        matched=statuses.count("matched"),
        ambiguous=statuses.count("ambiguous"),
        unknown=statuses.count("unknown"),
        error=error,
        observed_at=_last_moment(captured.answers),
    )


def _last_moment(answers: Sequence[Answer]) -> datetime | None:
    return max((answer.observed_at for answer in answers), default=None)
