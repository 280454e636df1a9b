"""What a label says: which models it can mean, and the form factors, memories and counts beside them.

Nothing is decided here; ``settle`` weighs a reading against the catalogue and the seller's other columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.offers.gpu_matching import catalog
from pipeline.offers.gpu_matching.catalog import Accelerator
from pipeline.offers.gpu_matching.lexer import Kind, Piece

UNITS = frozenset({"gb", "gib", "g", "gi", "mb", "mib", "gbs"})


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """``models`` is empty when no GPU was named. ``beside`` are memories that stand next to the model,
    ``elsewhere`` all others, both in GB; where the host is mentioned they may be its own. ``slice_gb`` and
    ``slices`` describe a MIG or vGPU profile."""

    models: tuple[str, ...] = ()
    forms: frozenset[str] = frozenset()
    memory_types: frozenset[str] = frozenset()
    architectures: frozenset[str] = frozenset()
    beside: tuple[float, ...] = ()
    elsewhere: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()
    counts: frozenset[float] = frozenset()
    slice_gb: float | None = None
    slices: int = 0
    says_mig: bool = False
    mentions_host: bool = False
    conflict: bool = False
    accelerator: Accelerator | None = None


@dataclass(slots=True)
class _Found:
    """What has been collected while walking over the pieces."""

    families: list[tuple[int, int, catalog.Spelling]] = field(default_factory=list)
    memories: list[tuple[int, float]] = field(default_factory=list)
    numbers: list[tuple[int, float]] = field(default_factory=list)
    counts: set[float] = field(default_factory=set)
    forms: set[str] = field(default_factory=set)
    memory_types: set[str] = field(default_factory=set)
    architectures: set[str] = field(default_factory=set)
    slice_gb: float | None = None
    slices: int = 0
    says_mig: bool = False
    mentions_host: bool = False
    accelerator: Accelerator | None = None


_TRANSPARENT = frozenset({Kind.FORM, Kind.MEMORY, Kind.MEMORY_TYPE, Kind.COUNT, Kind.NOISE, Kind.SLICE})
_LONGEST_NAME = 5


def _longest_name(pieces: Sequence[Piece], start: int) -> tuple[int, catalog.Spelling] | None:
    """The longest spelling of a model that starts here, and the place after it. Form factors, memories and
    filler words may stand inside a name ("RTX 4000 SFF Ada")."""
    spellings = catalog.spellings()
    words: list[str] = []
    best: tuple[int, catalog.Spelling] | None = None
    at = start
    while at < len(pieces) and len(words) < _LONGEST_NAME:
        piece = pieces[at]
        at += 1
        if piece.kind in _TRANSPARENT:
            continue
        words.append(piece.text)
        spelling = spellings.get(tuple(words))
        if spelling is not None:
            best = at, spelling
    return best


def _accelerator(pieces: Sequence[Piece], start: int) -> Accelerator | None:
    """The longest name of something that is no GPU starting here."""
    known = catalog.accelerators()
    words = [piece.text for piece in pieces[start : start + 3]]
    for length in range(len(words), 0, -1):
        found = known.get(tuple(words[:length]))
        if found is not None:
            return found
    return None


def _neighbour(pieces: Sequence[Piece], at: int) -> str:
    return pieces[at].text if 0 <= at < len(pieces) else ""


def _take_number(found: _Found, pieces: Sequence[Piece], at: int) -> int:
    """A bare number: a memory before a unit, a count before or after an x, else just a number."""
    piece, after = pieces[at], _neighbour(pieces, at + 1)
    if after in UNITS:
        size = piece.value / 1024 if after.startswith("m") else piece.value
        found.memories.append((at, size))
        return at + 2
    if after == "x" and piece.value <= 128 and at + 2 < len(pieces):
        found.counts.add(piece.value)
        return at + 2
    if after in {"gpu", "gpus"} and piece.value <= 128:
        found.counts.add(piece.value)
        return at + 2
    found.numbers.append((at, piece.value))
    return at + 1


def _take(found: _Found, pieces: Sequence[Piece], at: int) -> int:
    """Collect the piece that starts at a place; return the place after it."""
    piece = pieces[at]
    kind = piece.kind
    if kind in (Kind.WORD, Kind.NUMBER, Kind.ARCHITECTURE, Kind.UNKNOWN):
        name = _longest_name(pieces, at)
        if name is not None:
            end, spelling = name
            found.families.append((at, end, spelling))
            _take_transparent(found, pieces, at, end)
            return end
    if kind is Kind.NUMBER:
        return _take_number(found, pieces, at)
    if kind is Kind.WORD:
        if piece.text == "x" and at and at + 1 < len(pieces) and pieces[at + 1].kind is Kind.NUMBER:
            found.counts.add(pieces[at + 1].value)
            return at + 2
        if piece.text == "s" and found.families and "PRO" in found.families[-1][2].models[0]:
            found.forms.add("Server")  # Vast.ai: "RTX PRO 6000 S" beside "RTX PRO 6000 WS"
        found.accelerator = found.accelerator or _accelerator(pieces, at)
        return at + 1
    if kind is Kind.ARCHITECTURE:
        found.architectures.add(piece.text)
    elif kind is Kind.UNKNOWN:
        found.says_mig |= piece.text == "mig"
    elif kind is Kind.HOST:
        found.mentions_host = True
    else:
        _take_transparent(found, pieces, at, at + 1)
    return at + 1


def _take_transparent(found: _Found, pieces: Sequence[Piece], start: int, end: int) -> None:
    for at in range(start, end):
        piece = pieces[at]
        if piece.kind is Kind.FORM:
            found.forms.add(piece.text)
        elif piece.kind is Kind.MEMORY_TYPE:
            found.memory_types.add(piece.text)
        elif piece.kind is Kind.COUNT:
            found.counts.add(piece.value)
        elif piece.kind is Kind.ARCHITECTURE:
            found.architectures.add(piece.text)
        elif piece.kind is Kind.SLICE:
            found.slice_gb, found.slices = piece.value, piece.slices
        elif piece.kind is Kind.MEMORY:
            found.memories.append((at, piece.value))


def _families(found: _Found) -> tuple[list[tuple[int, int, catalog.Spelling]], bool]:
    """The families that count: strong spellings before weak ones, and whether two of them disagree."""
    strong = [family for family in found.families if not family[2].weak]
    chosen = strong or found.families
    models = {frozenset(spelling.models) for _, _, spelling in chosen}
    common = frozenset.intersection(*models) if models else frozenset()
    return chosen, len(models) > 1 and not common


def _is_beside(pieces: Sequence[Piece], at: int, start: int, end: int) -> bool:
    """Whether only form factors, counts and filler stand between a memory and a model's name."""
    between = pieces[end:at] if at >= end else pieces[at + 1 : start]
    return all(piece.kind in _TRANSPARENT or piece.kind is Kind.ARCHITECTURE for piece in between)


def read(pieces: Sequence[Piece]) -> Reading:
    """What the pieces of a label say."""
    found = _Found()
    at = 0
    while at < len(pieces):
        at = _take(found, pieces, at)
    families, conflict = _families(found)
    if not families:
        return Reading(accelerator=found.accelerator, counts=frozenset(found.counts))
    models = tuple(dict.fromkeys(model for _, _, spelling in families for model in spelling.models))
    if not conflict and len(families) > 1:
        shared = set.intersection(*(set(spelling.models) for _, _, spelling in families))
        models = tuple(model for model in models if model in shared)
    beside: list[float] = []
    elsewhere: list[float] = []
    for place, size in found.memories:
        near = any(_is_beside(pieces, place, start, end) for start, end, _ in families)
        (beside if near else elsewhere).append(size)
    sizes = [
        n for place, n in found.numbers if any(_is_beside(pieces, place, 0, end) for _, end, _ in families)
    ]
    return Reading(
        models=models,
        forms=frozenset(found.forms),
        memory_types=frozenset(found.memory_types),
        architectures=frozenset(found.architectures),
        beside=tuple(beside),
        elsewhere=tuple(elsewhere),
        sizes=tuple(sizes),
        counts=frozenset(found.counts),
        slice_gb=found.slice_gb,
        slices=found.slices,
        says_mig=found.says_mig or found.slice_gb is not None,
        mentions_host=found.mentions_host,
        conflict=conflict,
    )
