"""The morning's digest: what broke, with what stands in for it and what to do; then what was published, and
what changed.

The digest's sentences are made here; the command, the webhook and Dagster only lay them out. Text from price
pages is made harmless first, since a chat and Dagster render text as Markdown or HTML.
"""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb

from pipeline.capture.archive import Archive
from pipeline.capture.permissions import read_choices
from pipeline.catalog.source_config import configs
from pipeline.contracts.reject_reasons import CONTRADICTIONS
from pipeline.health.source_states import SourceState, explained_states
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.questions.numbers import price_text
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.clock import REMEDY, clock_problem
from pipeline.warehouse.query import DamagedError, NotPublishedError, QueryError, ask, reader

SHOWN = 5
"""The maximum number of sources, prices or incidents that are listed; the others are only counted."""

SHOWN_SOURCES = 10
"""The maximum number of broken sources that are explained; the others are only named."""

MAX_QUOTED_CHARACTERS = 160

FINE = frozenset({"current", "disabled", "needs_key", "needs_permission"})
"""Source states that need no action."""

NEVER_ASKED = "not_asked"

_UNMARKED = str.maketrans({"[": "(", "]": ")", "`": "'", "*": "∗", "~": "∼", "|": "¦", "@": "＠", "\\": "∖"})


_BARE_ADDRESS = re.compile(r"\bwww\.", re.IGNORECASE)

NOTHING_BROKE = "nothing"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that broke: what happened to which ``subject`` and ``why``, what stands in ``meanwhile`` and
    until when, and the ``step`` that helps. All but the subject and ``what`` may be empty."""

    subject: str
    what: str
    why: str = ""
    meanwhile: str = ""
    step: str = ""

    def lines(self) -> list[str]:
        """Return a line of plain text, and an indented one on what stands in and what helps."""
        happened = f"{self.subject}: {self.what}{f': {self.why}' if self.why else ''}"
        helps = f"-> {self.step}" if self.step else ""
        more = " ".join(filter(None, [f"{self.meanwhile}." if self.meanwhile else "", helps]))
        return [happened, *([f"  {more}"] if more else [])]


@dataclass(frozen=True, slots=True)
class Digest:
    """One morning's digest (the day is in UTC). Each line on what was published or changed begins with a
    heading."""

    day: date
    problems: list[Problem] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @property
    def broke(self) -> str:
        """The names of what broke, in one line."""
        return _names([each.subject for each in self.problems]) or NOTHING_BROKE

    def lines(self) -> list[str]:
        """Return what broke, what was published and what changed as lines of plain text."""
        problems = [line for each in self.problems for line in each.lines()]
        return [f"BROKE: {self.broke}", *problems, *self.published, *self.changed]

    def text(self) -> str:
        """Return the digest as plain text, for a log or a chat."""
        return "\n".join([f"gpufare {self.day}", *self.lines()])


def harmless(text: object, characters: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return text from a page or an error, shortened, with line breaks, markup, HTML, links and mentions made
    harmless."""
    shown = printable(str(text))
    cut = shown if len(shown) <= characters else shown[: characters - 1] + "…"
    unlinked = _BARE_ADDRESS.sub("www\N{ONE DOT LEADER}", cut.replace("://", ":∕∕"))
    return html.escape(unlinked.translate(_UNMARKED), quote=False)


def digest_of(home: Home, now: datetime) -> Digest:
    """Return the digest for the morning of ``now`` (UTC), from the published file and the record.

    Never raises: a part that fails becomes a problem with its error.
    """
    now = now.astimezone(UTC)
    digest = Digest(now.date())
    for subject, part in _PARTS.items():
        try:
            part(digest, home, now)
        except Exception as problem:
            digest.problems.append(
                Problem(subject, "unknown", f"{type(problem).__name__}: {harmless(problem)}")
            )
    return digest


_REFRESH = "gpufare refresh"


def _publication(digest: Digest, home: Home, now: datetime) -> None:
    try:
        with reader(home.published) as connection:
            row = next(ask(connection, "FROM main.publication").dicts())
            digest.problems.extend(_out_of_date(row, now))
            digest.published.append(_published(row))
            digest.changed.extend([*_moved(connection), *_held(connection)])
    except (NotPublishedError, DamagedError) as error:
        digest.problems.append(Problem("publication", "NOT PUBLISHED", harmless(error), step=_REFRESH))
    except QueryError as error:
        other = f"the published file was built by another version ({harmless(error)})"
        digest.problems.append(Problem("publication", "NOT READABLE", other, step=_REFRESH))


def _out_of_date(row: Mapping[str, Any], now: datetime) -> list[Problem]:
    """Return a problem if the published file is not of the morning of ``now``."""
    built = f"people see the file of {row['as_of_day']}, built {_time_text(row['as_of_time'])}"
    if row["as_of_time"] > now:
        wrong = "the clock of this machine is wrong, or was when that was built"
        return [Problem("publication", "PUBLISHED IN THE FUTURE", wrong, built, REMEDY)]
    if row["as_of_day"] < now.date():
        return [Problem("publication", "NOT PUBLISHED TODAY", "", built, _REFRESH)]
    return []


def _time_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _published(row: Mapping[str, Any]) -> str:
    return (
        f"Published: {_time_text(row['as_of_time'])}; {row['offers_ranked']:,} of {row['offers_latest']:,} "
        f"current offers are ranked, from {row['sources_ranked']} of {row['sources']} sources"
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
    verdict = "; compare with the page, then gpufare confirm SOURCE or gpufare refuse SOURCE" if held else ""
    lines = [f"Held: {'; '.join(held) or 'nothing'}{verdict}"]
    return [*lines, f"Kept out of the rankings: {'; '.join(far)}"] if far else lines


def _names(sources: Sequence[str]) -> str:
    more = f" and {len(sources) - SHOWN} more" if len(sources) > SHOWN else ""
    return ", ".join(sources[:SHOWN]) + more


def _sources(digest: Digest, home: Home, now: datetime) -> None:
    """Add the broken sources, from the record, which is newer than the file after a failed publication."""
    states = explained_states(home, now.date(), now=now)
    found = [state for state in states if state.row["state"] not in FINE]
    never = [state.row["source"] for state in found if state.row["state"] == NEVER_ASKED]
    broken = [state for state in found if state.row["state"] != NEVER_ASKED]
    digest.problems.extend(_silence([state.row for state in states], now.date()))
    digest.problems.extend(_source_problem(state) for state in broken[:SHOWN_SOURCES])
    if others := [state.row["source"] for state in broken[SHOWN_SOURCES:]]:
        digest.problems.append(Problem(f"{len(others)} more", ", ".join(others), step="gpufare sources"))
    if never:
        digest.published.append(f"Never asked: {_names(never)}")


def _source_problem(state: SourceState) -> Problem:
    why = harmless(state.reason) if state.reason else ""
    return Problem(state.row["source"], harmless(state.what), why, state.prices, state.next_step)


def _silence(rows: Sequence[Mapping[str, Any]], today: date) -> list[Problem]:
    """Return a problem if no source gave prices today, although some were asked or were due."""
    if any(row["last_accepted_day"] == today for row in rows):
        return []
    asked = [row["source"] for row in rows if row["last_attempt_day"] == today and row["state"] not in FINE]
    if asked:
        none = f"NO PRICES TODAY: none of {len(asked)} sources gave any"
        return [Problem("all sources", none, step="see whether the network is down: gpufare doctor")]
    due = [row["source"] for row in rows if row["state"] == "aging"]
    begun = f"see whether the run began; {_REFRESH}"
    return [Problem("all sources", f"NOT ASKED TODAY: {_names(due)}", step=begun)] if due else []


def _clock(digest: Digest, home: Home, now: datetime) -> None:
    """Add a problem if the clock was wrong when today's answers arrived."""
    if problem := clock_problem(home, now.date()):
        digest.problems.append(Problem("clock", problem, step=REMEDY))


def _permissions(digest: Digest, home: Home, now: datetime) -> None:
    """Add a problem if the permissions file is damaged."""
    if problem := read_choices(home).problem:
        digest.problems.append(Problem("permissions", harmless(problem, 2 * MAX_QUOTED_CHARACTERS)))


def _incidents(digest: Digest, home: Home, now: datetime) -> None:
    """Add the incidents of the last 24 hours."""
    found = [each for each in reversed(kept_incidents(home)) if each.at > now - timedelta(days=1)]
    for each in found[:SHOWN]:
        subject = harmless(each.path or each.source or each.kind)
        what = each.kind.sentence.rstrip(".")
        digest.problems.append(Problem(subject, what, harmless(each.reason), step=harmless(each.remedy)))
    if others := found[SHOWN:]:
        step = 'gpufare sql "FROM incidents"'
        digest.problems.append(Problem(f"{len(others)} more", "incidents in the last day", step=step))


def _replayed(digest: Digest, home: Home, now: datetime) -> None:
    archive = Archive(home.archive)
    newest = {name: archive.captures(name, now.date())[-1:] for name in configs()}
    found = [name for name, last in newest.items() for capture in last if capture.replayed_from is not None]
    if found:
        what = "were replayed, so these are not live prices"
        digest.published.append(f"SAMPLE PAGES: today's pages of {_names(found)} {what}")


_PARTS: Mapping[str, Callable[[Digest, Home, datetime], None]] = {
    "publication": _publication,
    "sources": _sources,
    "clock": _clock,
    "permissions": _permissions,
    "incidents": _incidents,
    "pages": _replayed,
}
"""The parts of the digest, each with the subject of the problem that is added if the part fails."""
