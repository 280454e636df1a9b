"""Which card of the catalogue a label can only be, or that it can be several, or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.offers.gpu_matching import catalog, habits, narrow
from pipeline.offers.gpu_matching.catalog import Card
from pipeline.offers.gpu_matching.habits import Habits
from pipeline.offers.gpu_matching.narrow import Evidence

Status = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]
Sureness = Literal["certain", "usual", "none"]

_WHOLE_CARD = 0.8
"""A size below this share of a card's memory is a slice's where MIG is named."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a label was found to be.

    ``memory_gb`` is that of one device: a whole GPU, or the MIG or vGPU slice that is sold, which is then
    ``gpu_fraction`` of one. ``gpu_count`` is in whole GPUs, slices and shares being fractions.
    ``candidates`` are the gpu_ids that it can be; ``confidence`` is "usual" where the memory is the one that
    sellers mean when they give none."""

    status: Status
    gpu_id: str | None = None
    vendor: str | None = None
    model: str | None = None
    form_factor: str | None = None
    memory_gb: float | None = None
    gpu_count: float | None = None
    gpu_fraction: float | None = None
    rule: str = ""
    confidence: Sureness = "none"
    candidates: tuple[str, ...] = ()


def unique(cards: Sequence[Card]) -> Card | None:
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


def open_identity(cards: Sequence[Card], rule: str, gpu_count: float | None) -> Identity:
    """An ambiguous identity: what all candidates share is told."""
    models = {card.model for card in cards}
    return Identity(
        status="ambiguous",
        vendor=cards[0].vendor if len({card.vendor for card in cards}) == 1 else None,
        model=models.pop() if len(models) == 1 else None,
        gpu_count=gpu_count,
        rule=rule,
        candidates=_candidates(cards),
    )


def _matched(card: Card, rule: str, confidence: Sureness, evidence: Evidence) -> Identity:
    slice_gb = _slice_gb(card, evidence)
    count = evidence.gpu_count
    fraction = min(1.0, slice_gb / card.memory_gb) if slice_gb else count if count and count < 1 else None
    return Identity(
        status="matched",
        gpu_id=card.gpu_id,
        vendor=card.vendor,
        model=card.model,
        form_factor=card.form_factor or None,
        memory_gb=slice_gb or card.memory_gb,
        gpu_count=count,
        gpu_fraction=fraction,
        rule=rule,
        confidence=confidence,
        candidates=(card.gpu_id,),
    )


def _slice_gb(card: Card, evidence: Evidence) -> float | None:
    """The memory of the MIG or vGPU slice that is sold, or None for whole GPUs."""
    reading = evidence.reading
    if reading.slice_gb is not None or not reading.says_mig:
        return reading.slice_gb
    sizes = (*reading.beside, *reading.elsewhere, evidence.facts.memory_gb or card.memory_gb)
    return next((size for size in sizes if size < _WHOLE_CARD * card.memory_gb), None)


def choose(cards: list[Card], evidence: Evidence, known_habits: Habits) -> Identity:
    """The card that a reading can only be. ``cards`` are all cards of the models that were named."""
    reading, everything, steps = evidence.reading, cards, ["label"]
    cards = narrow.by_architecture(cards, reading)
    if len(reading.models) > 1:
        # A word like "server" is a form factor only of the model that has it: the memory tells which first.
        by_memory = narrow.by_memory(cards, evidence)
        cards = cards if by_memory.contradicted else by_memory.cards
    unformed = cards
    cards, told = narrow.by_form(cards, reading.forms | evidence.facts.forms)
    if not cards:
        return open_identity(everything, "form_factor_contradicts", evidence.gpu_count)
    if told:
        steps.append("form_factor")
    typed = narrow.by_memory_type(cards, reading)
    if len(typed) < len(cards):
        cards = typed
        steps.append("memory_type")
    cards = narrow.by_slice(cards, reading)
    if not cards:
        return open_identity(everything, "slice_fits_no_card", evidence.gpu_count)
    renamed = habits.renamed(cards, known_habits)
    if renamed is not cards:
        cards = renamed
        steps.append("provider")
    by_memory = narrow.by_memory(cards, evidence)
    if by_memory.contradicted:
        other = narrow.by_memory(unformed, evidence)
        candidates = everything if other.contradicted else other.cards
        return open_identity(candidates, by_memory.rule, evidence.gpu_count)
    if by_memory.rule:
        steps.append(by_memory.rule)
    return _settle(by_memory.cards, steps, evidence, known_habits)


def _settle(cards: list[Card], steps: list[str], evidence: Evidence, known_habits: Habits) -> Identity:
    confidence: Sureness = "certain"
    if len(cards) > 1:
        settled = habits.settled(cards, known_habits)
        if settled is not cards:
            cards = settled
            steps.append("provider")
    card = unique(cards)
    if card is None and len({card.model for card in cards}) == 1:
        card = unique([card for card in cards if card.named_without_memory])
        if card is not None:
            confidence = "usual"
            steps.append("usual_memory")
    if card is not None:
        return _matched(card, "+".join(steps), confidence, evidence)
    what = "memory_open" if len({card.model for card in cards}) == 1 else "model_open"
    return open_identity(cards, "+".join([*steps, what]), evidence.gpu_count)
