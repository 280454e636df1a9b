"""Answers that differ from a sample in one place, and what their readers make of them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pipeline.contracts.listing import Answer, SourceChangedError
from tests.sources.helpers import OBSERVED_AT, answer, page, read

GONE = object()
"""Stands for the value of a field that is not there."""

LABEL_AND_PRICE = "raw_label native_price"

Cases = Iterable[tuple[Any, Sequence[Any]]]
"""Changes, each with the outcome that it must have."""


def outcome(source: str, *answers: Any, columns: str = LABEL_AND_PRICE) -> list[Any]:
    """The listings that a reader makes of answers (some of their columns), then its rejects' reasons.

    One column stands by itself, several are a tuple; exact numbers are texts: 2.50 is "2.5". A source
    that has changed is one text.
    """
    made = [body if isinstance(body, Answer) else answer(body) for body in answers]
    try:
        listings, rejects = read(source, *made)
    except SourceChangedError as error:
        return ["changed: " + str(error).removeprefix(f"{made[0].url}: ").removeprefix(f"{source}: ")]
    rows = [tuple(_plain(getattr(row, name)) for name in columns.split()) for row in listings]
    return [row if len(row) > 1 else row[0] for row in rows] + [str(reject.reason) for reject in rejects]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if isinstance(value, StrEnum) else value


def misread(
    source: str, made: Callable[[Any], Any], cases: Cases, columns: str = LABEL_AND_PRICE
) -> list[tuple[Any, list[Any]]]:
    """The changes that have another outcome than theirs, with the outcome that they have.

    ``made`` turns a change into an answer, or into a tuple of several.
    """
    wrong = []
    for change, expected in cases:
        answers = made(change)
        found = outcome(source, *(answers if isinstance(answers, tuple) else (answers,)), columns=columns)
        if found != list(expected):
            wrong.append((change, found))
    return wrong


def edited(source: str, name: str, *changes: tuple[str, str], times: int = -1) -> str:
    """A sample page with texts replaced, each of which must be on it."""
    text = page(source, name)
    for old, new in changes:
        assert old in text, f"{old!r} is not on the page {name} of {source}"
        text = text.replace(old, new, times)
    return text


def sample_row(source: str, name: str, *path: str | int) -> Any:
    """The part of a JSON sample under a path of fields and places."""
    found = json.loads(page(source, name))
    for step in path:
        found = found[step]
    return found


def changed(row: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a row with other fields; ``prices.0.hourly`` is a field inside of others."""
    copy = deepcopy(dict(row))
    for name, value in change.items():
        *outer, last = name.split(".")
        place: Any = copy
        for field in outer:
            place = place[int(field) if isinstance(place, list) else field]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return copy


def each(changes: Iterable[Any], *expected: Any) -> list[tuple[Any, Sequence[Any]]]:
    """Cases of several changes with one outcome."""
    return [(change, expected) for change in changes]


def at_six(day: date) -> datetime:
    """The time of an answer of a day."""
    return datetime.combine(day, time(6), OBSERVED_AT.tzinfo)


def flight(text: str, piece: int = 90) -> str:
    """A page with a text as the data of its scripts, in pieces that end anywhere."""
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    return "".join(f"<script>self.__next_f.push([1,{json.dumps(part)}])</script>" for part in pieces)
