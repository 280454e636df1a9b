"""From archived captures to the record of a source and day: read, judge, store.

The best accepted attempt of a day gives the day's offers; a refused reading leaves the last accepted offers
in place. The command line, Dagster and repeated readings all call record_day on captures from the archive.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.capture.archive import ID_FORMAT, Archive
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Capture, source_result
from pipeline.contracts.errors import GpufareError, sentence_of
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.outcome import Outcome, SourceResult, attempt_preference
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.judge import judge
from pipeline.gates.reading import Acceptance
from pipeline.gates.reviews import read_reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.record.damage import Damage, RecordError
from pipeline.record.incidents import report_incident
from pipeline.record.journal import Journal
from pipeline.record.mending import mend
from pipeline.record.records import MAX_RATE_AGE_DAYS, Records
from pipeline.refresh.reading import ReadingStoppedError, read_rates, within_limits
from pipeline.refresh.reading import read_answers as read_answers

MAX_ERROR_CHARACTERS = 1_000
MAX_WARNINGS = 20
MAX_WARNING_CHARACTERS = 300


def read_again(source: str, day: date, home: Home) -> Outcome | None:
    """Read a source's day again from the archive; return None if the archive contains no complete capture of
    that day, or if the catalogue lacks the source."""
    captures = Archive(home.archive).captures(source, day)
    if source not in configs() or all(capture.status is None for capture in captures):
        return None
    return record_day(configs()[source], day, captures, home)


def record_day(config: SourceConfig, day: date, captures: Sequence[Capture], home: Home) -> Outcome:
    """Read a source's captures of a day into the record. Return the outcome of the newest capture.

    ``captures`` is the capture just made, or all archived captures of the day; interrupted captures are
    skipped, and archived captures that the record lacks are read, too. The best accepted attempt of the day
    (see Outcome.preference) gives the day's offers and rejects. A damaged file of the record is mended, and
    the day is read again. Never raises because of an answer's content, a damaged file or a failed write.
    """
    mended: set[Path] = set()
    try:
        while True:
            try:
                return _record_day(config, day, captures, home)
            except RecordError as error:
                if error.damage.path in mended:
                    raise
                mended.add(error.damage.path)
                mend_record(home, [error.damage])
    except (RecordError, OSError, UnwritableError) as problem:
        # A damaged file could not be set aside, or the disk failed.
        capture = captures[-1] if captures else _missing(config, day, captures)
        return _written(_failed_here(capture, problem), home)


def mend_record(home: Home, found: Sequence[Damage]) -> list[Incident]:
    """Set damaged files of the record aside, and read their days again from the archive."""
    return mend(home, found, lambda source, day: read_again(source, day, home)) if found else []


def mend_journal(home: Home) -> None:
    """Mend the journal if it is damaged."""
    if damage := Journal(home).damage():
        mend_record(home, [damage])


def _record_day(config: SourceConfig, day: date, captures: Sequence[Capture], home: Home) -> Outcome:
    kept = _attempts_kept(config, day, captures, home)
    accepted = [
        attempt_preference(row["status"], row["rows"], row["failed_requests"], row["attempt"])
        for row in kept.values()
        if row["accepted"]
    ]
    best = max(accepted, default=None)
    outcomes = dict[str, Outcome]()
    chosen: tuple[str, _Write] | None = None
    for capture in _unread(config, day, captures, kept, home):
        outcome, write = _read(config, capture, home)
        if outcome.accepted and best is not None and outcome.preference < best:
            note = f"the day keeps what its attempt {best[-1]} gave"
            outcome = replace(outcome, warnings=(*outcome.warnings, note))
        elif write is not None and (outcome.accepted or best is None):
            best = outcome.preference if outcome.accepted else None
            chosen = outcome.attempt, write
        outcomes[outcome.attempt] = outcome
    if chosen is not None:
        attempt, write = chosen
        outcomes[attempt] = _with_rows_written(outcomes[attempt], write, home)
    return [_written(outcome, home) for outcome in outcomes.values()][-1]


def _unread(
    config: SourceConfig, day: date, captures: Sequence[Capture], kept: Container[str], home: Home
) -> list[Capture]:
    """Return the given captures, and archived captures whose attempts are not ``kept``, oldest first."""
    given = {capture.capture_id for capture in captures}
    # A run that failed before it could archive anything is only recorded.
    others = [] if given == {None} else Archive(home.archive).captures(config.name, day, without=kept)
    unread = [capture for capture in others if capture.capture_id not in given]
    found = [capture for capture in (*unread, *captures) if capture.status is not None]
    found.sort(key=lambda capture: (capture.capture_id is None, capture.capture_id))
    return found or [_missing(config, day, captures)]


_Write = Callable[[], None]
"""Writes one attempt's rejects and accepted offers, or its exchange rates."""

_Read = tuple[Acceptance, dict[str, int], _Write]
"""A reading of answers: whether it is accepted, the counts for its outcome, and the function that writes its
rows."""


def _attempts_kept(
    config: SourceConfig, day: date, captures: Sequence[Capture], home: Home
) -> dict[str, dict[str, Any]]:
    """Return the outcomes of the day's other attempts; empty if the offers of these attempts are gone and
    must be read again."""
    records = Records(home)
    rows = records.outcomes(config.name, day)
    is_rates = config.kind == "exchange_rates"
    is_there = day in records.rate_days() if is_rates else records.is_accepted(config.name, day)
    if any(row["accepted"] for row in rows) and not is_there:
        return {}
    given = {capture.capture_id for capture in captures}
    return {row["attempt"]: row for row in rows if row["attempt"] not in given}


def _missing(config: SourceConfig, day: date, captures: Sequence[Capture]) -> Capture:
    return Capture(
        source=config.name,
        day=day,
        capture_id=captures[-1].capture_id if captures else None,
        status="failed",
        error=f"the archive has no complete capture of {day}",
    )


def _read(config: SourceConfig, capture: Capture, home: Home) -> tuple[Outcome, _Write | None]:
    """Read one capture; return its outcome, and the function that writes its rows, if any. Bad content is not
    raised as an error, but reported in the outcome. Raises RecordError."""
    capture, answers = _answers(capture, home)
    error = capture.error
    if not answers:
        refused = Acceptance(False, error or capture.status)
        result = SourceResult.FAILED_HERE if capture.damaged else None
        return _outcome(capture, refused, error, result=result), None
    records, is_rates = Records(home), config.kind == "exchange_rates"
    try:
        read = _read_rates if is_rates else partial(_read_offers, home)
        acceptance, counts, write = read(config, capture, answers, records)
    except RecordError:
        raise
    except SourceChangedError as problem:
        # If a capture is partial, its failed request is the likelier cause.
        error = f"{error}; {problem}" if capture.status == "partial" and error else str(problem)
        refused = Acceptance(False, "the answer could not be read")
        outcome = _outcome(capture, refused, error, changed=True)
        return outcome, None if is_rates else partial(records.write_rejects, capture.day, config.name, [])
    except ReadingStoppedError as stopped:
        refused = Acceptance(False, "the answer could not be read within the limits")
        return _outcome(capture, refused, str(stopped), result=SourceResult.REFUSED_BY_US), None
    except Exception as problem:
        return _failed_here(capture, problem), None
    return _outcome(capture, acceptance, error, counts, changed=acceptance.changed), write


def _answers(capture: Capture, home: Home) -> tuple[Capture, Sequence[Answer]]:
    """Return a capture and its answers; a damaged capture is returned as failed and becomes an incident."""
    archive = Archive(home.archive)
    answers: Sequence[Answer] = []
    damage = capture.error if capture.damaged else None
    try:
        answers = archive.answers(capture)
    except GpufareError as error:
        damage = str(error)
    if damage is None:
        return capture, answers
    report_incident(
        home,
        Incident(
            kind=IncidentKind.DAMAGED_CAPTURE,
            day=capture.day,
            source=capture.source,
            path=str(archive.folder(capture).relative_to(home.root)),
            reason=damage,
            remedy="left as it is: the day's other captures are used",
        ),
    )
    return replace(capture, status="failed", error=damage, damaged=True), []


def _with_rows_written(outcome: Outcome, write: _Write, home: Home) -> Outcome:
    """Write an attempt's rows; if that fails, the attempt is not accepted. Raises RecordError."""
    try:
        write()
    except RecordError:
        raise
    except Exception as problem:
        _report_unwritable(home, outcome, problem)
        error = _printable(sentence_of(problem))
        refused = replace(outcome, accepted=False, reason=error, error=error)
        return replace(refused, result=SourceResult.FAILED_HERE, code=None)
    return outcome


def _written(outcome: Outcome, home: Home) -> Outcome:
    """Write an outcome and return it, with a warning if it cannot be written."""
    try:
        Records(home).write_outcome(outcome)
    except (UnwritableError, RecordError) as problem:
        _report_unwritable(home, outcome, problem)
        return replace(outcome, warnings=(*outcome.warnings, f"the outcome is not kept: {problem}"))
    return outcome


def _report_unwritable(home: Home, outcome: Outcome, problem: Exception) -> None:
    path = problem.path if isinstance(problem, UnwritableError) else None
    report_incident(
        home,
        Incident(
            kind=IncidentKind.UNWRITABLE,
            day=outcome.day,
            source=outcome.source,
            path=str(path.relative_to(home.root)) if path else None,
            reason=sentence_of(problem),
            remedy="the last accepted offers stay, and the day can be read again from the archive",
        ),
    )


def _outcome(
    capture: Capture,
    acceptance: Acceptance,
    error: str | None,
    counts: Mapping[str, int] | None = None,
    *,
    changed: bool = False,
    result: SourceResult | None = None,
) -> Outcome:
    return Outcome(
        day=capture.day,
        source=capture.source,
        attempt=capture.capture_id or datetime.now(UTC).strftime(ID_FORMAT),
        status=capture.status or "failed",
        accepted=acceptance.accepted,
        reason=_printable(acceptance.reason),
        warnings=bounded_warnings([*acceptance.warnings, *capture.warnings]),
        lost="; ".join(bounded_warnings(acceptance.lost)) or None,
        requests=capture.requests,
        failed_requests=capture.failed_requests,
        bytes=capture.bytes,
        sha256=capture.sha256,
        duration_seconds=capture.duration_seconds,
        retries=capture.retries,
        error=_printable(error),
        observed_at=capture.observed_at,
        result=result or source_result(capture, accepted=acceptance.accepted, changed=changed),
        code=capture.code,
        replayed=capture.replayed_from is not None,
        **(counts or {}),
    )


def _failed_here(capture: Capture, problem: Exception) -> Outcome:
    error = sentence_of(problem)
    return _outcome(capture, Acceptance(False, error), error, result=SourceResult.FAILED_HERE)


def bounded_warnings(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return the warnings, limited in number and length because they quote pages and addresses."""
    shown = [printable(text) for text in warnings[:MAX_WARNINGS]]
    cut = [
        text if len(text) <= MAX_WARNING_CHARACTERS else f"{text[: MAX_WARNING_CHARACTERS - 1]}…"
        for text in shown
    ]
    more = len(warnings) - len(cut)
    return (*cut, f"and {more} more warnings") if more else tuple(cut)


def _printable(text: str | None) -> str | None:
    """Return text made safe for terminals, since an error may quote a page."""
    return None if text is None else printable(text)[:MAX_ERROR_CHARACTERS]


def _read_rates(config: SourceConfig, capture: Capture, answers: Sequence[Answer], records: Records) -> _Read:
    """Read exchange rates, which convert every price that is not in dollars.

    Raises GpufareError if a rate has moved too far; also raises RecordError and the reader's errors.
    """
    rates = within_limits(read_rates, answers, config)
    before = records.usd_rates(capture.day - timedelta(days=1))
    usd = dict(sorted(rates.usd_per_unit.items()))
    for currency in usd:
        if currency in before and abs(usd[currency] / before[currency].usd - 1) > THRESHOLDS.max_rate_change:
            raise GpufareError(
                f"one {currency} went from {before[currency].usd:.4f} to {usd[currency]:.4f} USD, more than "
                f"{THRESHOLDS.max_rate_change:.0%} in a week"
            )
    # Each converted price carries its rate's day, so an old rate is accepted and visible.
    is_old = (capture.day - rates.date).days > MAX_RATE_AGE_DAYS
    acceptance = Acceptance(True, warnings=(f"the rates are from {rates.date}",) if is_old else ())
    rows = [
        {"day": capture.day, "currency": currency, "usd_per_unit": each, "rate_date": rates.date}
        for currency, each in usd.items()
    ]
    return acceptance, {"rows": len(rows)}, partial(records.write_exchange_rates, capture.day, rows)


def _read_offers(
    home: Home, config: SourceConfig, capture: Capture, answers: Sequence[Answer], records: Records
) -> _Read:
    """Read prices and judge them. Raises SourceChangedError and RecordError."""
    rates, reviews = records.usd_rates(capture.day), read_reviews(home, config.name)
    built = within_limits(read_answers, answers, config, rates, reviews, True)
    built, acceptance = judge(
        built,
        answers,
        config,
        capture.day,
        records,
        reviews=reviews,
        sha256=capture.sha256,
        lacks_answers=capture.lacks_answers,
        former=lambda sha256, of: Archive(home.archive).answers_beside(config.name, of, sha256),
    )
    doubted = {reason for reason in RejectReason if reason.held} | {RejectReason.PRICE_OUT_OF_BOUNDS}
    was_read = built.offers or any(reject.reason in doubted for reject in built.rejects)
    acceptance = replace(acceptance, changed=not was_read)
    statuses = [offer.match_status for offer in built.offers]
    counts = {
        "rows": len(built.offers),
        "rejects": len(built.rejects),
        "matched": statuses.count("matched"),
        "ambiguous": statuses.count("ambiguous"),
        "unknown": statuses.count("unknown"),
        "regions": len({offer.region for offer in built.offers} - {None}),
    }

    def write() -> None:
        """Write the rejects first: no new price is trusted unless the rejects are recorded."""
        records.write_rejects(capture.day, config.name, built.rejects)
        if acceptance.accepted:
            records.write_accepted(capture.day, config.name, built.offers)

    return acceptance, counts, write
