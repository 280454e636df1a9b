"""Machine names: catalog/instance_types.csv holds one row per family of names.

``pattern`` is a regular expression over the name in lower case with single dashes for its separators
(dots stay); ``gpu`` is the label that the name stands for, with ``{gpu}`` or ``{memory}`` taken from the
pattern; ``gpu_count`` is a number, ``n`` (the group of that name), ``cpus/24`` (the group divided) or
``size``, looked up in ``sizes`` ("xlarge:1 48xlarge:8"; fractions are shares of one GPU).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pipeline.offers.labels import catalog

_SEPARATORS = re.compile(r"[\s_\-/]+")
_MAX_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Instance:
    """What a machine name stands for: a label to read, and how many GPUs (None: the name does not say).
    ``total_memory_gb`` is the GPU memory of the whole machine where the name gives it."""

    family: str
    label: str
    gpu_count: float | None
    total_memory_gb: float | None


@dataclass(frozen=True, slots=True)
class _Family:
    provider: str
    pattern: re.Pattern[str]
    gpu: str
    gpu_count: str
    sizes: Mapping[str, float]

    def read(self, match: re.Match[str]) -> Instance:
        groups = {name: value or "" for name, value in match.groupdict().items()}
        memory = groups.get("total_memory")
        return Instance(
            family=self.gpu,
            label=self.gpu.format_map(groups),
            gpu_count=self._count(groups),
            total_memory_gb=float(memory) if memory else None,
        )

    def _count(self, groups: Mapping[str, str]) -> float | None:
        rule = self.gpu_count
        if not rule:
            return None
        if rule == "size":
            return self.sizes.get(groups["size"])
        name, _, divisor = rule.partition("/")
        value = groups.get(name, name) or "1"
        return float(value) / float(divisor or 1)


def _number(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return float(numerator) / float(denominator or 1)


def _family(row: Mapping[str, str]) -> _Family:
    try:
        return _Family(
            provider=row["provider"],
            pattern=re.compile(row["pattern"]),
            gpu=row["gpu"],
            gpu_count=row["gpu_count"],
            sizes={name: _number(n) for name, n in (pair.split(":") for pair in row["sizes"].split())},
        )
    except (re.error, ValueError) as error:
        raise catalog.LabelCatalogError(f"instance_types.csv, pattern {row['pattern']!r}: {error}") from error


class _Index:
    """All families behind one alternation, so that a name that is in none is found out at once."""

    def __init__(self, families: list[_Family]) -> None:
        self._families = families
        self._any = re.compile("|".join(f"(?:{_anonymous(f.pattern.pattern)})" for f in families))
        self._known: dict[str, Instance | None] = {}

    def find(self, name: str) -> Instance | None:
        try:
            return self._known[name]
        except KeyError:
            pass
        if len(self._known) > _MAX_REMEMBERED:
            self._known.clear()
        found = None
        if self._any.fullmatch(name):
            for family in self._families:
                match = family.pattern.fullmatch(name)
                if match:
                    found = family.read(match)
                    break
        self._known[name] = found
        return found


def _anonymous(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


@cache
def _index(provider: str) -> _Index:
    """The families of one provider and those that hold everywhere."""
    rows = [_family(row) for row in catalog.rows("instance_types.csv")]
    own = [family for family in rows if provider and family.provider == provider]
    return _Index(own + [family for family in rows if not family.provider])


def find(name: str, provider: str) -> Instance | None:
    """The machine family that a name belongs to, or None."""
    return _index(provider).find(_SEPARATORS.sub("-", name.strip().lower()))
