"""JSON answers that carry a list of objects, in their envelope or bare, and the objects inside those."""

from collections.abc import Mapping
from typing import Any

from pipeline.contracts.listing import Answer, SourceChangedError


def items_of(answer: Answer, *names: str) -> list[dict[str, Any]]:
    """The objects under the one of ``names`` that the answer has, or the answer itself if it is a list.

    Raises SourceChangedError when the answer is not JSON or holds no such list.
    """
    body = answer.json()
    if isinstance(body, dict):
        held = [body[name] for name in names if name in body]
        body = held[0] if len(held) == 1 else None
    if not isinstance(body, list):
        raise SourceChangedError(f"{answer.url}: the answer has no list under {' or '.join(names)}")
    objects = [item for item in body if isinstance(item, dict)]
    if body and not objects:
        raise SourceChangedError(f"{answer.url}: the list under {' or '.join(names)} is not one of objects")
    return objects


def object_in(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name; an empty one where there is none or something else stands there."""
    held = item.get(name)
    return held if isinstance(held, dict) else {}


def objects_in(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of the list under a name; what is no object there holds nothing to read."""
    held = item.get(name)
    return [part for part in held if isinstance(part, dict)] if isinstance(held, list) else []
