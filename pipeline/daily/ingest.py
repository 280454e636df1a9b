"""From archived captures to the record of a source and day: read, judge, store.

Accepted offers are written to the record; a refused reading leaves the last accepted offers in place. The
command, Dagster and a day read again all call record_day, on captures that come from the archive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pipeline.capture.archive import ID_FORMAT, Archive
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture, Outcome
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.paths import Home
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.daily.exchange_rates import record_rates
from pipeline.offers.acceptance import Acceptance, judge, quarantine_jumps
from pipeline.offers.build import Built, build_offers
from pipeline.offers.printable import printable
from pipeline.offers.records import Records
from pipeline.sources import source_module

MAX_ERROR_CHARACTERS = 1_000


def read_answers(
    answers: Sequence[Answer], config: SourceConfig, rates: Mapping[str, Rate] | None = None
) -> Built:
    """One source's answers as offers and rejects.

    Raises SourceChangedError when the answers are not in the shape that the reader knows, whatever the
    reader itself raised: an answer may be anything, and one source never stops the others.
    """
    try:
        return build_offers(source_module(config.name).read(answers, config), config, rates)
    except SourceChangedError as changed:
        raise SourceChangedError(printable(str(changed))) from changed
    except Exception as error:
        raise SourceChangedError(
            f"the {config.name} reader does not understand the answer "
            f"({type(error).__name__}: {printable(str(error))})"
        ) from error


def record_day(config: SourceConfig, day: date, captures: Sequence[Capture], home: Home) -> Outcome:
    """Read a source's captures of a day into the record, oldest first. The newest one gives the outcome.

    ``captures`` is the one just made, or all of the day from the archive; interrupted ones are skipped.
    """
    missing = Capture(
        source=config.name,
        day=day,
        capture_id=None,
        status="failed",
        error=f"the archive has no complete capture of {day}",
    )
    complete = [capture for capture in captures if capture.status is not None]
    return [_record(config, capture, home) for capture in complete or [missing]][-1]


def _record(config: SourceConfig, capture: Capture, home: Home) -> Outcome:
    """Read one capture into the record. Never raises for its content or for a damaged file of the record:
    that is the outcome, and the other sources go on."""
    records = Records(home)
    answers: Sequence[Answer] = []
    try:
        answers = Archive(home.archive).answers(capture)
    except GpufareError as damage:
        capture = replace(capture, status="failed", error=str(damage))
    error = capture.error
    acceptance, counts = Acceptance(False, error or capture.status), dict[str, int]()
    read = record_rates if config.kind == "exchange_rates" else _record_offers
    try:
        if answers:
            acceptance, counts = read(config, capture.day, answers, records)
    except SourceChangedError as changed:
        acceptance, error = Acceptance(False, "the answer could not be read"), str(changed)
    except Exception as problem:
        error = str(problem) if isinstance(problem, GpufareError) else f"{type(problem).__name__}: {problem}"
        acceptance = Acceptance(False, error)
    outcome = _outcome(capture, acceptance, error, counts)
    records.write_outcome(outcome)
    return outcome


def _outcome(
    capture: Capture, acceptance: Acceptance, error: str | None, counts: Mapping[str, int]
) -> Outcome:
    return Outcome(
        day=capture.day,
        source=capture.source,
        attempt=capture.capture_id or datetime.now(UTC).strftime(ID_FORMAT),
        status=capture.status or "failed",
        accepted=acceptance.accepted,
        reason=_printable(acceptance.reason),
        warnings=acceptance.warnings,
        requests=len(capture.entries),
        failed_requests=capture.failed_requests,
        bytes=capture.bytes,
        sha256=capture.sha256,
        duration_seconds=capture.duration_seconds,
        retries=capture.retries,
        error=_printable(error),
        observed_at=capture.observed_at,
        **counts,
    )


def _printable(text: str | None) -> str | None:
    """An error may quote a page, and is shown in terminals."""
    return None if text is None else printable(text)[:MAX_ERROR_CHARACTERS]


def _record_offers(
    config: SourceConfig, day: date, answers: Sequence[Answer], records: Records
) -> tuple[Acceptance, dict[str, int]]:
    """Read prices and write the accepted offers and the rejects. Raises SourceChangedError."""
    try:
        built = read_answers(answers, config, records.usd_rates(day))
    except SourceChangedError:
        records.write_rejects(day, config.name, [])
        raise
    built, acceptance = _judged(built, config, day, records)
    if acceptance.accepted:
        records.write_accepted(day, config.name, built.offers)
    records.write_rejects(day, config.name, built.rejects)
    statuses = [offer.match_status for offer in built.offers]
    return acceptance, {
        "rows": len(built.offers),
        "rejects": len(built.rejects),
        "matched": statuses.count("matched"),
        "ambiguous": statuses.count("ambiguous"),
        "unknown": statuses.count("unknown"),
    }


def _judged(built: Built, config: SourceConfig, day: date, records: Records) -> tuple[Built, Acceptance]:
    last = records.last_accepted(config.name, before=day)
    acceptance = judge(built.offers, config, len(last[1]) if last else None, built.rejects)
    acceptance = replace(acceptance, warnings=(*acceptance.warnings, *built.warnings))
    if not acceptance.accepted or last is None:
        return built, acceptance
    last_day, last_offers = last
    held_back = _held_back_since(records, config.name, last_day, day)
    quarantine = quarantine_jumps(built.offers, last_offers, held_back, config)
    built = Built(quarantine.offers, built.rejects + quarantine.rejects)
    return built, Acceptance(
        False, quarantine.failure, acceptance.warnings
    ) if quarantine.failure else acceptance


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
        if row["reason"] == RejectReason.PRICE_JUMP
    }
