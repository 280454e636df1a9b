"""A seller's other columns, as facts about the GPU. Columns are known by the words in their names and by
their units; remarks in free text are no facts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from pipeline.offers.gpu_matching.lexer import FORMS, MIB_PER_GIB

_PAIR = re.compile(r"\s*([A-Za-z][\w. ]*?)\s*=\s*(.*?)\s*")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)?)\s*(gib|gb|gi|g|mib|mb|mi|m|b|bytes)?", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_FORM_NAMES = frozenset({"socket", "form", "formfactor", "interface", "interconnect", "variant", "bus"})
_LABEL_NAMES = frozenset({"name", "model", "type", "accelerator", "gpu", "label", "description", "id"})
_SMALLEST_IN_MIB = 1000
_BYTES_PER_GIB = 1 << 30
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What the other columns say, one object per different set of columns. Memories are in GB (GiB where the
    unit is MiB): ``memory_gb`` per GPU, ``total_gb`` of all GPUs, ``loose_gb`` of a column that may be the
    host's."""

    memory_gb: float | None = None
    total_gb: float | None = None
    loose_gb: float | None = None
    forms: frozenset[str] = field(default_factory=frozenset)
    labels: tuple[str, ...] = ()
    gpu_count: float | None = None


NO_FACTS = Facts()


def _pairs(context: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"[;,]", context):
        match = _PAIR.fullmatch(part)
        if match:
            yield match[1], match[2]


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name)}


def _gigabytes(value: str, words: set[str]) -> float | None:
    """A memory in GB, or None where the value is not one number with an optional unit."""
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        return None
    number = float(match[1].replace(",", "."))
    unit = (match[2] or "").lower()
    if unit in {"b", "bytes"} or (not unit and "bytes" in words):
        return number / _BYTES_PER_GIB
    if unit:
        return number / MIB_PER_GIB if unit.startswith("m") else number
    if words & {"mib", "mb", "mi"}:
        return number / MIB_PER_GIB
    if words & {"gb", "gib", "gi"} or number < _SMALLEST_IN_MIB:
        return number
    return number / MIB_PER_GIB if number < _BYTES_PER_GIB else number / _BYTES_PER_GIB


def _is_gpu_memory(words: set[str]) -> bool:
    return "vram" in words or ("gpu" in words and bool(words & {"ram", "memory", "mem"}))


def facts(context: Mapping[str, str | float | Decimal] | str) -> Facts:
    """The facts in a seller's other columns: a mapping, or text of the form "key=value; key=value"."""
    if isinstance(context, str):
        return _facts(tuple(_pairs(context)))
    return _facts(tuple((name, str(value)) for name, value in context.items()))


@lru_cache(maxsize=_REMEMBERED)
def _facts(pairs: tuple[tuple[str, str], ...]) -> Facts:
    if not pairs:
        return NO_FACTS
    memory = total = loose = count = None
    forms: set[str] = set()
    labels: list[str] = []
    for name, value in pairs:
        words = _words(name)
        if "count" in words or words & {"num", "quantity", "qty"}:
            count = float(value) if value.replace(".", "", 1).isdigit() else count
        elif _is_gpu_memory(words) or words & {"memory", "ram", "size", "mem"}:
            size = _gigabytes(value, words)
            if "total" in words:
                total = size if _is_gpu_memory(words) else total
            elif _is_gpu_memory(words) or words >= {"size", "mi"} or words >= {"size", "mib"}:
                memory = size
            else:
                loose = size
        elif words & _FORM_NAMES:
            forms |= {FORMS[word] for word in re.split(r"[\s_\-]+", value.lower()) if word in FORMS}
        elif words & _LABEL_NAMES:
            labels.append(value)
    return Facts(memory, total, loose, frozenset(forms), tuple(labels), count)
