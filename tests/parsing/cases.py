"""Tables of cases: what a function makes of each input, compared in one test that shows every difference."""

from collections.abc import Callable, Iterable
from typing import Any

from pipeline.contracts.listing import SourceChangedError
from pipeline.parsing.prices import RowError
from pipeline.parsing.text import UnreadableError


def outcome(read: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a function returns, or the message of the error that it raises, after a row's reason."""
    try:
        return read(*arguments, **named)
    except RowError as error:
        return f"{error.reason}: {error}"
    except (UnreadableError, SourceChangedError) as error:
        return str(error)


def wrong(read: Callable[..., Any], cases: Iterable[tuple[Any, Any]]) -> list[str]:
    """The cases (input, expected outcome) that a function gets wrong."""
    found = [(given, outcome(read, given), expected) for given, expected in cases]
    return [f"{given!r} gives {got!r}, not {expected!r}" for given, got, expected in found if got != expected]
