"""What a word of an answer means: a heading, a column, one of its values, a setting or a cost parameter."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pipeline.catalog.job_settings import job_settings
from pipeline.home.paths import CATALOG_DIR, SQL_DIR
from pipeline.questions.job import JobError

IN_TABLES = {
    "cheapest": "the pick that costs least, or next to nothing more with fewer doubts; pick has the rule",
    "value": "the best value: the pick with the lowest cost when your waiting counts, too; pick has the rule",
    "best value": "the pick with the lowest cost when your waiting counts, too; pick has the rule",
    "safest": "the pick on a company's own machine, sure to fit and to finish in time; pick has the rule",
    "all three": "the cheapest, the best value and the safest in one",
    "fastest": "the first of a ranking by time",
    "private": "a private owner's machine (tier_class community or marketplace): it may vanish",
    "resold": "a reseller's offer (tier_class resold): ask whose machine it is",
}
"""Words of a table for people that are no column, value or setting."""


def meanings(term: str, headings: Mapping[str, str]) -> list[str]:
    """Return what a term means, in a line per meaning. ``headings``: the headings of columns in tables for
    people, keyed by column. Raises JobError with the nearest terms for an unknown one."""
    known: dict[str, list[str]] = {}
    for name, text in _terms(headings):
        known.setdefault(_key(name), []).append(text)
    found = known.get(_key(term))
    if found is None:
        nearest = get_close_matches(_key(term), known, n=3)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "gpufare cheapest --help lists columns"
        raise JobError(f"nothing is called {term!r} in an answer; {hint}")
    return list(dict.fromkeys(found))


def columns_meanings(columns: Iterable[str]) -> dict[str, str]:
    """Return the first sentence of the meaning of some columns of published tables, keyed by column."""
    rows = {row["column"]: row["meaning"] for row in _rows(SQL_DIR / "schema" / "columns.csv")}
    return {column: _first_sentence(rows[column]) for column in columns if column in rows}


def _terms(headings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in IN_TABLES.items():
        yield name, f"{name} (in a ranking): {text}"
    for row in _rows(SQL_DIR / "schema" / "columns.csv"):
        if not row["meaning"]:
            continue
        column, heading = row["column"], headings.get(row["column"])
        shown = f"{heading} (column {column})" if heading else column
        unit = f", in {row['unit']}" if row["unit"] else ""
        text = f"{shown}{unit}: {row['meaning']}"
        values = row["allowed"].split("|") if row["allowed"] else []
        text += f" Values: {', '.join(values)}." if values else ""
        yield column, text
        if heading:
            yield heading, text
        for value in values:
            name, _, meaning = value.partition(" (")
            if meaning:
                yield name, f"{name} (a value of {column}): {meaning.removesuffix(')')}"
    for setting in job_settings().values():
        yield setting.setting, f"{setting.option} (an option): {setting.meaning}"
    for row in _rows(CATALOG_DIR / "cost_parameters.csv"):
        where = "" if row["applies_to"] == "default" else f" for {row['applies_to']}"
        yield (
            row["name"],
            f"{row['name']} (a cost parameter, {row['value']} {row['unit']}{where}): {row['note']}",
        )


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
