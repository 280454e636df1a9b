"""The current state of every source: the published table ``source_health``, computed from the record alone.

The computation needs no published file, so it works even if nothing can be published.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from pipeline.capture.archive import Archive, began_at
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.permissions import off_sources
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.history import LATE_AFTER
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load_record import load_newest
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import Result, ask
from pipeline.warehouse.replays import Replay, unlike_live

_log = logging.getLogger("gpufare")

TABLE = "source_health"

_STATES = f"""
SELECT h.source, h.title, h.state, h.last_attempt_day, h.last_accepted_day, h.age_days,
    h.offers, h.offers_ranked, h.evidence_level || ' ' || h.evidence_date AS evidence,
    s.terms_automated AS terms, s.terms_url,
    CASE h.why WHEN 'overdue' THEN h.last_error ELSE h.why END AS why,
    (
        SELECT arg_max(o.result, (o.day, o.attempt)) FROM main.capture_outcomes AS o WHERE o.source = h.source
    ) AS result,
    h.kind, h.last_attempt_accepted, h.failing_since, h.failed_attempts, h.stale_after_days, h.ranked_until,
    h.overdue
FROM main.{TABLE} AS h
INNER JOIN main.sources AS s ON s.source = h.source
ORDER BY h.source
"""  # noqa: S608 - our own table


def source_states(
    home: Home, today: date, environment: Mapping[str, str] = os.environ, *, now: datetime | None = None
) -> Result:
    """Return one row per source, with columns of ``source_health``, as of ``now`` (UTC); by default, as of
    the current time, or of the end of a day ``today`` that has passed.

    ``evidence`` is the kind and day of the pages on which the source's reader is based, not proof that the
    reader works live. ``terms`` is what the provider's terms of use say about automated reading. ``result``
    is the result of the newest attempt (see ``capture_outcomes``). ``why`` gives the reason in words.

    Raises GpufareError if the home is a file.
    """
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
        return _in_words(ask(connection, _STATES), unlike_live(connection), Archive(home.archive), today)


def _in_day(moment: datetime, day: date) -> datetime:
    """Return a moment, or the nearest moment of a day (UTC) that does not contain it."""
    return min(max(moment, datetime.combine(day, time.min, UTC)), datetime.combine(day, time.max, UTC))


def _in_words(states: Result, found: Sequence[Replay], archive: Archive, today: date) -> Result:
    """Return the states with ``why`` in words, including a note if prices come from saved pages, or if a run
    ended before it had read the source."""
    observed = {each.source: each.observed_on for each in found}
    rows = list(states.dicts())
    for row in rows:
        parts = [why_text(row), _unread_visit(archive, row["source"], today) if row.get("overdue") else None]
        if day := observed.get(row["source"]):
            parts.append(f"its prices were replayed from saved pages (observed on {day})")
        row["why"] = "; ".join(filter(None, parts)) or None
    shown = states.columns.index("kind")  # the columns from here on are only for why_text
    return Result(states.columns[:shown], states.types[:shown], [tuple(row.values())[:shown] for row in rows])


def _unread_visit(archive: Archive, source: str, today: date) -> str | None:
    """Return a note on a visit of today whose answers were not read."""
    visits = archive.captures(source, today)
    if not visits or visits[-1].capture_id is None:
        return None
    ended = "was interrupted" if visits[-1].status is None else "was not read: the run ended before"
    return f"its visit of {began_at(visits[-1].capture_id):%Y-%m-%d %H:%M} UTC {ended}"


def why_text(row: Mapping[str, Any]) -> str | None:
    """Return why a source is in its state and how long its last prices stay ranked; None if all is well."""
    state, reason, day = row["state"], row["why"], row["last_accepted_day"]
    if state in {"disabled", "needs_key", "not_asked", "current"}:
        named = {"needs_key": f"needs a key in {reason}", "not_asked": "not asked yet"}
        return named.get(state, f"incomplete: {reason}" if state == "current" and reason else reason)
    was_good = row["last_attempt_accepted"] and day == row["last_attempt_day"]
    if state == "aging" or (was_good and state != "needs_permission"):
        reason = f"not asked since {row['last_attempt_day']}"
    elif reason == "accepted_prices_missing":
        reason = f"the prices accepted on {row['last_attempt_day']} are no longer in the record"
    if reason and row["failing_since"]:
        attempts = f", {row['failed_attempts']} attempts" if row["failed_attempts"] > 1 else ""
        reason = f"{reason} (since {row['failing_since']}{attempts})"
        if row.get("overdue") and not was_good:
            reason = f"not asked since {row['last_attempt_day']}, when it failed: {reason}"
    return "; ".join(filter(None, [reason, _last_prices(row) if day else None]))


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
