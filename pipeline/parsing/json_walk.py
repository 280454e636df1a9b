"""Nodes anywhere in a JSON-LD document: pages nest them at different depths."""

from collections.abc import Iterator
from typing import Any


def json_ld_nodes(document: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a type of schema.org, such as ``Offer``, each before the nodes inside it."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            kinds = value.get("@type")
            if kind in (kinds if isinstance(kinds, list) else [kinds]):
                yield value
            waiting.extend(reversed(value.values()))
