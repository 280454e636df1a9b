"""The morning's digest, about ten lines: the publication, price moves, failed sources and held prices.

Text from price pages is made harmless first, since a chat may render a line as Markdown or HTML.
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb

from pipeline.capture.archive import Archive
from pipeline.capture.permissions import read_choices
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.reject_reasons import CONTRADICTIONS
from pipeline.health.source_states import source_states
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.questions.numbers import price_text
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.clock import REMEDY, clock_problem
from pipeline.warehouse.query import DamagedError, NotPublishedError, QueryError, ask, reader

SHOWN = 5
"""The maximum number of sources, prices or incidents listed on one line; the others are only counted."""

MAX_QUOTED_CHARACTERS = 160

FINE = frozenset({"current", "disabled", "needs_key", "needs_permission"})
"""Source states that need no action."""

NEVER_ASKED = "not_asked"

_UNMARKED = str.maketrans({"[": "(", "]": ")", "`": "'", "*": "∗", "~": "∼", "|": "¦", "@": "＠", "\\": "∖"})


@dataclass(frozen=True, slots=True)
class Digest:
    """One morning's digest (the day is in UTC) as lines of plain text; each line begins with a heading."""

    day: date
    lines: tuple[str, ...]

    def text(self) -> str:
        """Return the digest as plain text, for a log or a chat."""
        return "\n".join([f"gpufare {self.day}", *self.lines])


def harmless(text: object, characters: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return text from a page or an error, shortened, with line breaks, markup, HTML, links and mentions made
    harmless."""
    shown = printable(str(text))
    cut = shown if len(shown) <= characters else shown[: characters - 1] + "…"
    return html.escape(cut.replace("://", ":∕∕").translate(_UNMARKED), quote=False)


def digest_of(home: Home, now: datetime) -> Digest:
    """Return the digest for the morning of ``now`` (UTC), from the published file and the record.

    Never raises: a part that fails becomes a line with its error.
    """
    now = now.astimezone(UTC)
    lines: list[str] = []
    for heading, part in _PARTS.items():
        try:
            lines += list(part(home, now))
        except Exception as problem:
            lines.append(f"{heading}: UNKNOWN, because of {type(problem).__name__}: {harmless(problem)}")
    return Digest(now.date(), tuple(lines))


def _publication_lines(home: Home, now: datetime) -> list[str]:
    try:
        with reader(home.published) as connection:
            return [_published(connection, now), *_moved(connection), *_held(connection)]
    except (NotPublishedError, DamagedError) as error:
        return [f"NOT PUBLISHED: {harmless(error)}"]
    except QueryError as error:
        other = "the published file was built by another version; `gpufare refresh` builds a new one"
        return [f"NOT READABLE: {other} ({harmless(error)})"]


def _published(connection: duckdb.DuckDBPyConnection, now: datetime) -> str:
    row = next(ask(connection, "FROM main.publication").dicts())
    at = f"{row['as_of_time'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if row["as_of_time"] > now:
        wrong = "the clock of this machine is wrong, or was when that was built"
        return f"PUBLISHED IN THE FUTURE: what people see is of {row['as_of_day']}, built {at}: {wrong}"
    if row["as_of_day"] < now.date():
        return f"NOT PUBLISHED TODAY: what people see is of {row['as_of_day']}, built {at}"
    return (
        f"Published: {at}; {row['offers_ranked']:,} of {row['offers_latest']:,} current offers are ranked, "
        f"from {row['sources_ranked']} of {row['sources']} sources"
    )


_CHANGED = """
SELECT gpu_id, price_kind, term_days, source, previous_usd_per_gpu_hour AS before, usd_per_gpu_hour AS after,
    change_share, count(*) OVER () AS changes
FROM main.price_changes
WHERE day = (SELECT as_of_day FROM main.publication) AND change = ?
ORDER BY abs(change_share) DESC, gpu_id, source, price_kind, term_days
LIMIT ?
"""

_LOST = """
SELECT source, lost
FROM main.capture_outcomes
WHERE day = (SELECT as_of_day FROM main.publication) AND stands AND lost IS NOT NULL
ORDER BY source
"""

_CHEAPEST_MOVED = """
WITH _first AS (
    SELECT
        h.day, h.workload, gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu, h.gpu_count, h.source,
        h.total_usd
    FROM main.ranking_history AS h
    JOIN main.gpus AS g USING (gpu_id)
    WHERE h.objective = 'cost' AND h.price_kind = 'on_demand' AND h.rank = 1
),

_before AS (
    FROM _first
    WHERE day = (SELECT max(day) FROM _first WHERE day < (SELECT as_of_day FROM main.publication))
)

SELECT a.workload, a.gpu_count || ' x ' || a.gpu || ' at ' || a.source AS now,
    a.total_usd AS after, b.total_usd AS before, count(*) OVER () AS changes
FROM _first AS a
JOIN _before AS b USING (workload)
-- A source that failed today gives no news: neither its price nor the one that took its place.
JOIN main.source_health AS s ON s.source = a.source AND s.last_accepted_day = a.day
JOIN main.source_health AS t ON t.source = b.source AND t.last_accepted_day = a.day
WHERE a.day = (SELECT as_of_day FROM main.publication)
    AND (a.total_usd, a.gpu, a.gpu_count, a.source) <> (b.total_usd, b.gpu, b.gpu_count, b.source)
ORDER BY abs(a.total_usd / b.total_usd - 1) DESC, a.workload
LIMIT ?
"""

_EARLIER_DAYS = """
SELECT max(day)
FROM main.offers
WHERE day < (SELECT as_of_day FROM main.publication) AND source <> 'imported'
"""


def _moved(connection: duckdb.DuckDBPyConnection) -> list[str]:
    (earlier,) = ask(connection, _EARLIER_DAYS).rows[0]
    if earlier is None:
        return ["Moved: no earlier day to compare with"]
    moved, gone = (ask(connection, _CHANGED, [what, SHOWN]) for what in ("moved", "no_longer_listed"))
    prices = [(row["changes"], _price_moved(row)) for row in moved.dicts()]
    unlisted = [(row["changes"], f"{_named(row)} ({price_text(row['before'])})") for row in gone.dicts()]
    lost = list(ask(connection, _LOST).dicts())
    cheapest = [
        (row["changes"], f"{row['workload']} {_from_to(row)} USD ({harmless(row['now'])})")
        for row in ask(connection, _CHEAPEST_MOVED, [SHOWN]).dicts()
    ]
    return [
        f"Moved: {_largest(prices, 'prices') or 'no price changed'}",
        *([f"No longer listed: {_largest(unlisted, 'prices')}"] if unlisted else []),
        *([_vanished(lost)] if lost else []),
        f"Cheapest: {_largest(cheapest, 'workloads') or 'no winner changed'}",
    ]


def _vanished(lost: Sequence[dict[str, Any]]) -> str:
    told = [f"{row['source']}: {harmless(row['lost'])}" for row in lost[:SHOWN]]
    others = [row["source"] for row in lost[SHOWN:]]
    return f"Vanished: {'; '.join(told)}{_and_more(others)}"


def _and_more(others: Sequence[str]) -> str:
    return f"; and {len(others)} more: {', '.join(others)}" if others else ""


def _largest(changes: Sequence[tuple[int, str]], things: str) -> str:
    """Return the largest changes, preceded by the total number of changes if there are more."""
    of = f"{changes[0][0]} {things}, the largest changes: " if changes and changes[0][0] > SHOWN else ""
    return of + "; ".join(text for _, text in changes)


def _price_moved(row: dict[str, Any]) -> str:
    return f"{_named(row)} {_from_to(row)} ({row['change_share']:+.0%})"


def _named(row: dict[str, Any]) -> str:
    kind = row["price_kind"].replace("_", "-") + (f" {row['term_days']} d" if row["term_days"] else "")
    return f"{row['gpu_id']} {kind} at {row['source']}"


def _from_to(row: dict[str, Any]) -> str:
    return f"{price_text(row['before'])} → {price_text(row['after'])}"


_HELD = """
SELECT r.reason, any_value(h.sentence) AS sentence, count(*) AS rows,
    list(DISTINCT r.source ORDER BY r.source) AS sources
FROM main.rejects AS r
JOIN main.reject_reasons AS h USING (reason)
JOIN (SELECT source, max(day) AS day FROM main.capture_outcomes GROUP BY source) AS n USING (source, day)
WHERE h.held
GROUP BY r.reason
ORDER BY rows DESC, r.reason
"""

_NOT_RANKED = """
SELECT if(not_ranked_reason = 'flagged', flag_reason, not_ranked_reason) AS reason, count(*) AS rows,
    list(DISTINCT source ORDER BY source) AS sources
FROM main.offers_latest
WHERE not_ranked_reason IN ('price_outlier', 'price_odd_for_its_source', 'source_far_from_market')
    OR not_ranked_reason = 'flagged' AND list_contains(?::VARCHAR[], flag_reason)
GROUP BY ALL
ORDER BY rows DESC, reason
"""


def _held(connection: duckdb.DuckDBPyConnection) -> list[str]:
    held = [
        f"{row['rows']} at {_names(row['sources'])} by {row['reason']}: {row['sentence'].rstrip('.')}"
        for row in ask(connection, _HELD).dicts()
    ]
    far = [
        f"{row['rows']} at {_names(row['sources'])} by {row['reason']}"
        for row in ask(connection, _NOT_RANKED, [sorted(CONTRADICTIONS)]).dicts()
    ]
    lines = [f"Held: {'; '.join(held) or 'nothing'}"]
    return [*lines, f"Kept out of the rankings: {'; '.join(far)}"] if far else lines


def _names(sources: Sequence[str]) -> str:
    more = f" and {len(sources) - SHOWN} more" if len(sources) > SHOWN else ""
    return ", ".join(sources[:SHOWN]) + more


def _broke(home: Home, now: datetime) -> list[str]:
    """Return lines on sources, from the record, which is newer than the file after a failed publication."""
    states = list(source_states(home, now.date(), now=now).dicts())
    rows = [row for row in states if row["state"] not in FINE]
    never = [row["source"] for row in rows if row["state"] == NEVER_ASKED]
    broken = [row for row in rows if row["source"] not in never]
    named = [
        f"{row['source']} {row['state'].replace('_', ' ')}: {harmless(row['why'])}" for row in broken[:SHOWN]
    ]
    others = [row["source"] for row in broken[SHOWN:]]
    lines = [*_silence(states, now.date()), f"Broke: {'; '.join(named) or 'no source'}{_and_more(others)}"]
    return [*lines, f"Never asked: {_names(never)}"] if never else lines


def _silence(states: Sequence[dict[str, Any]], today: date) -> list[str]:
    """Return a line if no source gave prices today, although some were asked or were due."""
    if any(row["last_accepted_day"] == today for row in states):
        return []
    asked = [row["source"] for row in states if row["last_attempt_day"] == today and row["state"] not in FINE]
    if asked:
        return [f"NO PRICES TODAY: none of {len(asked)} sources gave any; see whether the network is down"]
    due = [row["source"] for row in states if row["state"] == "aging"]
    return [f"NOT ASKED TODAY: {_names(due)}; see whether the run began"] if due else []


def _clock(home: Home, now: datetime) -> list[str]:
    """Return a line if the clock was wrong when today's answers arrived."""
    problem = clock_problem(home, now.date())
    return [f"Clock: {problem}: {REMEDY}"] if problem else []


def _permissions(home: Home, now: datetime) -> list[str]:
    """Return a line if the permissions file is damaged."""
    problem = read_choices(home).problem
    return [f"Permissions: {harmless(problem, 2 * MAX_QUOTED_CHARACTERS)}"] if problem else []


def _incidents(home: Home, now: datetime) -> list[str]:
    """Return a line on the incidents of the last 24 hours."""
    try:
        kept = kept_incidents(home)
    except GpufareError as error:
        return [f"Incidents: none can be read: {harmless(error)}"]
    found = [each for each in reversed(kept) if each.at > now - timedelta(days=1)]
    told = (
        f"{harmless(each.path or each.source or each.kind)}: {harmless(each.reason)}; {harmless(each.remedy)}"
        for each in found[:SHOWN]
    )
    return [f"Incidents: {len(found)} in the last day. {' / '.join(told)}"] if found else []


def _replayed(home: Home, now: datetime) -> list[str]:
    archive = Archive(home.archive)
    newest = {name: archive.captures(name, now.date())[-1:] for name in configs()}
    found = [name for name, last in newest.items() for capture in last if capture.replayed_from is not None]
    what = "were replayed, so these are not live prices"
    return [f"SAMPLE PAGES: today's pages of {_names(found)} {what}"] if found else []


_PARTS: Mapping[str, Callable[[Home, datetime], Iterable[str]]] = {
    "Published": _publication_lines,
    "Clock": _clock,
    "Broke": _broke,
    "Permissions": _permissions,
    "Incidents": _incidents,
    "Pages": _replayed,
}
"""The parts of the digest, each under the heading of the line that is printed if the part fails."""
