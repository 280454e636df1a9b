"""The kept corrections from a user's own measured runs: rows of the table own_corrections, in the cache.

They are learned by ``pipeline.model.corrections``, which is also where the runs are read.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from pipeline.home.disk import replacing
from pipeline.home.paths import Home


@dataclass(frozen=True, slots=True)
class OwnCorrections:
    """The rows of own_corrections, and a sentence for each run that could not be used; ``learned_from`` is a
    hash of all that they depend on."""

    learned_from: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_kept(home: Home) -> OwnCorrections:
    """Return the kept corrections; none if the file is missing or damaged."""
    try:
        found = json.loads(home.own_corrections.read_bytes())
        return OwnCorrections(found["learned_from"], found["rows"], found["problems"])
    except (OSError, ValueError, LookupError, TypeError):
        return OwnCorrections()


def keep(home: Home, found: OwnCorrections) -> None:
    """Keep corrections in place of earlier ones. Raises UnwritableError."""
    text = json.dumps({name: getattr(found, name) for name in OwnCorrections.__slots__})
    with replacing(home.own_corrections) as temporary:
        temporary.write_text(text, encoding="utf-8")
