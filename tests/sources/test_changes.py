"""What one change of an answer makes of it: the tables in tests/sources/changes, one file per source.

A table changes one row of JSON (``row``: a file of the sample and the path of the row in it, or the row
itself; ``answer``, or ``answers`` if there are several, is what stands around it, with ROW in its place), or
one text of a sample page (``page`` and ``text``; ``within`` is what stands around it, with TEXT in its
place; without ``text`` a change is texts and what stands in their place, ``times`` times if not everywhere),
or gives whole answers. A case is an outcome and the changes that have it. An outcome is what
``edited_pages.outcome`` gives; of an edited page, what it gives instead of ``instead_of``, with all else as
it was, unless the page has changed. A field that is "gone" is not there. The answers are of the ``day``, if
one is given, and the data of a page's scripts if the table ``is_flight``.
"""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sources.edited_pages import (
    GONE,
    LABEL_AND_PRICE,
    at_six,
    changed,
    edited,
    flight,
    outcome,
    sample_row,
)
from tests.sources.helpers import answer, page

CHANGES = Path(__file__).parent / "changes"


def rows_of(expected: Any) -> list[Any]:
    return expected if isinstance(expected, list) else [expected]


def with_row(answer: Any, row: Any) -> Any:
    """The answer with the row in its place: a page as text, JSON as it is."""
    if isinstance(answer, str):
        text = row if isinstance(row, str) else json.dumps(row)
        return row if answer == "ROW" else answer.replace("ROW", text)
    if isinstance(answer, list):
        return [with_row(item, row) for item in answer]
    return (
        {name: with_row(value, row) for name, value in answer.items()} if isinstance(answer, dict) else answer
    )


def answers_of(source: str, table: dict[str, Any], change: Any) -> list[Any]:
    if "page" in table:
        edits = change if isinstance(change, dict) else {table["text"]: change}
        around = table.get("within", "TEXT")
        pairs = [tuple(around.replace("TEXT", text) for text in pair) for pair in edits.items()]
        return [edited(source, table["page"], *pairs, times=table.get("times", -1))]
    if isinstance(change, list):
        return change
    if isinstance(change, str):
        return [with_row(table["answer"], change)]
    row = table["row"]
    if isinstance(row, str):
        name, *path = row.split(" ")
        row = sample_row(source, name, *(int(step) if step.isdigit() else step for step in path))
    fields = {name: GONE if value == "gone" else value for name, value in change.items()}
    around = table.get("answers", [table.get("answer", ["ROW"])])
    return [with_row(answer, changed(row, fields)) for answer in around]


def as_text(row: Any) -> str:
    """A row of an outcome to compare: 2.50 is 2.5, and a list is as good as a tuple."""
    if isinstance(row, list | tuple):
        return "; ".join(map(as_text, row))
    if isinstance(row, dict):
        return str({name: as_text(value) for name, value in sorted(row.items())})
    is_number = isinstance(row, int | float | Decimal) and not isinstance(row, bool)
    return f"{float(row):.10g}" if is_number else str(row)


def wrong_cases(source: str, table: dict[str, Any]) -> list[str]:
    columns = table.get("columns", LABEL_AND_PRICE)
    usual: Counter[str] = Counter()
    if "page" in table:
        before = outcome(source, page(source, table["page"]), columns=columns)
        replaced = Counter(map(as_text, rows_of(table.get("instead_of", []))))
        usual = Counter(map(as_text, before)) - replaced
        assert replaced <= Counter(map(as_text, before)), table["instead_of"]
    wrong = []
    for expected, *changes in table["cases"]:
        is_refused = isinstance(expected, str) and expected.startswith("changed: ")
        wanted = Counter(map(as_text, rows_of(expected))) + (Counter() if is_refused else usual)
        for change in changes:
            answers = answers_of(source, table, change)
            if table.get("is_flight"):
                answers = [flight(text) for text in answers]
            if "day" in table:
                answers = [answer(body, observed_at=at_six(table["day"])) for body in answers]
            found = Counter(map(as_text, outcome(source, *answers, columns=columns)))
            if found != wanted:
                gives, lacks = (list(rows.elements()) for rows in (found - wanted, wanted - found))
                wrong.append(f"{table['rule']}: {change} gives {gives} and lacks {lacks}")
    return wrong


@pytest.mark.parametrize("source", sorted(path.stem for path in CHANGES.glob("*.yaml")))
def test_a_change_has_its_outcome(source: str) -> None:
    tables = yaml.safe_load((CHANGES / f"{source}.yaml").read_text(encoding="utf-8"))
    assert [text for table in tables for text in wrong_cases(source, table)] == []
