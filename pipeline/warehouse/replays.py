"""Which prices are of saved pages, where they could pass for live ones."""

from datetime import UTC, date, datetime
from typing import NamedTuple

import duckdb

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
    """A source whose latest prices were replayed from pages that were saved on a day (UTC). Those that are
    ``unlike_live`` could pass for live prices: they are beside prices of providers that were asked, or filed
    under a later day than that on which they were observed."""

    source: str
    observed_on: date
    unlike_live: bool


def replays(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """Every source of ``offers_latest`` that was replayed, by name. Raises QueryError."""
    return [Replay(*row) for row in ask(connection, _REPLAYS).rows]


def unlike_live(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """The replays that could pass for live prices. Raises QueryError."""
    return [each for each in replays(connection) if each.unlike_live]


def observed_day(moment: datetime) -> date:
    """The day (UTC) of a time of observation."""
    return moment.astimezone(UTC).date()


def replays_text(found: list[Replay]) -> str:
    """The sources by the day of their pages, such as ``lambda, vast (observed on 2026-08-22)``."""
    by_day: dict[date, list[str]] = {}
    for each in sorted(found, key=lambda each: (each.observed_on, each.source)):
        by_day.setdefault(each.observed_on, []).append(each.source)
    return ", ".join(f"{', '.join(names)} (observed on {day})" for day, names in by_day.items())
