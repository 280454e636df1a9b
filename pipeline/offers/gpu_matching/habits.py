"""What a provider means by the names it leaves open: catalog/provider_gpus.csv.

``gpu_id`` is the card (a generic id: its memory), ``called`` says when: empty for any name that leaves it
open, a form factor that the label must say, or a gpu_id that the label would otherwise be read as.
``basis`` is "offers" where the provider rents nothing else, "naming" where it names the others in full.
"""

from dataclasses import dataclass
from functools import cache

from pipeline.offers.gpu_matching import catalog
from pipeline.offers.gpu_matching.catalog import Card


@dataclass(frozen=True, slots=True)
class Habit:
    """One row: a provider's open name is this card."""

    called: str
    gpu_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """The habits that hold for a label, in order: one object per provider."""

    rows: tuple[Habit, ...] = ()


NO_HABITS = Habits()


def clean(provider: str) -> str:
    """A provider's name as the tables write it: letters and digits in lower case."""
    return "".join(char for char in provider.lower() if char.isalnum())


@cache
def _rows() -> tuple[tuple[frozenset[str], str, Habit], ...]:
    return tuple(
        (frozenset(row["provider"].split("|")), row["basis"], Habit(row["called"], row["gpu_id"]))
        for row in catalog.rows("provider_gpus.csv")
    )


@cache
def known_providers() -> frozenset[str]:
    """Every provider that has habits."""
    return frozenset[str]().union(*(names for names, _, _ in _rows()))


@cache
def of_label(provider: str, reseller_of: str | None) -> Habits:
    """The habits that hold for a label. Where a reseller writes the name, only what its upstream offers
    counts, not how the upstream names things."""
    own = tuple(habit for names, _, habit in _rows() if provider in names)
    if reseller_of is not None and reseller_of != provider:
        own = tuple(h for names, basis, h in _rows() if reseller_of in names and basis == "offers") + own
    return Habits(own) if own else NO_HABITS


def settled(cards: list[Card], habits: Habits) -> list[Card]:
    """What a label leaves open, settled by the first habit that is still possible."""
    for habit in habits.rows:
        if habit.called and any(card.form_factor != habit.called for card in cards):
            continue
        meant = catalog.card_by_id()[habit.gpu_id]
        kind = (meant.model, meant.memory_gb)
        kept = [c for c in cards if c is meant or (meant.generic and (c.model, c.memory_gb) == kind)]
        if kept:
            return kept
    return cards


def renamed(cards: list[Card], habits: Habits) -> list[Card]:
    """A provider that sells one card under another's name, e.g. an SXM board as "NVLink"."""
    names = {habit.called: habit.gpu_id for habit in habits.rows}
    if not any(card.gpu_id in names for card in cards):
        return cards
    return [catalog.card_by_id()[names.get(card.gpu_id, card.gpu_id)] for card in cards]
