"""Finds prices that were replayed from saved pages and could pass for live prices."""

from datetime import UTC, date, datetime
from typing import NamedTuple

from pipeline.warehouse.engine import duckdb
from pipeline.warehouse.query import ask

_REPLAYS = """
WITH _latest AS (
    SELECT
        l.source, l.day, (max(l.observed_at) AT TIME ZONE 'UTC')::DATE AS observed_on,
        coalesce(any_value(o.replayed), FALSE) AS replayed
    FROM main.offers_latest AS l
    LEFT JOIN main.capture_outcomes AS o ON o.source = l.source AND o.day = l.day AND o.stands
    GROUP BY l.source, l.day
)

SELECT source, observed_on, observed_on < day OR NOT bool_and(replayed) OVER () AS unlike_live
FROM _latest
QUALIFY replayed
ORDER BY source
"""


class Replay(NamedTuple):
    """A source whose latest prices were replayed from pages saved on ``observed_on`` (UTC). The prices of an
    ``unlike_live`` replay could pass for live: other providers were asked live, or the prices are filed under
    a later day than the one on which they were observed."""

    source: str
    observed_on: date
    unlike_live: bool


def replays(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """Return the replayed sources of ``offers_latest``, sorted by name. Raises QueryError."""
    return [Replay(*row) for row in ask(connection, _REPLAYS).rows]


def unlike_live(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """Return the replays that could pass for live prices. Raises QueryError."""
    return [each for each in replays(connection) if each.unlike_live]


def observed_day(moment: datetime) -> date:
    """Return the UTC day of an observation time."""
    return moment.astimezone(UTC).date()


def replays_text(found: list[Replay]) -> str:
    """Return the sources, grouped by page date, as in ``lambda, vast (observed on 2026-08-22)``."""
    by_day: dict[date, list[str]] = {}
    for each in sorted(found, key=lambda each: (each.observed_on, each.source)):
        by_day.setdefault(each.observed_on, []).append(each.source)
    return ", ".join(f"{', '.join(names)} (observed on {day})" for day, names in by_day.items())
