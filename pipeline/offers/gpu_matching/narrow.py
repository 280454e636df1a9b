"""Which of a model's cards the form factor, the memory and the slice leave."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, log

from pipeline.offers.gpu_matching import catalog
from pipeline.offers.gpu_matching.catalog import Card
from pipeline.offers.gpu_matching.context import NO_FACTS, Facts
from pipeline.offers.gpu_matching.reading import Reading

# A card reports less memory than its name says (ECC, firmware), and sellers write GiB, GB, or the physical
# size: an H100 80GB reports 81,559 MiB = 79.6, a B300 of 288 GB 262, an A10G of 24 GB 22.0.
_LOWEST_SHARE, _HIGHEST_SHARE = 0.87, 1.08

# Sizes that are part of a card's usual name but are not the memory of the GPU: GH200's 480 GB is the CPU's.
_NAMED_SIZES: Mapping[tuple[str, float], float] = {
    ("GH200", 480): 96,
    ("GH200", 576): 96,
    ("GH200", 624): 144,
    ("GH200", 141): 144,
}

# Compute slices of a MIG profile, in eighths of the card (fourths on cards of four slices).
_EIGHTHS = {1: (1, 2), 2: (2,), 3: (4,), 4: (4,), 7: (8,)}
_CARDS_OF_FOUR_SLICES = frozenset({"A30", "RTX PRO 6000", "RTX PRO 5000"})

_BOARDS = frozenset({"SXM", "PCIe", "NVL", "OAM"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one label besides its model. ``total_gb`` is the GPU memory of the whole machine
    where its name gives it; a machine's name may also hold its RAM."""

    reading: Reading
    facts: Facts = NO_FACTS
    gpu_count: float | None = None
    total_gb: float | None = None
    is_instance: bool = False


def _wanted_forms(forms: Iterable[str], existing: frozenset[str], one_model: bool) -> set[str]:
    """The form factors that a label asks for, in the catalogue's terms."""
    wanted = set(forms)
    if not one_model:
        wanted -= {"Server", "Workstation"}  # also ordinary words, which no model of its own confirms
    if "Max-Q" in wanted:
        wanted -= {"Workstation", "Max-Q"}
        wanted.add("Max-Q" if "Max-Q" in existing else "Laptop")
    if "NVLink" in wanted:
        wanted.discard("NVLink")
        if "SXM" not in wanted:
            linked = {"PCIe-NVLink"} if "PCIe-NVLink" in existing else {"SXM"} & existing
            wanted = linked or wanted
    if "NVL" in wanted:
        wanted.discard("PCIe")
        if "NVL" not in existing and "PCIe-NVLink" in existing:
            wanted = {"PCIe-NVLink"}
    if wanted == {"PCIe"} and "PCIe" not in existing and "NVL" in existing:
        wanted = {"NVL"}
    return wanted


def by_form(cards: list[Card], forms: Iterable[str]) -> tuple[list[Card], bool]:
    """The cards that the form factors leave, and whether they told anything. Forms that say nothing about a
    model (a consumer card "PCIe") are ignored; without one, cards that are always named by theirs are left
    out. No card is left where a model has form factors and the label asks for another."""
    existing = frozenset(card.form_factor for card in cards)
    wanted = _wanted_forms(forms, existing, len({card.model for card in cards}) == 1)
    told = wanted & existing
    if told:
        return [card for card in cards if card.form_factor in told], True
    if "Laptop" in wanted or (wanted & _BOARDS and len(existing & _BOARDS) > 1):
        return [], False
    return [card for card in cards if not _always_named(card, cards)], False


def _always_named(card: Card, cards: Sequence[Card]) -> bool:
    ordinary = any(other.form_factor == "" and other.model == card.model for other in cards)
    return card.form_factor in {"Laptop", "PCIe-NVLink"} or (
        card.form_factor in catalog.EXPLICIT_FORMS and ordinary
    )


def by_architecture(cards: list[Card], reading: Reading) -> list[Card]:
    """The cards of the architectures that the label names, or all."""
    return [card for card in cards if card.architecture in reading.architectures] or cards


def by_memory_type(cards: list[Card], reading: Reading) -> list[Card]:
    """The cards with the memory type that the label names (an H100 with HBM3 is the SXM board), or all."""
    return [card for card in cards if card.memory_type in reading.memory_types] or cards


def _supports(card: Card, size: float) -> bool:
    """Whether a size can be this card's memory, as named, as reported, or as its whole board's."""
    if _NAMED_SIZES.get((card.model, size)) == card.memory_gb:
        return True
    share = size / card.memory_gb
    return _LOWEST_SHARE <= share <= _HIGHEST_SHARE or isclose(share, card.gpus_per_board, rel_tol=0.08)


def _supported(cards: Sequence[Card], size: float) -> list[Card]:
    """The cards whose memory this size can be: of several sizes in reach, the nearest."""
    named = [card for card in cards if _NAMED_SIZES.get((card.model, size)) == card.memory_gb]
    if named:
        return named
    within = [card for card in cards if _supports(card, size)]
    if not within:
        return []
    nearest = min(abs(log(size / card.memory_gb)) for card in within)
    return [card for card in within if abs(log(size / card.memory_gb)) < nearest + 1e-9]


def _per_gpu(evidence: Evidence, size: float | None) -> float | None:
    if size is None or not evidence.gpu_count:
        return None
    return size / evidence.gpu_count


@dataclass(frozen=True, slots=True)
class ByMemory:
    """The cards that are left, which statement told, and whether one contradicts them."""

    cards: list[Card]
    rule: str
    contradicted: bool = False


def _by_columns(cards: list[Card], evidence: Evidence) -> ByMemory:
    """The cards that the seller's memory columns leave."""
    facts, rule = evidence.facts, ""
    stated = (
        (facts.memory_gb, "memory_column"),
        (_per_gpu(evidence, facts.total_gb), "total_memory_column"),
        (_per_gpu(evidence, evidence.total_gb), "total_memory_in_name"),
    )
    for size, name in stated:
        if size is None:
            continue
        left = _supported(cards, size) or _share_of(cards, size, evidence)
        if not left and name == "memory_column":
            left = _supported(cards, _per_gpu(evidence, size) or size)
        if not left:
            return ByMemory(cards, f"{name}_contradicts", contradicted=True)
        cards, rule = left, name
    return ByMemory(cards, rule)


def _by_label(cards: list[Card], evidence: Evidence) -> ByMemory:
    """The cards that the memories in the label leave, per GPU or in all. One that fits no card contradicts,
    unless it stands in a machine's name beside one that fits, or is a slice's."""
    reading, rule, contradicted = evidence.reading, "", False
    of_the_host = evidence.is_instance or reading.mentions_host
    for size in (*reading.beside, *(() if of_the_host else reading.elsewhere)):
        per_gpu = _per_gpu(evidence, size)
        of_one, of_all = _supported(cards, size), _supported(cards, per_gpu) if per_gpu else []
        if per_gpu != size and of_all and of_one and all(card.is_modified for card in of_one):
            # "2x RTX 4090 48GB" is two cards of 24 GB or of 48 GB.
            return ByMemory([*of_all, *of_one], "memory_of_one_or_of_all", contradicted=True)
        if of_one or of_all:
            cards, rule = of_one or of_all, "memory"
        elif not (reading.says_mig and any(size < card.memory_gb for card in cards)):
            contradicted = True
    if contradicted and not (evidence.is_instance and rule):
        return ByMemory(cards, "memory_contradicts", contradicted=True)
    return ByMemory(cards, rule)


def by_memory(cards: list[Card], evidence: Evidence) -> ByMemory:
    """The cards that all statements of memory leave: the seller's columns first, then the label."""
    by_columns = _by_columns(cards, evidence)
    if by_columns.contradicted:
        return by_columns
    by_label = _by_label(by_columns.cards, evidence)
    if by_label.contradicted:
        return by_label
    rule = by_columns.rule or by_label.rule
    return ByMemory(by_label.cards, rule) if rule else _by_bare_size(by_label.cards, evidence)


def _by_bare_size(cards: list[Card], evidence: Evidence) -> ByMemory:
    """A number without a unit after the model ("a100-80") is a memory only where a data-centre model comes
    in several sizes, none of them usual: elsewhere it may as well count CPUs."""
    if any(card.named_without_memory for card in cards) or not all(card.form_factor for card in cards):
        return ByMemory(cards, "")
    loose = evidence.facts.loose_gb
    for size in (*evidence.reading.sizes, *((loose,) if loose else ())):
        exact = [card for card in cards if card.memory_gb == size]
        if exact:
            return ByMemory(exact, "bare_size")
    return ByMemory(cards, "")


def _share_of(cards: Sequence[Card], size: float, evidence: Evidence) -> list[Card]:
    """The cards of which a size is the sold share: a slice's memory stands in the memory column."""
    share = evidence.gpu_count if evidence.gpu_count and evidence.gpu_count < 1 else None
    if share:
        return [card for card in cards if isclose(size, card.memory_gb * share, rel_tol=0.08)]
    if evidence.reading.says_mig:
        return [card for card in cards if size < card.memory_gb]
    return []


def by_slice(cards: list[Card], reading: Reading) -> list[Card]:
    """The cards that a MIG profile can be cut from: 3g.20gb is half of 40 GB, 3g.40gb half of 80 GB."""
    if reading.slice_gb is None or not reading.slices:
        return cards
    kept = []
    for card in cards:
        if card.model in _CARDS_OF_FOUR_SLICES:
            shares: tuple[float, ...] = (reading.slices / 4,)
        else:
            shares = tuple(eighths / 8 for eighths in _EIGHTHS.get(reading.slices, ()))
        if shares and abs(reading.slice_gb - card.memory_gb * shares[0]) <= 1.5:
            kept.append(card)
    return kept
