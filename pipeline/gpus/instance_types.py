"""Machine names: catalog/instance_types.csv contains one row per family of instance types.

``pattern`` is a regular expression for the lower-case name with a single dash for every separator except
dots. ``gpu`` is the equivalent GPU label, in which ``{gpu}`` is a group of the pattern. ``gpu_count`` is a
number, a group's name, a group divided by a number (``cpus/24``; a result like 2.5 is not a count), or
``size``, which is looked up in ``sizes`` ("xlarge:1 48xlarge:8 large:1/8"; a fraction is a share of one GPU).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import isclose
from typing import Annotated

from pydantic import BeforeValidator

from pipeline.catalog.tables import catalog_table

_PREFIXES = ("ml.", "db.", "virtual-machines-", "standard-", "standard")
_GROUP = re.compile(r"\([^()]*\)")
_LETTER = re.compile(r"[a-z](?![?*{])")
_GROUP_NAME = re.compile(r"\(\?P<\w+>")


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A machine: the GPU label to parse instead of its name, its number of GPUs, and its total GPU memory in
    GB. The number and the memory are None if the name does not state them."""

    gpu_label: str
    gpu_count: float | None
    total_memory_gb: float | None


def _sizes(text: str) -> dict[str, float]:
    return {name: _number(count) for name, count in (size.split(":") for size in text.split())}


def _number(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return float(numerator) / float(denominator or 1)


@dataclass(frozen=True, slots=True)
class Family:
    """One row of instance_types.csv; ``provider`` lists providers, separated by |, or is '' for all."""

    pattern: re.Pattern[str]
    provider: str = ""
    gpu: str = ""
    gpu_count: str = ""
    sizes: Annotated[Mapping[str, float], BeforeValidator(_sizes)] = field(default_factory=dict)

    def read(self, match: re.Match[str]) -> InstanceType:
        """Return the machine whose name the pattern matched."""
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
        # Any other count shows that the divisor does not apply to this machine.
        is_part = 0 < count < 1 and isclose(1 / count, round(1 / count))
        return count if is_part or count.is_integer() else None


@cache
def _rows() -> list[Family]:
    return catalog_table("instance_types.csv", Family)


def _first_letter(pattern: str) -> str:
    """Return the letter with which every name that matches a pattern begins, or "" if there is none."""
    outside = pattern
    while (shorter := _GROUP.sub("", outside)) != outside:
        outside = shorter
    return pattern[0] if _LETTER.match(pattern) and "|" not in outside else ""


@dataclass(frozen=True)
class _Families:
    """Some families, and one pattern that matches any name in them: a single test rejects most labels."""

    families: tuple[Family, ...]

    @cached_property
    def any_name(self) -> re.Pattern[str]:
        return re.compile("|".join(_GROUP_NAME.sub("(?:", row.pattern.pattern) for row in self.families))


@cache
def _families(provider: str) -> Mapping[str, _Families]:
    """Return a provider's families by the first letter of a name, "" for any other. The provider "" stands
    for every provider."""
    own = [row for row in _rows() if provider in row.provider.split("|")]
    rows = [(_first_letter(row.pattern.pattern), row) for row in own]
    return {
        letter: _Families(tuple(row for first, row in rows if first in ("", letter)))
        for letter in {"", *(first for first, _ in rows)}
    }


def _find(name: str, provider: str) -> InstanceType | None:
    for key in (provider, ""):
        by_letter = _families(key)
        possible = by_letter.get(name[:1]) or by_letter[""]
        if possible.any_name.fullmatch(name):
            for family in possible.families:
                if match := family.pattern.fullmatch(name):
                    return family.read(match)
    return None


def find_instance_type(name: str, provider: str) -> InstanceType | None:
    """Return the instance type with the given name, or None. ``provider`` is a ``provider_key``, or "".
    Prefixes such as Azure's "Standard_" are optional, except in the names of some CPU machines."""
    canonical = name.lower().replace(" ", "-").replace("_", "-").replace("/", "-")
    if "--" in canonical:
        canonical = "-".join(filter(None, canonical.split("-")))
    if canonical.startswith(_PREFIXES):
        prefix = next(filter(canonical.startswith, _PREFIXES))
        return _find(canonical.removeprefix(prefix), provider) or _find(canonical, provider)
    return _find(canonical, provider)
