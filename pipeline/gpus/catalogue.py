"""Catalogue tables for the matcher: cards by model, spellings of models, accelerators that are not GPUs, and
the cards that providers mean by ambiguous names."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Literal

from pydantic import BeforeValidator

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows, catalog_table

EXPLICIT_FORM_FACTORS = frozenset({"Laptop", "SFF", "Server", "MXM"})
"""Form factors that sellers always state if the model also exists as an ordinary card."""


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU in catalog/gpus.csv. ``memory_gb`` is the nominal memory per GPU in GB."""

    gpu_id: str
    vendor: str
    model: str
    memory_gb: float
    architecture: Annotated[str, BeforeValidator(lambda text: text.split()[0].lower())]
    segment: str
    named_without_memory: bool
    gpus_per_board: int
    form_factor: str = ""
    memory_type: Annotated[str, BeforeValidator(str.lower)] = ""
    derived_from: str = ""

    @property
    def generic(self) -> bool:
        """True if the card represents a model and memory size of unknown form factor."""
        return bool(self.derived_from)

    @property
    def is_modified(self) -> bool:
        """True if the card is an aftermarket board with more memory than the vendor's."""
        return self.form_factor.endswith("-mod")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A rented device that is not a GPU: it is recognized so that it can be counted separately, and is never
    ranked. ``memory_gb`` is per device."""

    name: str
    vendor: str | None = None
    model: str | None = None
    memory_gb: float | None = None

    @property
    def is_host(self) -> bool:
        """True for a CPU, which a machine with GPUs also has."""
        return self.model is None


@cache
def cards() -> tuple[Card, ...]:
    """Return every GPU in the catalogue, without the accelerators that are not GPUs."""
    return tuple(card for card in catalog_table("gpus.csv", Card) if card.segment != "accelerator")


@cache
def cards_of_model() -> Mapping[str, list[Card]]:
    """Return the cards of each model, without generic cards."""
    found = defaultdict(list)
    for card in cards():
        if not card.generic:
            found[card.model].append(card)
    return dict(found)


@cache
def generic_cards() -> Mapping[tuple[str, float], Card]:
    """Return the generic card for each model and memory size in GB."""
    return {(card.model, card.memory_gb): card for card in cards() if card.generic}


@cache
def card_by_id() -> Mapping[str, Card]:
    """Return every card, keyed by gpu_id."""
    return {card.gpu_id: card for card in cards()}


@dataclass(frozen=True, slots=True)
class Word:
    """One row of catalog/label_words.csv: a word, or several, that may stand beside a card's name without
    changing the card. ``seen_in`` says where."""

    word: str
    kind: Literal["brand", "filler", "aside", "slice", "phrase"]
    seen_in: str
    reason: str
    vendor: str = ""


@cache
def _words() -> list[Word]:
    return catalog_table("label_words.csv", Word)


@cache
def words_of_kind(kind: str) -> frozenset[str]:
    """Return the words of a kind in label_words.csv."""
    return frozenset(row.word for row in _words() if row.kind == kind)


@cache
def phrases() -> re.Pattern[str]:
    """Return a pattern for the phrases in label_words.csv: several words that say no more than "GPU"."""
    found = sorted(words_of_kind("phrase"), key=len, reverse=True)
    return re.compile(rf"(?<![^ ])(?:{'|'.join(map(re.escape, found))})(?![^ ])")


@cache
def first_words_of_phrases() -> frozenset[str]:
    """Return the words with which phrases begin."""
    return frozenset(phrase.split()[0] for phrase in words_of_kind("phrase"))


@cache
def vendor_of_brand() -> Mapping[str, str]:
    """Return the vendor of each brand. Brands are optional: a label may omit them or put them anywhere."""
    return {row.word: row.vendor for row in _words() if row.kind == "brand"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """The models that a sequence of words can mean, and the cards if not all those of the models. A weak
    spelling is also an ordinary word or number ("A2", "4090", "Grace Hopper"), and is used only if a label
    has no strong spelling."""

    models: tuple[str, ...]
    weak: bool
    gpu_ids: frozenset[str] = frozenset()


# Series names that sellers omit: "A6000", "7900 XTX", "W7900".
_OPTIONAL_SERIES = frozenset({"rtx", "rx", "quadro", "arc", "grid", "pro"})

# Short names that also occur in machine names, regions or versions.
_WEAK_CODES = frozenset({"a2", "l2", "m4", "m6", "p6", "t400", "t600", "t1000", "c500", "k10", "r200"})


def _model_spellings(model: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield each spelling of a model's name, as words, and whether the spelling is weak."""
    words = tuple(word for word in re.findall(r"[a-z0-9]+", model.lower()) if word not in vendor_of_brand())
    yield words, " ".join(words) in _WEAK_CODES
    if model.endswith(")"):
        yield words[:-1], False  # "Titan X" without "(Pascal)"
    brand, rest = words[0], words[1:]
    if words[:2] == ("quadro", "rtx"):
        yield ("q", *rest), False  # Vast.ai's "Q RTX 8000"
        yield ("qrtx", *rest[1:]), False
    if brand == "titan":
        yield (brand + rest[0],), False
    if brand in {"rtx", "gtx"} and rest and rest[0].isdigit() and "ada" not in rest:
        yield rest, len(rest) == 1 or rest == (rest[0], "d")
    elif brand in _OPTIONAL_SERIES and rest and (len(rest) > 1 or not rest[0].isdigit()) and rest[0] != "vii":
        yield rest, False


def _suffix_orders(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield variants: "4070 ti super" is also written "4070 super ti", "4070s ti" and "4070 ti s"."""
    yield words
    if "super" in words:
        short = tuple("s" if word == "super" else word for word in words)
        yield short
        if words[-2:] == ("ti", "super"):
            yield (*words[:-2], "super", "ti")
            yield (*words[:-2], "s", "ti")


@cache
def spellings() -> Mapping[tuple[str, ...], Spelling]:
    """Return every known spelling, in lower-case words, with the models that it can mean."""
    found: dict[tuple[str, ...], Spelling] = {}
    for model in cards_of_model():
        for words, weak in _model_spellings(model):
            for ordered in _suffix_orders(words):
                found.setdefault(ordered, Spelling((model,), weak))
    for row in catalog_rows("gpu_aliases.csv"):
        found[tuple(row["alias"].split())] = _alias(row)
    return found


def _alias(row: Mapping[str, str]) -> Spelling:
    """Return the meaning of a row of gpu_aliases.csv: models, or single cards of a model."""
    models, gpu_ids = [], []
    for name in row["means"].split("|"):
        if name not in cards_of_model() and name not in card_by_id():
            raise CatalogError(f"gpu_aliases.csv, {row['alias']!r}: gpus.csv has no {name!r}")
        models.append(name if name in cards_of_model() else card_by_id()[name].model)
        gpu_ids += [name] if name in card_by_id() else [card.gpu_id for card in cards_of_model()[name]]
    only = frozenset(gpu_ids) if models != row["means"].split("|") else frozenset[str]()
    return Spelling(tuple(dict.fromkeys(models)), row["strength"] == "weak", only)


@cache
def accelerators() -> Mapping[tuple[str, ...], Accelerator]:
    """Return the accelerators that are not GPUs, keyed by the words of their names."""
    return {tuple(row.name.split()): row for row in catalog_table("other_accelerators.csv", Accelerator)}


@dataclass(frozen=True, slots=True, eq=False)
class ProviderRule:
    """One row of provider_gpus.csv: an ambiguous name used by these providers means ``gpu_id``, or a generic
    card's model and memory size. ``applies_to`` restricts the rule to labels with this form factor, or names
    the card that ``gpu_id`` replaces; if it is empty, the rule applies to every ambiguous name."""

    provider: Annotated[frozenset[str], BeforeValidator(lambda text: text.split("|"))]
    gpu_id: str
    basis: Literal["offers", "naming"]
    applies_to: str = ""


@lru_cache(maxsize=1_000)
def provider_key(name: str) -> str:
    """Return a provider's name as it appears in the tables: only letters and digits, in lower case."""
    return "".join(char for char in name.lower() if char.isalnum())


@cache
def _provider_rules() -> list[ProviderRule]:
    return catalog_table("provider_gpus.csv", ProviderRule)


@cache
def providers_with_rules() -> frozenset[str]:
    """Return the key of every provider in provider_gpus.csv."""
    return frozenset[str]().union(*(rule.provider for rule in _provider_rules()))


@cache
def provider_rules(provider: str, upstream: str | None = None) -> tuple[ProviderRule, ...]:
    """Return the rules for a label from ``provider``, in order of precedence. For a machine resold from
    ``upstream``, the rules based on the upstream's offers come first; rules based on the upstream's naming do
    not apply, because the reseller named the machine."""
    own = tuple(rule for rule in _provider_rules() if provider in rule.provider)
    if upstream is None or upstream == provider:
        return own
    offered = (rule for rule in _provider_rules() if upstream in rule.provider and rule.basis == "offers")
    return (*offered, *own)
