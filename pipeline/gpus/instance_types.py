"""Machine names: catalog/instance_types.csv has one row per family of instance types.

``pattern`` is a regular expression over the name in lower case, with a single dash for every separator but
dots. ``gpu`` is the equivalent GPU label, in which ``{gpu}`` is a group of the pattern. ``gpu_count`` is a
number, the name of a group, a group divided by a number (``cpus/24``; no count where that is 2.5), or
``size``, which is looked up in ``sizes`` ("xlarge:1 48xlarge:8 large:1/8"; a fraction is a share of one GPU).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import isclose

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows

_PREFIXES = ("ml.", "db.", "virtual-machines-", "standard-", "standard")


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A machine: the GPU label to parse in its place, its number of GPUs (None: the name does not say), and
    the GPU memory of the whole machine in GB where the name states it."""

    gpu_label: str
    gpu_count: float | None
    total_memory_gb: float | None


@dataclass(frozen=True, slots=True)
class _Family:
    providers: frozenset[str]
    pattern: re.Pattern[str]
    gpu: str
    gpu_count: str
    sizes: Mapping[str, float]

    def read(self, match: re.Match[str]) -> InstanceType:
        groups = {name: value or "" for name, value in match.groupdict().items()}
        memory = groups.get("total_memory")
        return InstanceType(
            gpu_label=self.gpu.format_map(groups),
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
        count = float(groups.get(name, name) or "1") / float(divisor or 1)
        # Neither a whole number nor one part of a GPU: then the divisor is not that of this machine.
        is_part = 0 < count < 1 and isclose(1 / count, round(1 / count))
        return count if is_part or count.is_integer() else None


def _number(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return float(numerator) / float(denominator or 1)


def read_family(row: Mapping[str, str]) -> _Family:
    """One row of instance_types.csv. Raises CatalogError if it is malformed."""
    try:
        return _Family(
            providers=frozenset(row["provider"].split("|")) - {""},
            pattern=re.compile(row["pattern"]),
            gpu=row["gpu"],
            gpu_count=row["gpu_count"],
            sizes={name: _number(n) for name, n in (pair.split(":") for pair in row["sizes"].split())},
        )
    except (re.error, ValueError) as error:
        raise CatalogError(f"instance_types.csv, pattern {row['pattern']!r}: {error}") from error


class _Index:
    """Families by the first character of their names. One alternation per character rejects most other labels
    in a single match."""

    def __init__(self, families: list[_Family]) -> None:
        self._families = families
        self._by_first: dict[str, tuple[re.Pattern[str], list[_Family]]] = {}

    def _starting_with(self, first: str) -> tuple[re.Pattern[str], list[_Family]]:
        if first not in self._by_first:
            families = [f for f in self._families if first in (_first_characters(f.pattern.pattern) or first)]
            alternatives = "|".join(f"(?:{_anonymous(family.pattern.pattern)})" for family in families)
            self._by_first[first] = re.compile(alternatives), families
        return self._by_first[first]

    def find(self, name: str) -> InstanceType | None:
        """The instance type of a name in canonical form, or None."""
        any_family, families = self._starting_with(name[:1])
        if not any_family.fullmatch(name):
            return None
        for family in families:
            match = family.pattern.fullmatch(name)
            if match:
                return family.read(match)
        return None


def _first_characters(pattern: str) -> frozenset[str] | None:
    """The characters that a match of the pattern can begin with; None where the pattern does not begin with
    a letter, a class of letters or a number."""
    start = re.sub(r"^\(\?(?:P<\w+>|:)\\d\+\)", r"\\d", pattern)
    match = re.match(r"(?:([a-z])|\[([a-z]+)\]|(\\d\+?))(?![?*{|])", start)
    if match is None:
        return None
    return frozenset(match[1] or match[2] or "0123456789")


def _anonymous(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


@cache
def _families() -> tuple[_Family, ...]:
    return tuple(read_family(row) for row in catalog_rows("instance_types.csv"))


@cache
def _index(provider: str) -> _Index:
    """The families of one provider, before those of every provider."""
    own = [family for family in _families() if provider in family.providers]
    if provider and not own:
        return _index("")
    return _Index(own + [family for family in _families() if not family.providers])


def find_instance_type(name: str, provider: str) -> InstanceType | None:
    """The instance type of that name, or None. ``provider`` is a key of the tables, or "". Prefixes such as
    Azure's "Standard_" are optional, except in the names of some CPU machines."""
    canonical = name.lower().replace(" ", "-").replace("_", "-").replace("/", "-")
    if "--" in canonical:
        canonical = "-".join(filter(None, canonical.split("-")))
    index = _index(provider)
    if canonical.startswith(_PREFIXES):
        prefix = next(filter(canonical.startswith, _PREFIXES))
        return index.find(canonical.removeprefix(prefix)) or index.find(canonical)
    return index.find(canonical)
