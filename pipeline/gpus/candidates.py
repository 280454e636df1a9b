"""The cards of a model that agree with the form factor, architecture, memory and slice that offers state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isclose, log

from pipeline.gpus.catalogue import EXPLICIT_FORM_FACTORS, Card
from pipeline.gpus.label import NO_COLUMNS, Columns, ParsedLabel

# A card reports less memory than its name says (ECC, firmware), and sellers state GiB, GB, or the physical
# size: an 80 GB H100 reports 79.6 GiB (81,559 MiB), a 288 GB B300 262 GiB, and a 24 GB A10G 22.0 GiB.
_LOWEST_REPORTED_SHARE = 0.87
_MEMORY_TOLERANCE = 0.08
"""Tolerance between a stated and an expected memory size, relative to the larger of the two."""

# Sizes in a card's usual name that are not the GPU's memory: the 480 GB of a GH200 belong to its CPU.
_NAMED_SIZES: dict[tuple[str, float], float] = {
    ("GH200", 120): 96,
    ("GH200", 480): 96,
    ("GH200", 576): 96,
    ("GH200", 624): 144,
    ("GH200", 141): 144,
}

# The share of a card's memory that a MIG profile gets, by the profile's number of compute slices.
_MIG_MEMORY_SHARES = {1: 1 / 8, 2: 2 / 8, 3: 4 / 8, 4: 4 / 8, 7: 8 / 8}
_MODELS_OF_FOUR_SLICES = frozenset({"A30", "RTX PRO 6000", "RTX PRO 5000"})
_MIG_MEMORY_TOLERANCE_GB = 1.5
# A bare number between these, beside the name of a model with several sizes, can be a size that is not known.
_HIGHEST_COUNT = 16
_HIGHEST_SIZE = 300

_BOARDS = frozenset({"SXM", "PCIe", "NVL", "OAM"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything stated about an offer's GPU. ``machine_memory_gb`` is the GPU memory of the whole machine if
    the machine's name states it; other memory sizes in such a name can be the host's."""

    label: ParsedLabel
    columns: Columns = NO_COLUMNS
    gpu_count: float | None = None
    machine_memory_gb: float | None = None
    is_instance_type: bool = False

    def per_gpu(self, total_gb: float | None) -> float | None:
        """Return the memory per GPU, given the total of all GPUs; None if the total or count is unknown."""
        return total_gb / self.gpu_count if total_gb is not None and self.gpu_count else None


def by_form_factor(cards: list[Card], stated: Iterable[str]) -> tuple[list[Card], bool]:
    """Return the cards with a stated form factor, and whether a form factor was decisive. Form factors that
    do not tell the model's cards apart ("PCIe" on a consumer card) are ignored; if none is left, cards that
    sellers always name in full are skipped. No card is returned if the model lacks the stated form factor."""
    existing = frozenset(card.form_factor for card in cards)
    wanted = _wanted_form_factors(stated, existing, has_one_model=len({card.model for card in cards}) == 1)
    if wanted & existing:
        return [card for card in cards if card.form_factor in wanted], True
    if wanted & {"Laptop", "MXM"} or _is_another_board(wanted & _BOARDS, existing):
        return [], False
    return [card for card in cards if not _is_named_in_full(card, cards)], False


def _is_another_board(boards: set[str], existing: frozenset[str]) -> bool:
    """True if a model exists on no such board. "PCIe" says nothing of a card that has no other form."""
    if not boards:
        return False
    return bool(existing & _BOARDS) or (boards != {"PCIe"} and "" in existing)


def _wanted_form_factors(stated: Iterable[str], existing: frozenset[str], has_one_model: bool) -> set[str]:
    """Return the form factors that a label means, in the catalogue's terms."""
    wanted = set(stated)
    if not has_one_model:
        wanted -= {"Server", "Workstation"}  # these may be ordinary words if several models are possible
    if "Max-Q" in wanted:
        wanted -= {"Workstation", "Max-Q"}
        wanted.add("Max-Q" if "Max-Q" in existing else "Laptop")
    if "NVLink" in wanted:
        wanted.discard("NVLink")
        # An NVL card has NVLink bridges: "H100 NVL NVLink" is the card "H100 NVL".
        if "SXM" not in wanted and "NVL" not in wanted & existing:
            linked = {"PCIe-NVLink"} if "PCIe-NVLink" in existing else {"SXM"} & existing
            wanted = linked or wanted
    if "NVL" in wanted:
        wanted.discard("PCIe")
        if "NVL" not in existing and "PCIe-NVLink" in existing:
            wanted = {"PCIe-NVLink"}
    if wanted == {"PCIe"} and "PCIe" not in existing and "NVL" in existing:
        wanted = {"NVL"}
    return wanted


def _is_named_in_full(card: Card, cards: Sequence[Card]) -> bool:
    has_ordinary_card = any(other.form_factor == "" and other.model == card.model for other in cards)
    return card.form_factor in {"Laptop", "PCIe-NVLink"} or (
        card.form_factor in EXPLICIT_FORM_FACTORS and has_ordinary_card
    )


def by_architecture(cards: list[Card], label: ParsedLabel) -> list[Card]:
    """Return the cards of the architectures that the label names, if it names any."""
    stated = label.architectures
    return [card for card in cards if card.architecture in stated] if stated else cards


def by_memory_type(cards: list[Card], label: ParsedLabel) -> list[Card]:
    """Return the cards with the memory type that the label names, if it names any: an H100 with HBM3 is the
    SXM board."""
    stated = label.memory_types
    return [card for card in cards if card.memory_type in stated] if stated else cards


def by_mig_profile(cards: list[Card], label: ParsedLabel) -> list[Card]:
    """Return the cards that support the label's MIG profile: 3g.20gb needs 40 GB, and 3g.40gb needs 80 GB. A
    profile with one slice can have two shares of the memory, so 1g.10gb fits 80 GB and, if stated, 40 GB."""
    slice_gb, slices = label.slice_gb, label.compute_slices
    if slice_gb is None or not slices:
        return cards
    named = [card for card in cards if card.memory_gb in label.adjacent_memories] or cards
    for shares in (1, 2) if slices == 1 else (1,):
        found = [
            card
            for card in named
            if abs(slice_gb - shares * card.memory_gb * _mig_memory_share(card, slices))
            <= _MIG_MEMORY_TOLERANCE_GB
        ]
        if found:
            return found
    return []


def _mig_memory_share(card: Card, compute_slices: int) -> float:
    """Return the share of a card's memory that a MIG profile with ``compute_slices`` gets; inf if unknown."""
    if card.model in _MODELS_OF_FOUR_SLICES:
        return compute_slices / 4
    return _MIG_MEMORY_SHARES.get(compute_slices, inf)


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """The cards that agree with the stated memory sizes, the rule that decided ("" if no rule did), and
    whether a stated size contradicts every card."""

    cards: list[Card]
    rule: str
    contradicted: bool = False


def by_memory(cards: list[Card], evidence: Evidence) -> MemoryMatch:
    """Return the cards that agree with every stated memory size, in the seller's columns and in the label."""
    columns = _by_memory_columns(cards, evidence)
    if columns.contradicted:
        return columns
    label = _by_label_memories(columns.cards, evidence)
    if label.contradicted:
        return label
    rule = columns.rule or label.rule
    return MemoryMatch(label.cards, rule) if rule else _by_bare_number(label.cards, evidence)


def _by_memory_columns(cards: list[Card], evidence: Evidence) -> MemoryMatch:
    columns, rule = evidence.columns, ""
    stated = (
        (columns.memory_gb, "memory_column"),
        (evidence.per_gpu(columns.total_memory_gb), "total_memory_column"),
        (evidence.per_gpu(evidence.machine_memory_gb), "total_memory_in_name"),
    )
    for size, name in stated:
        if size is None:
            continue
        left = _with_memory(cards, size) or _with_sold_share(cards, size, evidence)
        if not left and name == "memory_column":
            left = _with_memory(cards, evidence.per_gpu(size))
        if not left:
            return MemoryMatch(cards, f"{name}_contradicts", contradicted=True)
        cards, rule = left, name
    return MemoryMatch(cards, rule)


def _by_label_memories(cards: list[Card], evidence: Evidence) -> MemoryMatch:
    """Return the cards that agree with the memory sizes in the label, per GPU or in total. A size that fits
    no card is a contradiction, unless it can be a slice's, or a machine's name also gives one that fits."""
    label, rule, contradicted = evidence.label, "", False
    can_be_of_host = evidence.is_instance_type or label.mentions_host
    for size in (*label.adjacent_memories, *(() if can_be_of_host else label.other_memories)):
        per_gpu = evidence.per_gpu(size)
        of_one, of_all = _with_memory(cards, size), _with_memory(cards, per_gpu)
        if per_gpu != size and of_all and of_one and all(card.is_modified for card in of_one):
            # "2x RTX 4090 48GB" means two cards with 24 GB each or two with 48 GB each.
            return MemoryMatch([*of_all, *of_one], "memory_of_one_or_of_all", contradicted=True)
        if of_one or of_all:
            cards, rule = of_one or of_all, "memory"
        elif not (label.mentions_mig and any(size < card.memory_gb for card in cards)):
            contradicted = True
    if contradicted and not (evidence.is_instance_type and rule):
        return MemoryMatch(cards, "memory_contradicts", contradicted=True)
    return MemoryMatch(cards, rule)


def _by_bare_number(cards: list[Card], evidence: Evidence) -> MemoryMatch:
    """Return the cards whose memory size is stated as a number without a unit ("a100-80"). The number is
    used only for data-centre models with several sizes, none of them usual: otherwise it may count CPUs, and
    leaves the card open if it is also the size of an unusual card ("RTX PRO 5000-72")."""
    has_usual = any(card.named_without_memory for card in cards)
    may_count = has_usual or not all(card.form_factor for card in cards)
    for size in (*evidence.label.bare_numbers, evidence.columns.unassigned_memory_gb):
        exact = [card for card in cards if card.memory_gb == size]
        if exact and not may_count:
            return MemoryMatch(exact, "bare_size")
    for size in evidence.label.bare_numbers:
        exact = [card for card in cards if card.memory_gb == size]
        is_usual = any(card.named_without_memory for card in exact)
        if has_usual and not is_usual and (exact or _HIGHEST_COUNT < size <= _HIGHEST_SIZE):
            return MemoryMatch(cards, "bare_size_or_count", contradicted=True)
    return MemoryMatch(cards, "")


def _with_memory(cards: Sequence[Card], size_gb: float | None) -> list[Card]:
    """Return the cards whose memory can have this size, as named, as reported, or for the whole board; if
    several sizes are within the tolerance, only the cards with the nearest size."""
    if size_gb is None:
        return []
    named = [card for card in cards if _NAMED_SIZES.get((card.model, size_gb)) == card.memory_gb]
    if named:
        return named
    within = [card for card in cards if _is_near(card, size_gb)]
    distances = [abs(log(size_gb / card.memory_gb)) for card in within]
    nearest = min(distances, default=0)
    return [card for card, distance in zip(within, distances, strict=True) if distance < nearest + 1e-9]


def _is_near(card: Card, size_gb: float) -> bool:
    share = size_gb / card.memory_gb
    return _LOWEST_REPORTED_SHARE <= share <= 1 or any(
        isclose(share, gpus, rel_tol=_MEMORY_TOLERANCE) for gpus in (1, card.gpus_per_board)
    )


def _with_sold_share(cards: Sequence[Card], size_gb: float, evidence: Evidence) -> list[Card]:
    """Return the cards that are sold in slices of this memory size: a column can state a slice's memory."""
    count = evidence.gpu_count
    if count and count < 1:
        return [card for card in cards if isclose(size_gb, card.memory_gb * count, rel_tol=_MEMORY_TOLERANCE)]
    if evidence.label.mentions_mig:
        return [card for card in cards if size_gb < card.memory_gb]
    return []
