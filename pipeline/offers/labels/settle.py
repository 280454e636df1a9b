"""Which card of the catalogue a label can only be, or that it can be several, or none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from math import isclose, log
from typing import Literal

from pipeline.offers.labels import catalog, context as columns, instances
from pipeline.offers.labels.catalog import Card
from pipeline.offers.labels.context import NO_FACTS, Facts
from pipeline.offers.labels.reading import Reading, fraction_in, read_label

Status = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]
Sureness = Literal["certain", "usual", "none"]
LabelKind = Literal["gpu_name", "instance_type"]

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


@dataclass(frozen=True, slots=True)
class Identity:
    """What a label was found to be. ``memory_gb`` is per whole GPU; ``gpu_count`` is in GPUs and a
    fraction where shares of one are sold; ``candidates`` are the gpu_ids that it can be."""

    status: Status
    gpu_id: str | None = None
    vendor: str | None = None
    model: str | None = None
    form_factor: str | None = None
    memory_gb: float | None = None
    gpu_count: float | None = None
    gpu_fraction: float | None = None
    rule: str = ""
    sureness: Sureness = "none"
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Evidence:
    """All that is known of one label besides its model's name."""

    reading: Reading
    facts: Facts
    gpu_count: float | None
    total_gb: float | None
    is_instance: bool


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


def _by_form(cards: Sequence[Card], forms: Iterable[str], models: int) -> tuple[list[Card], bool]:
    """The cards that a form factor leaves. Forms that say nothing about a model (a consumer card "PCIe")
    are ignored; without one, cards that are always named by theirs are left out."""
    wanted = set(forms)
    if "Max-Q" in wanted and all(card.form_factor != "Max-Q" for card in cards):
        wanted = (wanted - {"Max-Q"}) | {"Laptop"}
    if "Max-Q" in wanted:
        wanted.discard("Workstation")
    existing = {card.form_factor for card in cards}
    if "NVLink" in wanted:
        wanted.discard("NVLink")
        bridged = "PCIe-NVLink" if "PCIe-NVLink" in existing else "SXM"
        if "SXM" not in wanted:
            wanted = {bridged} if bridged in existing else wanted
    if "NVL" in wanted and "NVL" not in existing and "PCIe-NVLink" in existing:
        wanted = {"PCIe-NVLink"}
    if "NVL" in wanted:
        wanted.discard("PCIe")
    if wanted == {"PCIe"} and "PCIe" not in existing and "NVL" in existing:
        wanted = {"NVL"}
    told = wanted & existing
    if told:
        return [card for card in cards if card.form_factor in told], True
    if wanted & {"SXM", "PCIe", "NVL", "OAM"} and existing & {"SXM", "PCIe", "NVL"} and len(existing) > 1:
        return [], False
    return [card for card in cards if not _always_named(card, cards)], False


def _always_named(card: Card, cards: Sequence[Card]) -> bool:
    ordinary = any(other.form_factor == "" and other.model == card.model for other in cards)
    return card.form_factor == "Laptop" or (card.form_factor in catalog.EXPLICIT_FORMS and ordinary)


def _narrow(cards: list[Card], keep: Iterable[Card]) -> list[Card]:
    kept = list(keep)
    return kept or cards


def _per_gpu(evidence: _Evidence, size: float | None) -> float | None:
    if size is None or not evidence.gpu_count:
        return None
    return size / evidence.gpu_count


@dataclass(frozen=True, slots=True)
class _ByMemory:
    cards: list[Card]
    rule: str
    contradicted: bool = False


def _by_memory(cards: list[Card], evidence: _Evidence) -> _ByMemory:
    """The cards that the memories leave: the seller's column first, then the label."""
    reading, facts = evidence.reading, evidence.facts
    rule = ""
    strict = [(facts.memory_gb, "memory_column"), (_per_gpu(evidence, facts.total_gb), "total_memory_column")]
    strict.append((_per_gpu(evidence, evidence.total_gb), "total_memory_in_name"))
    for size, name in strict:
        if size is None:
            continue
        left = _supported(cards, size) or _share_of(cards, size, evidence)
        if not left and name == "memory_column":
            left = _supported(cards, _per_gpu(evidence, size) or size)
        if not left:
            return _ByMemory(cards, f"{name}_contradicts", contradicted=True)
        cards, rule = left, name
    stated = [*reading.beside, *(() if evidence.is_instance else reading.elsewhere)]
    unsupported = 0
    for size in stated:
        per_gpu = _per_gpu(evidence, size)
        left = _supported(cards, size) or (_supported(cards, per_gpu) if per_gpu else [])
        if left:
            cards, rule = left, rule or "memory"
        elif reading.says_mig and any(size < card.memory_gb for card in cards):
            continue
        else:
            unsupported += 1
    if unsupported and not (evidence.is_instance and rule):
        return _ByMemory(cards, "memory_contradicts", contradicted=True)
    if not rule:
        return _by_bare_size(cards, evidence)
    return _ByMemory(cards, rule)


def _by_bare_size(cards: list[Card], evidence: _Evidence) -> _ByMemory:
    """A number without a unit after the model ("a100-80") is a memory only where a data-centre model comes
    in several sizes, none of them usual: elsewhere it may as well count CPUs."""
    if any(card.named_without_memory for card in cards) or not all(card.form_factor for card in cards):
        return _ByMemory(cards, "")
    loose = evidence.facts.loose_gb
    for size in (*evidence.reading.sizes, *((loose,) if loose else ())):
        exact = [card for card in cards if card.memory_gb == size]
        if exact:
            return _ByMemory(exact, "bare_size")
    return _ByMemory(cards, "")


def _share_of(cards: Sequence[Card], size: float, evidence: _Evidence) -> list[Card]:
    """The cards of which a size is the sold share: a slice's memory stands in the memory column."""
    share = evidence.gpu_count if evidence.gpu_count and evidence.gpu_count < 1 else None
    if share:
        return [card for card in cards if isclose(size, card.memory_gb * share, rel_tol=0.08)]
    if evidence.reading.says_mig:
        return [card for card in cards if size < card.memory_gb]
    return []


def _by_slice(cards: list[Card], reading: Reading) -> list[Card]:
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


@dataclass(frozen=True, slots=True)
class _Habit:
    """A row of catalog/provider_gpus.csv: a provider's open name is this card. ``called`` is empty, or the
    form factor that the label says, or the gpu_id that the label would otherwise be."""

    called: str
    gpu_id: str


@cache
def _habits(provider: str, resold: bool) -> tuple[_Habit, ...]:
    """What a provider's names mean. Where a reseller writes the name, only what the provider offers counts,
    not how it names things."""
    return tuple(
        _Habit(row["called"], row["gpu_id"])
        for row in catalog.rows("provider_gpus.csv")
        if provider in row["provider"].split("|") and not (resold and row["basis"] == "naming")
    )


def _by_provider(cards: list[Card], habits: Sequence[_Habit]) -> list[Card]:
    """What a label leaves open, settled where it is known what this provider rents under that name: its
    first habit that is still possible."""
    for habit in habits:
        if habit.called and any(card.form_factor != habit.called for card in cards):
            continue
        meant = catalog.card_by_id()[habit.gpu_id]
        kind = (meant.model, meant.memory_gb)
        kept = [c for c in cards if (meant.generic and (c.model, c.memory_gb) == kind) or c.gpu_id == meant.gpu_id]
        if kept:
            return kept
    return cards


def _renamed(cards: list[Card], habits: Sequence[_Habit]) -> list[Card]:
    """A provider that sells one card under another's name, e.g. an SXM board as "NVLink"."""
    names = {habit.called: habit.gpu_id for habit in habits}
    if not any(card.gpu_id in names for card in cards):
        return cards
    return [catalog.card_by_id()[names.get(card.gpu_id, card.gpu_id)] for card in cards]


def _unique(cards: Sequence[Card]) -> Card | None:
    """The one card that all of these are, as far as it can be told, or None."""
    kinds = {(card.model, card.memory_gb) for card in cards}
    if len(kinds) != 1:
        return None
    if len(cards) == 1:
        return cards[0]
    ordinary = [card for card in cards if card.form_factor == ""]
    return ordinary[0] if ordinary else catalog.generic_cards().get(kinds.pop())


def _candidates(cards: Iterable[Card]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(card.gpu_id for card in cards))


def _open(cards: Sequence[Card], rule: str, evidence: _Evidence) -> Identity:
    """An ambiguous identity: what all candidates share is told."""
    models = {card.model for card in cards}
    return Identity(
        status="ambiguous",
        vendor=cards[0].vendor if len({card.vendor for card in cards}) == 1 else None,
        model=models.pop() if len(models) == 1 else None,
        gpu_count=evidence.gpu_count,
        rule=rule,
        candidates=_candidates(cards),
    )


def _matched(card: Card, rule: str, sureness: Sureness, evidence: _Evidence) -> Identity:
    fraction = _fraction(card, evidence)
    count = evidence.gpu_count
    if fraction is not None and (count is None or count >= 1):
        count = fraction * (count or 1)
    return Identity(
        status="matched",
        gpu_id=card.gpu_id,
        vendor=card.vendor,
        model=card.model,
        form_factor=card.form_factor or None,
        memory_gb=card.memory_gb,
        gpu_count=count,
        gpu_fraction=fraction,
        rule=rule,
        sureness=sureness,
        candidates=(card.gpu_id,),
    )


def _fraction(card: Card, evidence: _Evidence) -> float | None:
    """The share of one GPU that is sold, by memory, or None for whole GPUs."""
    reading, count = evidence.reading, evidence.gpu_count
    if reading.slice_gb is not None:
        return min(1.0, reading.slice_gb / card.memory_gb)
    if reading.says_mig:
        smaller = [size for size in (*reading.beside, *reading.elsewhere) if size < 0.8 * card.memory_gb]
        if evidence.facts.memory_gb and evidence.facts.memory_gb < 0.8 * card.memory_gb:
            smaller.append(evidence.facts.memory_gb)
        return smaller[0] / card.memory_gb if smaller else None
    return count if count is not None and count < 1 else None


def _choose(cards: list[Card], evidence: _Evidence, habits: Sequence[_Habit]) -> Identity:
    reading, facts = evidence.reading, evidence.facts
    everything = cards
    steps = ["label"]
    by_architecture = [card for card in cards if card.architecture in reading.architectures]
    cards = _narrow(cards, by_architecture)
    forms = reading.forms | facts.forms
    by_memory_of_all = _by_memory(cards, evidence)
    cards, told = _by_form(cards, forms, len(reading.models))
    if not cards:
        return _open(everything, "form_factor_contradicts", evidence)
    if told:
        steps.append("form_factor")
    if reading.memory_types:
        by_type = [card for card in cards if card.memory_type in reading.memory_types]
        if by_type and len(by_type) < len(cards):
            cards = by_type
            steps.append("memory_type")
    cards = _by_slice(cards, reading)
    if not cards:
        return _open(everything, "slice_fits_no_card", evidence)
    renamed = _renamed(cards, habits)
    if renamed is not cards:
        cards = renamed
        steps.append("provider")
    by_memory = _by_memory(cards, evidence)
    if by_memory.contradicted:
        rest = by_memory_of_all.cards if not by_memory_of_all.contradicted else everything
        return _open(rest, by_memory.rule, evidence)
    cards = by_memory.cards
    if by_memory.rule:
        steps.append(by_memory.rule)
    return _settle(cards, steps, evidence, habits)


def _settle(cards: list[Card], steps: list[str], evidence: _Evidence, habits: Sequence[_Habit]) -> Identity:
    sureness: Sureness = "certain"
    if len(cards) > 1:
        settled = _by_provider(cards, habits)
        if settled is not cards:
            cards = settled
            steps.append("provider")
    card = _unique(cards)
    if card is None:
        usual = [card for card in cards if card.named_without_memory]
        if usual and len({c.model for c in cards}) == 1:
            card, sureness = _unique(usual), "usual"
            steps.append("usual_memory")
    if card is None:
        open_models = len({card.model for card in cards}) > 1
        return _open(cards, "+".join([*steps, "model_open" if open_models else "memory_open"]), evidence)
    return _matched(card, "+".join(steps), sureness, evidence)


def _count(evidence: Reading, given: float | None, named: float | None) -> tuple[float | None, bool]:
    """The number of GPUs, and whether two statements of it contradict each other."""
    stated = {float(count) for count in evidence.counts if count}
    if named is not None:
        stated = {named}
    if given is not None and given > 0:
        return given, bool(stated) and all(not isclose(given, count, rel_tol=0.15) for count in stated)
    if len(stated) == 1:
        return stated.pop(), False
    return None, False


def _not_a_gpu(reading: Reading, count: float | None, rule: str) -> Identity:
    thing = reading.accelerator
    return Identity(
        status="not_a_gpu",
        vendor=thing.vendor if thing else None,
        model=thing.model if thing else None,
        memory_gb=thing.memory_gb if thing else None,
        gpu_count=count,
        rule=rule,
        sureness="certain",
    )


def _clean_provider(provider: str) -> str:
    return provider.strip().lower().replace(" ", "").replace("-", "").replace("_", "").replace(".", "")


@cache
def _known_providers() -> frozenset[str]:
    return frozenset(name for row in catalog.rows("provider_gpus.csv") for name in row["provider"].split("|"))


def _upstream(raw_label: str) -> str | None:
    """Aggregators put the cloud that they resell before an underscore: "hyperstack__8xH100_80GB"."""
    name, mark, _ = raw_label.partition("_")
    name = _clean_provider(name)
    return name if mark and name in _known_providers() else None


def _machine_in(raw_label: str, provider: str) -> instances.Instance | None:
    """A machine name, or the one that stands among other words: "A100 40GB (a2-highgpu-1g)"."""
    machine = instances.find(raw_label, provider)
    if machine is not None or " " not in raw_label:
        return machine
    for chunk in raw_label.replace("(", " ").replace(")", " ").split():
        if not chunk.isalnum() and (found := instances.find(chunk, provider)):
            return found
    return None


@lru_cache(maxsize=200_000)
def _identify(
    raw_label: str, provider: str, kind: LabelKind, facts: Facts, given_count: float | None
) -> Identity:
    provider = _clean_provider(provider)
    upstream = _upstream(raw_label)
    machine = _machine_in(raw_label, provider)
    reading = read_label(machine.label if machine else raw_label)
    named_count = machine.gpu_count if machine else None
    share = fraction_in(raw_label) if machine is None else None
    count, contradicts = _count(
        reading, given_count if given_count is not None else facts.gpu_count, named_count
    )
    if share is not None and (count is None or count == 1):
        count = share
    prefix = "instance_type+" if machine else ""
    evidence = _Evidence(
        reading=reading,
        facts=facts,
        gpu_count=count,
        total_gb=machine.total_memory_gb if machine else None,
        is_instance=kind == "instance_type" or machine is not None,
    )
    cards = [card for model in reading.models for card in catalog.cards_of_model()[model]]
    if not cards:
        return _without_model(raw_label, reading, facts, evidence, provider, prefix)
    if reading.conflict:
        return _open(cards, f"{prefix}several_models", evidence)
    habits = _habits(provider, False)
    if upstream is not None and upstream != provider:
        habits = _habits(upstream, True) + habits
    identity = _choose(cards, evidence, habits)
    if contradicts and identity.status == "matched":
        identity = _open([catalog.card_by_id()[identity.gpu_id or ""]], "count_contradicts", evidence)
    return replace(identity, rule=prefix + identity.rule) if prefix else identity


def _without_model(
    raw_label: str, reading: Reading, facts: Facts, evidence: _Evidence, provider: str, prefix: str
) -> Identity:
    """The label names no GPU: another column may, or it names something else."""
    if reading.accelerator is not None:
        return _not_a_gpu(reading, evidence.gpu_count, f"{prefix}not_a_gpu")
    for label in facts.labels:
        found = _identify(label, provider, "gpu_name", replace(facts, labels=()), evidence.gpu_count)
        if found.status != "unknown":
            return replace(found, rule=f"name_column+{found.rule}")
    return Identity(status="unknown", gpu_count=evidence.gpu_count, rule="no_known_model")


def _with_name_column(
    identity: Identity, facts: Facts, arguments: tuple[str, LabelKind, float | None]
) -> Identity:
    """Let another column that names the GPU settle what the label leaves open; two names that contradict
    each other leave it ambiguous."""
    provider, kind, gpu_count = arguments
    for label in facts.labels:
        # A column beside a name that is settled often gives the model alone ("Nvidia A100"): what the
        # provider usually means by that is no contradiction.
        usual = "" if identity.status == "matched" else provider
        other = _identify(label, usual, "gpu_name", replace(facts, labels=()), gpu_count)
        if other.status not in ("matched", "ambiguous"):
            continue
        shared = [card for card in catalog.cards() if card.gpu_id in _shared(identity, other)]
        if not shared:
            return replace(
                identity,
                status="ambiguous",
                gpu_id=None,
                form_factor=None,
                memory_gb=None,
                rule="name_column_contradicts",
                sureness="none",
                candidates=identity.candidates + other.candidates,
            )
        card = _unique([card for card in shared if not card.generic] or shared)
        if card is not None and card.gpu_id != identity.gpu_id:
            identity = replace(
                identity,
                status="matched",
                gpu_id=card.gpu_id,
                vendor=card.vendor,
                model=card.model,
                form_factor=card.form_factor or None,
                memory_gb=card.memory_gb,
                rule=f"{identity.rule}+name_column",
                sureness="certain",
                candidates=(card.gpu_id,),
            )
    return identity


def _family_of(gpu_ids: Iterable[str]) -> set[str]:
    """The ids with every sibling that a generic id stands for."""
    ids = set(gpu_ids)
    for card in [catalog.card_by_id()[gpu_id] for gpu_id in ids]:
        if card.generic:
            ids |= {
                c.gpu_id for c in catalog.cards() if (c.model, c.memory_gb) == (card.model, card.memory_gb)
            }
    return ids


def _shared(one: Identity, other: Identity) -> set[str]:
    return _family_of(one.candidates) & _family_of(other.candidates)


def identify(
    raw_label: str,
    *,
    provider: str = "",
    kind: LabelKind = "gpu_name",
    context: Mapping[str, str | float | Decimal] | str = "",
    gpu_count: float | None = None,
) -> Identity:
    """Find the GPU that a label stands for.

    ``context`` holds the seller's other columns (a mapping, or text "key=value; key=value"; any other text
    is a remark and ignored). ``gpu_count`` is the number of GPUs of the offer; a fraction is a share of
    one. A label that leaves model or memory open is ambiguous, and so is one whose columns contradict it.
    """
    facts = columns.facts(context) if context else NO_FACTS
    identity = _identify(raw_label, provider, kind, facts, gpu_count)
    if facts.labels and identity.status in ("matched", "ambiguous"):
        return _with_name_column(identity, facts, (provider, kind, gpu_count))
    return identity
