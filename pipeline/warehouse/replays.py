"""Which prices are of saved pages, where they could pass for live ones."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

import duckdb

from pipeline.warehouse.query import ask

_LATEST = """
SELECT l.source, l.day, max(l.observed_at) AS observed_at, coalesce(any_value(o.replayed), FALSE) AS replayed
FROM main.offers_latest AS l
LEFT JOIN main.capture_outcomes AS o ON o.source = l.source AND o.day = l.day AND o.stands
GROUP BY l.source, l.day
ORDER BY l.source
"""


@dataclass(frozen=True, slots=True)
class Replay:
    """A source whose latest prices were replayed from saved pages; ``observed_on`` (UTC) is the day on which
    the pages were saved, which may be earlier than the ``day`` that the prices are filed under."""

    source: str
    day: date
    observed_on: date


def replays(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """Every source of ``offers_latest`` that was replayed, by name. Raises QueryError."""
    return [
        Replay(row["source"], row["day"], observed_day(row["observed_at"]))
        for row in ask(connection, _LATEST).dicts()
        if row["replayed"]
    ]


def unlike_live(connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """The replays that could pass for live prices: beside prices of providers that were asked, or filed under
    a later day than that on which they were observed. Raises QueryError."""
    found = replays(connection)
    ((sources,),) = ask(connection, "SELECT count(DISTINCT source) FROM main.offers_latest").rows
    mixed = len(found) < sources
    return [each for each in found if mixed or each.observed_on < each.day]


def observed_day(moment: datetime) -> date:
    """The day (UTC) of a time of observation."""
    return moment.astimezone(UTC).date()


def replays_text(found: list[Replay]) -> str:
    """The sources by the day of their pages, such as ``lambda, vast (observed on 2026-08-22)``."""
    by_day: dict[date, list[str]] = {}
    for each in sorted(found, key=lambda each: (each.observed_on, each.source)):
        by_day.setdefault(each.observed_on, []).append(each.source)
    return ", ".join(f"{', '.join(names)} (observed on {day})" for day, names in by_day.items())
