"""A ranking on one screen: what was asked in one line, and the picks as rows of the table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.catalog.job_settings import job_settings
from pipeline.questions.alternatives import alternatives, are_dearer
from pipeline.questions.job import Job
from pipeline.questions.numbers import amount_text
from pipeline.questions.reasons import kind_text
from pipeline.questions.recurring import kept_machines, recurring_lines
from pipeline.questions.session import Session
from pipeline.questions.sources_behind import replayed_sources
from pipeline.questions.words import (
    MIN_HOURS_IN_DAYS,
    PICKS,
    assumptions,
    interruptions_text,
    machine_lines,
    picks,
    price_doubts,
    ties,
    told_first,
    wait_lines,
    word,
)

_IN_TITLE = {"model", "method", "tokens", "examples", "tokens_per_example", "epochs", "kind", "max_hours"}
"""The settings that a title names in its own words."""

_SHORT_PICKS = {"cheapest": "cheapest", "best_value": "value", "safest": "safest"}


def title(job: Job, row: Mapping[str, Any]) -> str:
    """Return what was asked in one line; ``row``: the first row of the answer."""
    kinds = str(job["kind"] or job_settings()["kind"].default_value).replace(",", " or ")
    kind = "any kind of price" if kinds == "any" else kind_text(kinds)
    parts = [f"{row['model']} {row['method']}", f"{amount_text(row['tokens'])} tokens", kind]
    if math.isfinite(row["max_hours"]):
        parts.append(f"within {_time(row['max_hours'])}")
    parts += [
        f"{name.replace('_', ' ')} {'' if value is True else word(value)}".rstrip()
        for name, value in job.settings.items()
        if name not in _IN_TITLE and value is not False
    ]
    return ", ".join(parts)


def _time(hours: float) -> str:
    if hours >= MIN_HOURS_IN_DAYS:
        return f"{hours / 24:g} days"
    return f"{hours:g} hour{'' if hours == 1 else 's'}"


def pick_text(row: Mapping[str, Any]) -> str:
    """Return the rank of an answer with what it was picked as, such as "1 cheapest"."""
    picked = [_SHORT_PICKS[name] for name in PICKS if name in (row["pick"] or ())]
    names = "all three" if len(picked) == len(PICKS) else "+".join(picked)
    names = names or ("fastest" if _is_fastest(row) else "")
    return f"{row['rank']:>2} {names}".rstrip()


def picks_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows with those that are picked first, after the fastest of a ranking by time."""
    return sorted(rows, key=lambda row: (not _is_fastest(row), row["pick"] is None, row["rank"]))


def _is_fastest(row: Mapping[str, Any]) -> bool:
    return bool(row["objective"] == "time" and row["rank"] == 1)


def price_warnings(session: Session, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return warnings on the picks whose prices are older than the publication, or come from saved pages."""
    ((published_days,),) = session.ask("SELECT current_date - as_of_day FROM main.publication").rows
    replayed = replayed_sources(session.connection)
    for row in rows:
        if row["pick"] and (doubts := price_doubts(row, replayed, published_days)):
            yield f"CAREFUL: rank {row['rank']}: {'; '.join(doubts)}."


class Told(NamedTuple):
    """A sentence beside a ranking. Those of the highest ``weight`` give way first if there is too little
    room, and those of weight 0 never."""

    text: str
    weight: int


def told_beside(
    session: Session,
    job: Job,
    rows: Sequence[Mapping[str, Any]],
    shown: int,
    runs_per_year: int | None = None,
) -> list[Told]:
    """Return what to know before renting, beside a table of the first ``shown`` answers: a missed deadline,
    the cost of a year, quotes and own machines, what speaks for and against the picks, alternatives, and what
    was assumed. ``rows``: the first rows of ``cheapest_for``, with all picks. Raises JobError."""
    first = told_first(rows)
    spot = [f"Rank {first['rank']}: {interruptions_text(first)}"] if first["price_kind"] == "spot" else []
    year = []
    if runs_per_year is not None:
        year = recurring_lines(rows, kept_machines(session, job, runs_per_year), runs_per_year)
    dearer, others = are_dearer(rows), (alternatives(session, job, rows), 2)
    by_weight = [
        *([others] if dearer else []),
        (wait_lines(first), 0),
        (spot, 1),
        (year[:2], 0),
        (year[2:], 1),
        (machine_lines(job, session, shown), 0),
        (picks(rows, beside_table=True), 0),
        (ties(rows), 3),
        *([] if dearer else [others]),
        (list(price_warnings(session, rows)), 0),
        (assumptions(first, briefly=True), 4),
    ]
    return [Told(text, weight) for texts, weight in by_weight for text in texts]
