"""Objects found anywhere in a JSON value: a page decides how deep it nests them."""

from collections.abc import Iterator
from typing import Any


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON value, in the order of its text, an outer one before those in it."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def json_ld_nodes(value: Any, kind: str) -> Iterator[dict[str, Any]]:
    """The nodes of a type of schema.org, such as ``Offer``, inside a JSON-LD document."""
    for node in objects_in(value):
        kinds = node.get("@type")
        if kind in (kinds if isinstance(kinds, list) else [kinds]):
            yield node
