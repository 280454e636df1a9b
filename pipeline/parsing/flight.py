"""Data that a Next.js page contains for its own scripts: pieces of text pushed to ``__next_f``."""

import re
from collections.abc import Iterator
from typing import Any

from pipeline.contracts.listing import Answer, read_json

MAX_VALUE_CHARACTERS = 1_000_000
MAX_VALUES = 500
"""Limits far above any page's needs; without them, each parsed value would copy the rest of the text."""

_PIECE = re.compile(r'self\.__next_f\.push\(\[1,"((?:[^"\\]|\\.)*)"\]\)', re.DOTALL)


def flight_text(answer: Answer) -> str:
    """Return the pieces of a page's stream, joined and unescaped; a piece may end inside a word.

    An answer without pieces is taken to be part of a stream that was saved without its page. Raises
    SourceChangedError if the text cannot be read.
    """
    body = answer.text()
    escaped = "".join(_PIECE.findall(body)) or body.replace("\r", "").replace("\n", r"\n")
    if '\\"' not in escaped:
        return body
    try:
        return str(read_json(f'"{escaped}"', answer.url))
    except ValueError as error:
        raise answer.changed(f"the page's data cannot be read ({error})") from error


def objects_after(text: str, beginning: re.Pattern[str], answer: Answer) -> Iterator[Any]:
    """Yield the JSON value at each match of ``beginning`` in the text of a stream. Raises SourceChangedError
    if a value is not JSON, or if there are too many values."""
    for number, found in enumerate(beginning.finditer(text)):
        if number == MAX_VALUES:
            raise answer.changed(f"more than {MAX_VALUES} values in the page's data")
        start = found.start()
        try:
            yield read_json(text[start : start + MAX_VALUE_CHARACTERS], answer.url, beginning=True)
        except ValueError as error:
            at = text[start : start + 60]
            raise answer.changed(f"{at!r} is not a JSON value ({error})") from error
