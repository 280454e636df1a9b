"""The current state of every source: the published table ``source_health``, computed from the record alone.

The computation needs no published file, so it works even if nothing can be published.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from pipeline.capture.archive import Archive, began_at
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import OutcomeCode, SourceResult
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.advice import REFRESH_AGAIN, next_step
from pipeline.refresh.permissions import off_sources
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.history import LATE_AFTER
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load_record import load_newest
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import Result, ask
from pipeline.warehouse.replays import unlike_live

_log = logging.getLogger("gpufare")

TABLE = "source_health"

_STATES = f"""
SELECT h.source, h.title, h.state, h.last_attempt_day, h.last_accepted_day, h.age_days,
    h.offers, h.offers_ranked, h.evidence_level || ' ' || h.evidence_date AS evidence,
    s.terms_automated AS terms, s.terms_url,
    CASE h.why WHEN 'overdue' THEN h.last_error ELSE h.why END AS why,
    n.result,
    n.code, h.kind, h.last_attempt_accepted, h.failing_since, h.failed_attempts, h.stale_after_days,
    h.ranked_until, h.overdue
FROM main.{TABLE} AS h
INNER JOIN main.sources AS s ON s.source = h.source
LEFT JOIN (
    FROM main.capture_outcomes
    QUALIFY row_number() OVER (PARTITION BY source ORDER BY day DESC, attempt DESC) = 1
) AS n ON n.source = h.source
ORDER BY h.source
"""  # noqa: S608 - our own table


_RESULTS = {each.value: each for each in SourceResult}
_CODES = {each.value: each for each in OutcomeCode}


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source's state: its row of ``source_health`` with the result and code of its newest attempt, the last
    page from which its prices were replayed, and a note if a run ended before it had read the source."""

    row: Mapping[str, Any]
    replayed_of: date | None
    unread_visit: str | None

    @property
    def what(self) -> str:
        """What happened, in a few words."""
        row = self.row
        if row["state"] == "aging" or _was_good(row):
            return _not_asked(row)
        if row["last_attempt_accepted"] or row["result"] is None:
            return str(row["state"]).replace("_", " ")
        failed = f"{_RESULTS[row['result']].sentence}{_since(row)}"
        return f"{_not_asked(row)}, when it failed: {failed}" if row["overdue"] else failed

    @property
    def reason(self) -> str | None:
        """Why the newest attempt was not accepted, unless ``what`` says so."""
        needs_key = self.row["result"] == SourceResult.NEEDS_KEY
        is_told = self.row["state"] == "aging" or _was_good(self.row) or needs_key
        return "; ".join(filter(None, [None if is_told else _reason(self.row), self.unread_visit])) or None

    @property
    def prices(self) -> str:
        """Which prices stand in, and until when."""
        if not self.row["last_accepted_day"]:
            return "none of its prices was ever accepted"
        return _last_prices(self.row)

    @property
    def next_step(self) -> str:
        """The command or the step that helps."""
        row, step = self.row, None
        if not row["last_attempt_accepted"] and row["result"] is not None:
            code = _CODES.get(row["code"])
            step = next_step(_RESULTS[row["result"]], code, configs()[row["source"]])
        if step in (None, REFRESH_AGAIN):
            return f"{REFRESH_AGAIN}: gpufare refresh --source {row['source']}"
        return str(step)

    @property
    def why(self) -> str | None:
        """The reason, the prices that stand in, and the notes in one line; None if all is well."""
        parts = [why_text(self.row), self.unread_visit]
        if self.replayed_of:
            parts.append(f"its prices were replayed from saved pages (observed on {self.replayed_of})")
        return "; ".join(filter(None, parts)) or None


def source_states(
    home: Home, today: date, environment: Mapping[str, str] = os.environ, *, now: datetime | None = None
) -> Result:
    """Return the states of all sources (see explained_states) as a table.

    ``evidence`` is the kind and day of the pages on which the source's reader is based, not proof that the
    reader works live. ``terms`` is what the provider's terms of use say about automated reading. ``result``
    is the result of the newest attempt (see ``capture_outcomes``). ``why`` gives the reason in words.

    Raises GpufareError if the home is a file.
    """
    found, states = _states(home, today, environment, now)
    shown = found.columns.index("result") + 1  # the columns from here on are only for the explanations
    rows = [tuple({**state.row, "why": state.why}.values())[:shown] for state in states]
    return Result(found.columns[:shown], found.types[:shown], rows)


def explained_states(
    home: Home, today: date, environment: Mapping[str, str] = os.environ, *, now: datetime | None = None
) -> list[SourceState]:
    """Return the state of each source as of ``now`` (UTC); by default, as of the current time, or of the end
    of a day ``today`` that has passed. Raises GpufareError if the home is a file.
    """
    return _states(home, today, environment, now)[1]


def _states(
    home: Home, today: date, environment: Mapping[str, str], now: datetime | None
) -> tuple[Result, list[SourceState]]:
    if home.root.exists() and not home.root.is_dir():
        raise GpufareError(f"{home.root} is a file: set {HOME_VARIABLE} to the folder with gpufare's data")
    with in_memory(TABLE) as connection:
        damages = load_newest(connection, home, today)
        for path, reason in {damage.path: damage.reason for damage in damages}.items():
            _log.warning("%s cannot be read and is skipped: %s", path, reason)
        off = off_sources(configs().values(), home, environment)
        variables = {
            "as_of_day": today,
            "today": today,
            "now": now or _in_day(datetime.now(UTC), today),
            "late_after": LATE_AFTER,
            "sources_off": list(off),
            "reasons_off": list(off.values()),
            "sources_with_keys": [name for name, config in configs().items() if config.has_key(environment)],
        }
        for name, value in variables.items():
            connection.execute(f"SET VARIABLE {name} = ?", [value])
        for table in Lineage(connection).marts([TABLE]):
            fill(connection, table)
        found = ask(connection, _STATES)
        replayed = {each.source: each.observed_on for each in unlike_live(connection)}
    archive = Archive(home.archive)
    return found, [
        SourceState(
            row,
            replayed.get(row["source"]),
            _unread_visit(archive, row["source"], today) if row["overdue"] else None,
        )
        for row in found.dicts()
    ]


def _in_day(moment: datetime, day: date) -> datetime:
    """Return a moment, or the nearest moment of a day (UTC) that does not contain it."""
    return min(max(moment, datetime.combine(day, time.min, UTC)), datetime.combine(day, time.max, UTC))


def _unread_visit(archive: Archive, source: str, today: date) -> str | None:
    """Return a note on a visit of today whose answers were not read."""
    visits = archive.captures(source, today)
    if not visits or visits[-1].capture_id is None:
        return None
    ended = "was interrupted" if visits[-1].status is None else "was not read: the run ended before"
    return f"its visit of {began_at(visits[-1].capture_id):%Y-%m-%d %H:%M} UTC {ended}"


def why_text(row: Mapping[str, Any]) -> str | None:
    """Return why a source is in its state and how long its last prices stay ranked; None if all is well."""
    state, reason = row["state"], row["why"]
    if state in {"disabled", "needs_key", "not_asked", "current"}:
        named = {"needs_key": f"needs a key in {reason}", "not_asked": "not asked yet"}
        return named.get(state, f"incomplete: {reason}" if state == "current" and reason else reason)
    reason = _reason(row)
    if reason and row["failing_since"]:
        reason = f"{reason}{_since(row)}"
        if row.get("overdue") and not _was_good(row):
            reason = f"{_not_asked(row)}, when it failed: {reason}"
    return "; ".join(filter(None, [reason, _last_prices(row) if row["last_accepted_day"] else None]))


def _was_good(row: Mapping[str, Any]) -> bool:
    """True if the newest attempt gave the prices that are ranked, and the source may be asked again."""
    was_good = row["last_attempt_accepted"] and row["last_accepted_day"] == row["last_attempt_day"]
    return bool(was_good) and row["state"] != "needs_permission"


def _reason(row: Mapping[str, Any]) -> str | None:
    if row["state"] == "aging" or _was_good(row):
        return _not_asked(row)
    if row["why"] == "accepted_prices_missing":
        return f"the prices accepted on {row['last_attempt_day']} are no longer in the record"
    return str(row["why"]) if row["why"] else None


def _not_asked(row: Mapping[str, Any]) -> str:
    return f"not asked since {row['last_attempt_day']}"


def _since(row: Mapping[str, Any]) -> str:
    """Return since when a source has been failing, and how often it failed; empty if it is not."""
    attempts = f", {row['failed_attempts']} attempts" if row["failed_attempts"] > 1 else ""
    return f" (since {row['failing_since']}{attempts})" if row["failing_since"] else ""


def _last_prices(row: Mapping[str, Any]) -> str:
    """Return whether the last accepted prices of a source are in the rankings, and until when."""
    if row["kind"] != "prices":
        return f"its last rates are of {row['last_accepted_day']}"
    prices = f"its prices of {row['last_accepted_day']}"
    old = f"{prices} are older than {row['stale_after_days']} days"
    if row["state"] == "stale" and row["offers_ranked"]:
        return f"{old} and still ranked, because nothing newer is published"
    if row["state"] == "stale":
        return f"{old}: rankings after {row['ranked_until']} omit them"
    if row["offers_ranked"]:
        return f"{prices} stay in the rankings until {row['ranked_until']}"
    return f"none of {prices} is ranked"
