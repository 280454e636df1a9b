"""From archived captures to the record of a source and day: read, judge, store.

The best accepted attempt of a day gives its offers; a refused reading leaves the last accepted offers in
place. The command, Dagster and a day read again all call record_day, on captures that come from the archive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pipeline.capture.archive import ID_FORMAT, Archive
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Capture, source_result
from pipeline.contracts.errors import GpufareError, sentence_of
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built, Offer, RejectedRow
from pipeline.contracts.outcome import Outcome, SourceResult, attempt_preference
from pipeline.contracts.rates import Rate
from pipeline.gates.judge import judge
from pipeline.gates.reading import Acceptance
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.parsing.printable import printable
from pipeline.record.damage import Damage, RecordError
from pipeline.record.incidents import report_incident
from pipeline.record.journal import Journal
from pipeline.record.mending import mend
from pipeline.record.months import BY_SOURCE, Month, damage_of
from pipeline.record.records import Records
from pipeline.refresh.exchange_rates import read_rates
from pipeline.sources import source_module

MAX_ERROR_CHARACTERS = 1_000
MAX_WARNINGS = 20
MAX_WARNING_CHARACTERS = 300


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


def read_again(source: str, day: date, home: Home) -> Outcome | None:
    """Read a source's day again from the archive; None when the archive has no complete capture of it, or the
    catalogue no such source."""
    captures = Archive(home.archive).captures(source, day)
    if source not in configs() or all(capture.status is None for capture in captures):
        return None
    return record_day(configs()[source], day, captures, home)


def record_day(config: SourceConfig, day: date, captures: Sequence[Capture], home: Home) -> Outcome:
    """Read a source's captures of a day into the record. The newest one gives the outcome.

    ``captures`` is the one just made, or all of the day from the archive; interrupted ones are skipped, and
    those of the archive that the record lacks are read, too. Of all accepted attempts of the day the best one
    (see Outcome.preference) gives the day's offers and rejects. Never raises for the content of an answer,
    for a damaged file, or for one that cannot be written.
    """
    try:
        return _record_day(config, day, captures, home)
    except (RecordError, OSError, UnwritableError) as problem:
        # A damaged file that cannot be set aside, or a disk that fails.
        capture = captures[-1] if captures else _missing(config, day, captures)
        error = sentence_of(problem)
        return _outcome(capture, Acceptance(False, error), error, {}, failed_here=True)


def _record_day(config: SourceConfig, day: date, captures: Sequence[Capture], home: Home) -> Outcome:
    _mend_what_is_replaced(config, day, home)
    kept = _attempts_kept(config, day, captures, home)
    known = {*kept, *(capture.capture_id or "" for capture in captures)}
    # A run that failed before it could archive anything is only recorded.
    only_failed = bool(captures) and all(capture.capture_id is None for capture in captures)
    unread = [] if only_failed else Archive(home.archive).captures(config.name, day, without=known)
    to_read = [capture for capture in (*unread, *captures) if capture.status is not None]
    to_read.sort(key=lambda capture: (capture.capture_id is None, capture.capture_id))
    reading = _read_all(config, to_read or [_missing(config, day, captures)], kept, home)
    _store(reading, config, day, home)
    return reading.outcomes[-1]


def mend_journal(home: Home) -> None:
    """Set a damaged journal aside, and read again from the archive what it lacks."""
    if damage := Journal(home).damage():
        _mend([damage], home)


def _mend_what_is_replaced(config: SourceConfig, day: date, home: Home) -> None:
    """Mend the files in which a reading of the day replaces rows."""
    months = (Month.of(table, config.name, day) for table in BY_SOURCE)
    _mend([damage for month in months if (damage := damage_of(home, month)) is not None], home)


def _mend(found: Sequence[Damage], home: Home) -> None:
    if found:
        mend(home, found, lambda source, day: read_again(source, day, home))


@dataclass(frozen=True, slots=True)
class _Content:
    """What one attempt's answers say: offers and rejects, or exchange rates. Offers and rates are None when
    they are not accepted."""

    offers: Sequence[Offer] | None = None
    rejects: Sequence[RejectedRow] | None = None
    rates: Sequence[dict[str, Any]] | None = None


@dataclass(slots=True)
class _Reading:
    """The outcomes of a day's captures, oldest first; what is to be stored, None to leave what is there; and
    the attempt that it is of."""

    outcomes: list[Outcome] = field(default_factory=list)
    content: _Content | None = None
    attempt: str = ""


def _attempts_kept(
    config: SourceConfig, day: date, captures: Sequence[Capture], home: Home
) -> dict[str, dict[str, Any]]:
    """The outcomes of the day's other attempts; none when their offers are gone: all are read again."""
    records = Records(home)
    try:
        outcomes = records.outcomes(config.name, day)
    except RecordError as error:
        _mend([error.damage], home)
        outcomes = records.outcomes(config.name, day)
    rows = {row["attempt"]: row for row in outcomes}
    is_rates = config.kind == "exchange_rates"
    is_there = day in records.rate_days() if is_rates else records.is_accepted(config.name, day)
    if any(row["accepted"] for row in rows.values()) and not is_there:
        return {}
    given = {capture.capture_id for capture in captures}
    return {attempt: row for attempt, row in rows.items() if attempt not in given}


def _missing(config: SourceConfig, day: date, captures: Sequence[Capture]) -> Capture:
    return Capture(
        source=config.name,
        day=day,
        capture_id=captures[-1].capture_id if captures else None,
        status="failed",
        error=f"the archive has no complete capture of {day}",
    )


def _read_all(
    config: SourceConfig, captures: Sequence[Capture], kept: Mapping[str, Mapping[str, Any]], home: Home
) -> _Reading:
    """Read captures, oldest first, and choose between them and the attempts kept."""
    preferences = [
        attempt_preference(row["status"], row["rows"], row["failed_requests"], row["attempt"])
        for row in kept.values()
        if row["accepted"]
    ]
    best = max(preferences, default=None)
    reading = _Reading()
    for capture in captures:
        outcome, content = _read(config, capture, home)
        if outcome.accepted and best is not None and outcome.preference < best:
            note = f"the day keeps what its attempt {best[-1]} gave"
            outcome = replace(outcome, warnings=(*outcome.warnings, note))
        elif outcome.accepted or (best is None and content is not None):
            best = outcome.preference if outcome.accepted else None
            reading.content, reading.attempt = content, outcome.attempt
        reading.outcomes.append(outcome)
    return reading


def _read(config: SourceConfig, capture: Capture, home: Home) -> tuple[Outcome, _Content | None]:
    """Read one capture. A file of the record that proves damaged is mended first, each at most once."""
    tried: set[Path] = set()
    while True:
        try:
            return _read_once(config, capture, home)
        except RecordError as error:
            if error.damage.path in tried:
                return _outcome(
                    capture, Acceptance(False, str(error)), str(error), {}, failed_here=True
                ), None
            tried.add(error.damage.path)
            _mend([error.damage], home)


def _read_once(config: SourceConfig, capture: Capture, home: Home) -> tuple[Outcome, _Content | None]:
    """Read one capture. Never raises for its content: that is the outcome. Raises RecordError."""
    capture, answers = _answers(capture, home)
    error = capture.error
    acceptance, counts, content = Acceptance(False, error or capture.status), dict[str, int](), None
    changed, failed_here = False, capture.damaged
    read = _rates_of if config.kind == "exchange_rates" else _offers_of
    try:
        if answers:
            acceptance, counts, content = read(config, capture, answers, Records(home))
            changed = not counts["rows"] and not counts.get("rejects")
    except RecordError:
        raise
    except SourceChangedError as problem:
        # Of a partial capture, the request that failed is the likelier cause.
        error = f"{error}; {problem}" if capture.status == "partial" and error else str(problem)
        acceptance, changed = Acceptance(False, "the answer could not be read"), True
        content = _Content(rejects=[])
    except Exception as problem:
        error = sentence_of(problem)
        acceptance, failed_here = Acceptance(False, error), True
    return _outcome(capture, acceptance, error, counts, changed=changed, failed_here=failed_here), content


def _answers(capture: Capture, home: Home) -> tuple[Capture, Sequence[Answer]]:
    """The answers of a capture; a damaged one has failed, and is an incident."""
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
            at=datetime.now(UTC),
            kind=IncidentKind.DAMAGED_CAPTURE,
            day=capture.day,
            source=capture.source,
            path=str(archive.folder(capture).relative_to(home.root)),
            reason=damage,
            remedy="left as it is: the day's other captures are used",
        ),
    )
    return replace(capture, status="failed", error=damage, damaged=True), []


def _store(reading: _Reading, config: SourceConfig, day: date, home: Home) -> None:
    """Store what a reading chose, and its outcomes. What cannot be written is not accepted."""
    try:
        _write_content(reading.content, config, day, Records(home))
    except Exception as problem:
        _report_unwritable(home, config, day, problem)
        error = _printable(sentence_of(problem))
        reading.outcomes = [
            replace(
                outcome, accepted=False, reason=error, error=error, result=SourceResult.FAILED_HERE, code=None
            )
            if outcome.attempt == reading.attempt
            else outcome
            for outcome in reading.outcomes
        ]
    for place, outcome in enumerate(reading.outcomes):
        try:
            Records(home).write_outcome(outcome)
        except (UnwritableError, RecordError) as problem:
            _report_unwritable(home, config, day, problem)
            note = f"the outcome is not kept: {problem}"
            reading.outcomes[place] = replace(outcome, warnings=(*outcome.warnings, note))


def _write_content(content: _Content | None, config: SourceConfig, day: date, records: Records) -> None:
    """The rejects come first: without them no new price is believed."""
    if content is None:
        return
    if content.rejects is not None and config.kind != "exchange_rates":
        records.write_rejects(day, config.name, content.rejects)
    if content.offers is not None:
        records.write_accepted(day, config.name, content.offers)
    if content.rates is not None:
        records.write_exchange_rates(day, content.rates)


def _report_unwritable(home: Home, config: SourceConfig, day: date, problem: Exception) -> None:
    path = problem.path if isinstance(problem, UnwritableError) else None
    report_incident(
        home,
        Incident(
            at=datetime.now(UTC),
            kind=IncidentKind.UNWRITABLE,
            day=day,
            source=config.name,
            path=str(path.relative_to(home.root)) if path else None,
            reason=sentence_of(problem),
            remedy="the last accepted offers stay, and the day can be read again from the archive",
        ),
    )


def _outcome(
    capture: Capture,
    acceptance: Acceptance,
    error: str | None,
    counts: Mapping[str, int],
    *,
    changed: bool = False,
    failed_here: bool = False,
) -> Outcome:
    result = source_result(capture, accepted=acceptance.accepted, changed=changed)
    return Outcome(
        day=capture.day,
        source=capture.source,
        attempt=capture.capture_id or datetime.now(UTC).strftime(ID_FORMAT),
        status=capture.status or "failed",
        accepted=acceptance.accepted,
        reason=_printable(acceptance.reason),
        warnings=bounded_warnings([*acceptance.warnings, *capture.warnings]),
        requests=capture.requests,
        failed_requests=capture.failed_requests,
        bytes=capture.bytes,
        sha256=capture.sha256,
        duration_seconds=capture.duration_seconds,
        retries=capture.retries,
        error=_printable(error),
        observed_at=capture.observed_at,
        result=SourceResult.FAILED_HERE if failed_here else result,
        code=capture.code,
        replayed=capture.replayed_from is not None,
        **counts,
    )


def bounded_warnings(warnings: Sequence[str]) -> tuple[str, ...]:
    """Warnings that can be kept and shown: they quote pages and addresses, which have no end."""
    shown = [printable(text) for text in warnings[:MAX_WARNINGS]]
    cut = [
        text if len(text) <= MAX_WARNING_CHARACTERS else f"{text[: MAX_WARNING_CHARACTERS - 1]}…"
        for text in shown
    ]
    more = len(warnings) - len(cut)
    return (*cut, f"and {more} more warnings") if more else tuple(cut)


def _printable(text: str | None) -> str | None:
    """An error may quote a page, and is shown in terminals."""
    return None if text is None else printable(text)[:MAX_ERROR_CHARACTERS]


def _rates_of(
    config: SourceConfig, capture: Capture, answers: Sequence[Answer], records: Records
) -> tuple[Acceptance, dict[str, int], _Content]:
    rows, acceptance = read_rates(config, capture.day, answers, records)
    return acceptance, {"rows": len(rows)}, _Content(rates=rows)


def _offers_of(
    config: SourceConfig, capture: Capture, answers: Sequence[Answer], records: Records
) -> tuple[Acceptance, dict[str, int], _Content]:
    """Read prices and judge them. Raises SourceChangedError and RecordError."""
    built = read_answers(answers, config, records.usd_rates(capture.day))
    built, acceptance = judge(
        built, answers, config, capture.day, records, lacks_answers=capture.lacks_answers
    )
    statuses = [offer.match_status for offer in built.offers]
    counts = {
        "rows": len(built.offers),
        "rejects": len(built.rejects),
        "matched": statuses.count("matched"),
        "ambiguous": statuses.count("ambiguous"),
        "unknown": statuses.count("unknown"),
        "regions": len({offer.region for offer in built.offers} - {None}),
    }
    return acceptance, counts, _Content(built.offers if acceptance.accepted else None, built.rejects)
