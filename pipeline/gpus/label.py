"""A seller's statements about a GPU: the parsed words of the label, and the columns beside the label."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, lru_cache

from pipeline.gpus import catalogue
from pipeline.gpus.catalogue import Accelerator, Spelling
from pipeline.gpus.tokens import (
    ASIDE_MARK,
    CACHE_SIZE,
    FORM_FACTORS,
    HOST_MARK,
    Kind,
    Token,
    gigabytes,
    split_words,
    tokens_of_word,
)
from pipeline.parsing.units import BYTES_PER_GIB

_UNITS = frozenset({"gb", "gib", "g", "gi", "go", "mb", "mib", "mo", "gbs"})
_LONGEST_NAME = 5
"""Number of words in the longest spelling of a model."""
_CODE = re.compile(r"[a-z]+\d+")
_HIGHEST_COUNT = 128
"""A larger number before "gpus" or "x" is not a count of GPUs."""


@dataclass(frozen=True, slots=True, eq=False)
class ParsedLabel:
    """What the words of a label state. Memory sizes are in GB, per GPU or for all GPUs together.

    ``models`` is empty if the label names no GPU. ``adjacent_memories`` are next to the model's name; the
    ``other_memories`` can be the host's if ``mentions_host`` is True. ``bare_numbers`` have no unit and are
    before the model's name or adjacent to it. ``slice_gb`` and ``compute_slices`` describe a MIG or vGPU
    profile. ``conflict`` is True if the names in the label have no model in common, or if another vendor's
    brand or another accelerator is among them. ``is_weak`` is True if all these names are also ordinary
    words, and ``is_bare_code`` if they are codes without a size: "M4" is also a chip of Apple's.
    ``has_unknown_words`` is True if a word is left that can change the card. ``gpu_ids`` are the cards that
    the names mean; if it is empty, all those of the models."""

    models: tuple[str, ...] = ()
    gpu_ids: frozenset[str] = frozenset()
    form_factors: frozenset[str] = frozenset()
    memory_types: frozenset[str] = frozenset()
    architectures: frozenset[str] = frozenset()
    adjacent_memories: tuple[float, ...] = ()
    other_memories: tuple[float, ...] = ()
    bare_numbers: tuple[float, ...] = ()
    counts: frozenset[float] = frozenset()
    slice_gb: float | None = None
    compute_slices: int = 0
    mentions_mig: bool = False
    mentions_host: bool = False
    conflict: bool = False
    is_weak: bool = False
    is_bare_code: bool = False
    has_unknown_words: bool = False
    accelerator: Accelerator | None = None


@dataclass(frozen=True, slots=True)
class _Name:
    """A model's name in the tokens from ``start`` up to ``end``."""

    start: int
    end: int
    spelling: Spelling


# Kinds that can occur inside a model's name ("RTX 4000 SFF Ada") or between the name and its memory size.
_TRANSPARENT = frozenset(
    {Kind.FORM_FACTOR, Kind.MEMORY, Kind.MEMORY_TYPE, Kind.COUNT, Kind.FILLER, Kind.SLICE}
)
_NAME_STARTS = frozenset({Kind.WORD, Kind.NUMBER, Kind.ARCHITECTURE, Kind.UNKNOWN})


@dataclass(slots=True)
class _Parser:
    """Collects what the tokens of a label state, in one pass; places are token indexes."""

    tokens: Sequence[Token]
    names: list[_Name] = field(default_factory=list)
    memories: list[tuple[int, float]] = field(default_factory=list)
    numbers: list[tuple[int, float]] = field(default_factory=list)
    counts: set[float] = field(default_factory=set)
    texts: dict[Kind, set[str]] = field(default_factory=dict)
    slice_gb: float | None = None
    compute_slices: int = 0
    mentions_mig: bool = False
    has_unknown_words: bool = False
    accelerator: Accelerator | None = None

    def parse(self) -> ParsedLabel:
        at = 0
        while at < len(self.tokens):
            at = self._take(at)
        names, conflict = _decisive_names(self.names)
        is_other_device = self.accelerator is not None and not self.accelerator.is_host
        if not names or (is_other_device and all(name.spelling.weak for name in names)):
            return ParsedLabel(accelerator=self.accelerator, counts=frozenset(self.counts))
        models = tuple(dict.fromkeys(model for name in names for model in name.spelling.models))
        if not conflict:
            models = tuple(m for m in models if all(m in name.spelling.models for name in names))
        adjacent = [any(self._is_adjacent(at, n.start, n.end) for n in names) for at, _ in self.memories]
        sizes = [size for _, size in self.memories]
        return ParsedLabel(
            models=models,
            gpu_ids=frozenset().union(*(name.spelling.gpu_ids for name in names)),
            form_factors=self._texts_of(Kind.FORM_FACTOR),
            memory_types=self._texts_of(Kind.MEMORY_TYPE),
            architectures=self._texts_of(Kind.ARCHITECTURE),
            adjacent_memories=tuple(size for size, near in zip(sizes, adjacent, strict=True) if near),
            other_memories=tuple(size for size, near in zip(sizes, adjacent, strict=True) if not near),
            bare_numbers=tuple(
                number for at, number in self.numbers if any(self._is_adjacent(at, 0, n.end) for n in names)
            ),
            counts=frozenset(self.counts),
            slice_gb=self.slice_gb,
            compute_slices=self.compute_slices,
            mentions_mig=self.mentions_mig or self.slice_gb is not None,
            mentions_host=bool(self._texts_of(Kind.HOST)),
            conflict=conflict or is_other_device or any(map(self._has_foreign_brand, names)),
            is_weak=all(name.spelling.weak for name in names),
            is_bare_code=not self.memories
            and all(name.spelling.weak and _CODE.fullmatch(self.tokens[name.start].text) for name in names),
            has_unknown_words=self.has_unknown_words,
        )

    def _texts_of(self, kind: Kind) -> frozenset[str]:
        return frozenset(self.texts.get(kind, ()))

    def _take(self, at: int) -> int:
        """Collect the statement that starts at a place; return the place after the statement."""
        token = self.tokens[at]
        if token.kind in _NAME_STARTS and (name := self._longest_name(at)):
            self.names.append(name)
            for inner in range(at, name.end):
                self._collect(inner)
            return name.end
        if token.kind is Kind.NUMBER:
            return self._take_number(at)
        if token.kind is Kind.WORD:
            return self._take_word(at)
        self.mentions_mig |= token.text in catalogue.words_of_kind("slice")
        self.has_unknown_words |= token.kind is Kind.UNKNOWN
        self._collect(at)
        return at + 1

    def _collect(self, at: int) -> None:
        """Collect a token that is a statement by itself."""
        token = self.tokens[at]
        if token.kind is Kind.COUNT:
            self.counts.add(token.value)
        elif token.kind is Kind.SLICE:
            self.slice_gb, self.compute_slices = token.value, token.compute_slices
        elif token.kind is Kind.MEMORY:
            self.memories.append((at, token.value))
        else:
            self.texts.setdefault(token.kind, set()).add(token.text)

    def _longest_name(self, start: int) -> _Name | None:
        """Return the longest spelling of a model that starts at a place."""
        spellings = catalogue.spellings()
        words: list[str] = []
        longest: _Name | None = None
        for at in range(start, len(self.tokens)):
            token = self.tokens[at]
            if token.kind in _TRANSPARENT:
                continue
            words.append(token.text)
            spelling = spellings.get(tuple(words))
            if spelling is not None and not self._is_of_host(spelling, at):
                longest = _Name(start, at + 1, spelling)
            if len(words) == _LONGEST_NAME:
                break
        return longest

    def _is_of_host(self, spelling: Spelling, at: int) -> bool:
        """True for weak names before a unit or "CPU": "2060 GB" is no RTX 2060, a "Vera Rubin CPU" no GPU."""
        after = self.tokens[at + 1].text if at + 1 < len(self.tokens) else ""
        return spelling.weak and (after == "cpu" or (self.tokens[at].kind is Kind.NUMBER and after in _UNITS))

    def _take_number(self, at: int) -> int:
        """Collect a bare number: a memory size before a unit, a count before "x" or "gpus"."""
        value = self.tokens[at].value
        after = self.tokens[at + 1].text if at + 1 < len(self.tokens) else ""
        if after in _UNITS:
            self.memories.append((at, gigabytes(value, after)))
            return at + 2
        is_counted = after in {"gpu", "gpus"} or (after == "x" and at + 2 < len(self.tokens))
        if is_counted and value <= _HIGHEST_COUNT:
            self.counts.add(value)
            return at + 2
        self.numbers.append((at, value))
        return at + 1

    def _take_word(self, at: int) -> int:
        """Collect a word that does not start a model's name: an "x" before a count, a form factor, or the
        name of another accelerator. Any other word belongs to a name that is not known."""
        text = self.tokens[at].text
        if text == "x" and at and at + 1 < len(self.tokens) and self.tokens[at + 1].kind is Kind.NUMBER:
            self.counts.add(self.tokens[at + 1].value)
            return at + 2
        if text == "s" and self.names and "PRO" in self.names[-1].spelling.models[0]:
            # Vast.ai lists "RTX PRO 6000 S" next to "RTX PRO 6000 WS".
            self.texts.setdefault(Kind.FORM_FACTOR, set()).add("Server")
            return at + 1
        if text in catalogue.words_of_kind("slice"):
            self.mentions_mig = True
            return at + 1
        words, accelerator = _accelerator([t.text for t in self.tokens[at : at + 3]])
        self.accelerator = self.accelerator or accelerator
        self.has_unknown_words |= accelerator is None and text != "x"
        return at + max(words, 1)

    def _has_foreign_brand(self, name: _Name) -> bool:
        """True if the brand before a name, or anywhere in the label of a weak name, is another vendor's."""
        vendors = catalogue.vendor_of_brand()
        models = name.spelling.models
        own = {card.vendor for model in models for card in catalogue.cards_of_model()[model]}
        for token in reversed(self.tokens if name.spelling.weak else self.tokens[: name.start]):
            if token.text in vendors and vendors[token.text] not in own:
                return True
            if token.text in vendors or (token.kind not in _TRANSPARENT and not name.spelling.weak):
                return False
        return False

    def _is_adjacent(self, at: int, start: int, end: int) -> bool:
        """True if only transparent tokens or architectures separate a place from a name, on either side."""
        between = self.tokens[end:at] if at >= end else self.tokens[at + 1 : start]
        return all(token.kind in _TRANSPARENT or token.kind is Kind.ARCHITECTURE for token in between)


def _accelerator(words: Sequence[str]) -> tuple[int, Accelerator | None]:
    """Return the accelerator with the longest name that begins these words, after the length of the name."""
    known = catalogue.accelerators()
    lengths = range(len(words), 0, -1)
    return next(((n, known[tuple(words[:n])]) for n in lengths if tuple(words[:n]) in known), (0, None))


def _decisive_names(names: Sequence[_Name]) -> tuple[Sequence[_Name], bool]:
    """Return the strong names (or else the weak names), and whether they have no model in common."""
    chosen = [name for name in names if not name.spelling.weak] or names
    models = [frozenset(name.spelling.models) for name in chosen]
    return chosen, bool(models) and not frozenset.intersection(*models)


_HOST_MEMORY_WORDS = ("ddr4", "ddr5", "disk", "hdd", "nvme", "ram", "ssd", "storage")
_HOST_UNITS = (
    "core", "cores", "ocpu", "ocpus", "tb", "threads", "tib", "vcpu", "vcpus", "w", "year", "years",
)  # fmt: skip
_HOST_WORDS = frozenset((*_HOST_MEMORY_WORDS, *_HOST_UNITS))
_CANONICAL_WORDS = {Kind.FILLER: "", Kind.ASIDE: ASIDE_MARK, Kind.UNKNOWN: "?", Kind.HOST: HOST_MARK}

# Statements about the host in a canonical label: "64 ~vcpu", "512 gb ~ram", "2 ~tb ~nvme".
_MEMORY_UNITS = "|".join(sorted(_UNITS, key=len, reverse=True))
_ABOUT_HOST = re.compile(
    rf"(?<![^ ])(?:\d+ ~(?:{'|'.join(_HOST_UNITS)})"
    rf"|\d+(?:\.\d+)? ?(?:{_MEMORY_UNITS}) ~(?:{'|'.join(_HOST_MEMORY_WORDS)})"
    r")(?![^ ])"
)
_HOST_WORD = re.compile(r"~\w+")
_SPACED_COUNT = re.compile(r"(?<![^ ])(\d{1,3}) x(?= [^ ])")
_COUNT = re.compile(r"#(\d+)")
_UNKNOWN_RUN = re.compile(r"\?(?: +\?)+")


_USUAL_VENDOR = "nvidia"
"""Canonical labels omit its brands: most labels have one, and none stands beside another vendor's card."""


@cache
def _kept_words() -> frozenset[str]:
    """Return the filler that says something in its place."""
    brands = {brand for brand, vendor in catalogue.vendor_of_brand().items() if vendor != _USUAL_VENDOR}
    return catalogue.words_of_kind("slice") | brands | _UNITS | {"gpu", "gpus"}


@lru_cache(maxsize=CACHE_SIZE)
def _canonical_word(word: str) -> str:
    """Return a word as a cache key: an unknown word as "?", filler as "", a count as "#8", a word that
    assigns the number before it to the host as "~ram", and any other word as it is."""
    tokens = tokens_of_word(word)
    if len(tokens) == 1 and tokens[0].kind is Kind.COUNT:
        return f"#{tokens[0].value:g}"
    if word in _HOST_WORDS:
        return f"~{word}"
    if word in _kept_words() or len({token.kind for token in tokens}) > 1:
        return word
    return _CANONICAL_WORDS.get(tokens[0].kind, word)


@lru_cache(maxsize=CACHE_SIZE)
def _parse_without_counts(words: str) -> ParsedLabel:
    return _Parser([token for word in words.split() for token in tokens_of_word(word)]).parse()


@lru_cache(maxsize=CACHE_SIZE)
def _parse_canonical(words: str) -> tuple[ParsedLabel, frozenset[float]]:
    """Parse a label in canonical words. Labels that differ only in their counts share one ParsedLabel."""
    if "~" in words:
        words = _HOST_WORD.sub("", _ABOUT_HOST.sub(HOST_MARK, words))
    if " x " in words:
        words = _SPACED_COUNT.sub(r"#\1", words)
    counts: list[str] = []
    if "#" in words:
        parts = _COUNT.split(words)
        words, counts = "".join(parts[::2]), parts[1::2]
    if "? " in words:
        words = _UNKNOWN_RUN.sub("?", words)
    # Words about something else at either end do not separate anything.
    label = _parse_without_counts(words.strip(f"{ASIDE_MARK} "))
    return label, label.counts.union(map(float, counts))


def parse_label(label: str) -> tuple[ParsedLabel, frozenset[float]]:
    """Return what a label states, and every GPU count in the label, ignoring case, separators and filler."""
    words = split_words(label)
    if "in" in words:
        words = _without_places(words)
    if not catalogue.first_words_of_phrases().isdisjoint(words):
        words = catalogue.phrases().sub("gpu", " ".join(words)).split()
    return _parse_canonical(" ".join(filter(None, map(_canonical_word, words))))


def _without_places(words: Sequence[str]) -> list[str]:
    """Return the words without the unknown words after "in", which name a place."""
    kept: list[str] = []
    for word in words:
        if not (kept and kept[-1] == "in" and tokens_of_word(word)[0].kind is Kind.UNKNOWN):
            kept.append(word)
    return kept


ALTERNATIVES = re.compile(r"([/|,;&]| (?:or|and|vs) )")
_NUMBER = re.compile(r"\d{3,4}")
_TWO_SIZES = re.compile(r"(?<![\w.])(\d{1,3}) ?(?:gi?b?)? ?/ ?(\d{1,3}) ?gi?b?(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=CACHE_SIZE)
def _part(text: str) -> ParsedLabel:
    return parse_label(text)[0]


def names_alternatives(label: str) -> bool:
    """True if a label names several cards, one after the other: "A2 / A16", "RTX 4090/4090D", "RX 470/480",
    "RTX PRO 5000 / RTX PRO 5000 72GB"."""
    pieces = ALTERNATIVES.split(label)
    parts = [piece.strip(" ()[]") for piece in pieces[::2]]
    later = [_part(part) for part in parts[1:]]
    separated = zip(pieces[1::2], parts[1:], strict=True)
    is_number = [separator in "/|" and _NUMBER.fullmatch(part) for separator, part in separated]
    if not (any(each.models for each in later) or any(is_number)):
        return False
    parsed = [parse_label(parts[0])[0], *later]
    if any(number and before.models for number, before in zip(is_number, parsed, strict=False)):
        return True
    named = [each for each in parsed if each.models]
    kinds = {(each.models, each.adjacent_memories) for each in named}
    if len(kinds) < 2:
        return False
    return "," not in pieces[1::2] or not set.intersection(*(set(each.models) for each in named))


def alternative_sizes(label: str) -> tuple[float, ...]:
    """Return the two memory sizes of "A100 40/80GB" in GB, or nothing."""
    found = _TWO_SIZES.search(label)
    return (float(found[1]), float(found[2])) if found else ()


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What a seller's other columns state. Memory sizes are in GB (GiB if the unit is MiB): ``memory_gb`` per
    GPU, ``total_memory_gb`` for all GPUs, ``unassigned_memory_gb`` for either the GPU or the host.
    ``names`` are other labels for the GPU."""

    memory_gb: float | None = None
    total_memory_gb: float | None = None
    unassigned_memory_gb: float | None = None
    form_factors: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    gpu_count: float | None = None


NO_COLUMNS = Columns()
_PAIR = re.compile(r"\s*([A-Za-z][\w. ]*?)\s*=\s*(.*?)\s*")
_QUANTITY = re.compile(r"(\d+(?:[.,]\d+)?)\s*(gib|gb|gi|g|mib|mb|mi|m|b|bytes)?", re.IGNORECASE)
_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_FORM_FACTOR_COLUMNS = frozenset(
    {"socket", "form", "formfactor", "interface", "interconnect", "variant", "bus"}
)
_NAME_COLUMNS = frozenset({"name", "model", "type", "accelerator", "gpu", "label", "description", "id"})
_LOWEST_IN_MIB = 1000
"""A memory size without a unit is in MiB from this number on, and in GB below this number."""
_COLUMN_UNITS = ("bytes", "mib", "mb", "mi", "gb", "gib", "gi")


def parse_columns(context: Mapping[str, str | float | Decimal] | str) -> Columns:
    """Parse a seller's other columns, given as a mapping or as text like "key=value; key=value". Any other
    text is ignored as a remark."""
    if isinstance(context, str):
        return _parse_pairs(tuple(_pairs(context)))
    return _parse_pairs(tuple((name, str(value)) for name, value in context.items()))


def _pairs(context: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"[;,]", context):
        if match := _PAIR.fullmatch(part):
            yield match[1], match[2]


@lru_cache(maxsize=CACHE_SIZE)
def _parse_pairs(pairs: tuple[tuple[str, str], ...]) -> Columns:
    """Parse columns, recognizing each column by the words in its name."""
    if not pairs:
        return NO_COLUMNS
    memory = total = unassigned = count = None
    form_factors: set[str] = set()
    names: list[str] = []
    for column, value in pairs:
        words = {word.lower() for word in _WORDS_OF_NAME.findall(column)}
        is_gpu_memory = "vram" in words or ("gpu" in words and bool(words & {"ram", "memory", "mem"}))
        if words & {"count", "num", "quantity", "qty"}:
            count = float(value) if value.replace(".", "", 1).isdigit() else count
        elif is_gpu_memory or words & {"memory", "ram", "size", "mem"}:
            size = _column_gigabytes(value, words)
            if "total" in words:
                total = size if is_gpu_memory else total
            elif is_gpu_memory or words >= {"size", "mi"} or words >= {"size", "mib"}:
                memory = size
            else:
                unassigned = size
        elif words & _FORM_FACTOR_COLUMNS:
            parts = re.split(r"[\s_\-]+", value.lower())
            form_factors |= {FORM_FACTORS[part] for part in parts if part in FORM_FACTORS}
        elif words & _NAME_COLUMNS:
            names.append(value)
    return Columns(memory, total, unassigned, frozenset(form_factors), tuple(names), count)


def _column_gigabytes(value: str, column_words: set[str]) -> float | None:
    """Return a memory size in GB (GiB if the unit is MiB or bytes), or None unless the value is one number.
    The unit is taken from the value, else from the column's name, else inferred from the number."""
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        return None
    number = float(match[1].replace(",", "."))
    unit = match[2] or next((unit for unit in _COLUMN_UNITS if unit in column_words), "")
    if not unit and number >= _LOWEST_IN_MIB:
        unit = "mib" if number < BYTES_PER_GIB else "bytes"
    return number / BYTES_PER_GIB if unit.lower().startswith("b") else gigabytes(number, unit.lower())
