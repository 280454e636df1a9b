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

from pipeline.offers.gpu_matching import catalog

_PREFIXES = ("ml.", "db.", "virtual-machines-", "standard-", "standard")


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
    providers: frozenset[str]
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


def read_family(row: Mapping[str, str]) -> _Family:
    """One row of instance_types.csv. Raises LabelCatalogError where it cannot be used."""
    try:
        return _Family(
            providers=frozenset(row["provider"].split("|")) - {""},
            pattern=re.compile(row["pattern"]),
            gpu=row["gpu"],
            gpu_count=row["gpu_count"],
            sizes={name: _number(n) for name, n in (pair.split(":") for pair in row["sizes"].split())},
        )
    except (re.error, ValueError) as error:
        raise catalog.LabelCatalogError(f"instance_types.csv, pattern {row['pattern']!r}: {error}") from error


class _Index:
    """Families behind one alternation per first character, so that a name of none is found out at once."""

    def __init__(self, families: list[_Family]) -> None:
        self._families = families
        self._by_first: dict[str, tuple[re.Pattern[str], list[_Family]]] = {}

    def _starting_with(self, first: str) -> tuple[re.Pattern[str], list[_Family]]:
        if first not in self._by_first:
            families = [f for f in self._families if first in (_first_characters(f.pattern.pattern) or first)]
            alternatives = "|".join(f"(?:{_anonymous(family.pattern.pattern)})" for family in families)
            self._by_first[first] = re.compile(alternatives), families
        return self._by_first[first]

    def find(self, name: str) -> Instance | None:
        """The family of a name in canonical form."""
        any_family, families = self._starting_with(name[:1])
        if not any_family.fullmatch(name):
            return None
        for family in families:
            match = family.pattern.fullmatch(name)
            if match:
                return family.read(match)
        return None


def _first_characters(pattern: str) -> frozenset[str] | None:
    """The characters that names of a pattern begin with, where it begins with one of them or with a number;
    None where that is not plain to see."""
    start = re.sub(r"^\(\?(?:P<\w+>|:)\\d\+\)", r"\\d", pattern)
    match = re.match(r"(?:([a-z])|\[([a-z]+)\]|(\\d\+?))(?![?*{|])", start)
    if match is None:
        return None
    return frozenset(match[1] or match[2] or "0123456789")


def _anonymous(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


@cache
def _families() -> tuple[_Family, ...]:
    return tuple(read_family(row) for row in catalog.rows("instance_types.csv"))


@cache
def _index(provider: str) -> _Index:
    """The families of one provider and those that hold everywhere."""
    own = [family for family in _families() if provider and provider in family.providers]
    if provider and not own:
        return _index("")
    return _Index(own + [family for family in _families() if not family.providers])


def find(name: str, provider: str) -> Instance | None:
    """The machine family that a name belongs to, or None. SageMaker's "ml." and Azure's "Standard_" are no
    part of a family's name, except where only they tell a CPU machine."""
    canonical = name.lower().replace(" ", "-").replace("_", "-").replace("/", "-")
    if "--" in canonical:
        canonical = "-".join(filter(None, canonical.split("-")))
    if canonical.startswith(_PREFIXES):
        short = _index(provider).find(canonical[len(next(filter(canonical.startswith, _PREFIXES))) :])
        if short is not None:
            return short
    return _index(provider).find(canonical)
