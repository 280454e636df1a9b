"""One label, its seller's other columns and its count: what GPU that is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache, lru_cache
from math import isclose
from typing import Literal

from pipeline.offers.gpu_matching import catalog, habits, instances, lexer, sentences, settle
from pipeline.offers.gpu_matching import context as columns
from pipeline.offers.gpu_matching.context import NO_FACTS, Facts
from pipeline.offers.gpu_matching.habits import Habits
from pipeline.offers.gpu_matching.narrow import Evidence
from pipeline.offers.gpu_matching.reading import Reading
from pipeline.offers.gpu_matching.sentences import read_label
from pipeline.offers.gpu_matching.settle import Identity

LabelKind = Literal["gpu_name", "instance_type"]

_REMEMBERED = 200_000
_SAME_COUNT = 0.15
_NAME_AMONG_WORDS = re.compile(r"(?<![^ (])[A-Za-z]\w*[._-]\w[\w.-]*(?![^ ),])")
_FRACTION = re.compile(r"(?<![\d.])1/([2-9]|1[0-6])(?!\d)")


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
    name = _provider(provider)
    identity = _identify(raw_label, name, kind, facts, gpu_count)
    return _with_name_columns(identity, facts, name, gpu_count) if facts.labels else identity


def forget() -> None:
    """Empty every memory of labels met before; the catalogue stays read. For benchmarks."""
    lexer.WORDS.clear()
    sentences.forget()
    _choose.cache_clear()
    _decide.cache_clear()


@lru_cache(maxsize=1_000)
def _provider(provider: str) -> str:
    return habits.clean(provider)


def _identify(
    raw_label: str, provider: str, kind: LabelKind, facts: Facts, given_count: float | None
) -> Identity:
    machine = _machine_in(raw_label, provider)
    if machine is None:
        said, counts = read_label(raw_label)
        if "/" in raw_label and (share := _FRACTION.search(raw_label)) and given_count in (None, 1):
            given_count = 1 / int(share[1])
        return _decide(
            said, counts, facts, given_count, kind == "instance_type", _habits(raw_label, provider), "", None
        )
    said, _ = read_label(machine.label)
    counts = frozenset() if machine.gpu_count is None else frozenset({machine.gpu_count})
    return _decide(
        said,
        counts,
        facts,
        given_count,
        True,
        _habits(raw_label, provider),
        "instance_type+",
        machine.total_memory_gb,
    )


def _habits(raw_label: str, provider: str) -> Habits:
    """The provider's habits. Aggregators put the cloud that they resell before an underscore:
    "hyperstack__8xH100_80GB"."""
    upstream, mark, _ = raw_label.partition("_")
    if mark and (upstream := _provider(upstream)) in habits.known_providers():
        return habits.of_label(provider, upstream)
    return habits.of_label(provider, None)


def _machine_in(raw_label: str, provider: str) -> instances.Instance | None:
    """A machine name, or the one that stands among other words: "A100 40GB (a2-highgpu-1g)"."""
    machine = instances.find(raw_label, provider)
    if machine is not None or " " not in raw_label or not any(map(raw_label.__contains__, "(._")):
        return machine
    for name in _NAME_AMONG_WORDS.findall(raw_label):
        found = instances.find(name, provider)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=_REMEMBERED)
def _decide(
    said: Reading,
    counts: frozenset[float],
    facts: Facts,
    given_count: float | None,
    is_instance: bool,
    known_habits: Habits,
    prefix: str,
    total_gb: float | None,
) -> Identity:
    """The decision for everything that is known; remembered, as sellers repeat themselves."""
    count, contradicted = _count(counts, given_count if given_count is not None else facts.gpu_count)
    if not said.models:
        return _without_model(said, count, prefix)
    matters = count is not None and (
        count < 1 or total_gb is not None or facts.total_gb is not None or _has_modified_boards(said.models)
    )
    identity = _choose(said, facts, count if matters else None, is_instance, known_habits, total_gb)
    if not matters and count is not None and count > 1 and identity.rule.endswith("contradicts"):
        # A memory that fits no card may be that of all GPUs together.
        identity = _choose(said, facts, count, is_instance, known_habits, total_gb)
    if contradicted and identity.status == "matched":
        return settle.open_identity([catalog.card_by_id()[identity.gpu_id or ""]], "count_contradicts", count)
    return replace(identity, gpu_count=_sold_gpus(count, identity.gpu_fraction), rule=prefix + identity.rule)


@cache
def _has_modified_boards(models: tuple[str, ...]) -> bool:
    return any(card.is_modified for model in models for card in catalog.cards_of_model()[model])


def _sold_gpus(count: float | None, fraction: float | None) -> float | None:
    """GPUs of an offer: slices count as their share."""
    if fraction is None or (count is not None and count < 1):
        return count
    return fraction * (count or 1)


@lru_cache(maxsize=_REMEMBERED)
def _choose(
    said: Reading,
    facts: Facts,
    count: float | None,
    is_instance: bool,
    known_habits: Habits,
    total_gb: float | None,
) -> Identity:
    cards = [card for model in said.models for card in catalog.cards_of_model()[model]]
    if said.conflict:
        return settle.open_identity(cards, "several_models", count)
    return settle.choose(cards, Evidence(said, facts, count, total_gb, is_instance), known_habits)


def _count(stated: frozenset[float], given: float | None) -> tuple[float | None, bool]:
    """The number of GPUs, and whether the label states another one. A share is often listed as one."""
    if given == 1 and stated and max(stated) < 1:
        return max(stated), False
    if given is not None and given <= 0:
        return given, False
    if given is not None:
        return given, bool(stated) and not any(isclose(given, n, rel_tol=_SAME_COUNT) for n in stated)
    return (next(iter(stated)), False) if len(stated) == 1 else (None, False)


def _without_model(said: Reading, count: float | None, prefix: str) -> Identity:
    """No GPU is named: something else may be."""
    thing = said.accelerator
    if thing is None:
        return Identity(status="unknown", gpu_count=count, rule="no_known_model")
    return Identity(
        status="not_a_gpu",
        vendor=thing.vendor,
        model=thing.model,
        memory_gb=thing.memory_gb,
        gpu_count=count,
        rule=f"{prefix}not_a_gpu",
        confidence="certain",
    )


def _with_name_columns(identity: Identity, facts: Facts, provider: str, gpu_count: float | None) -> Identity:
    """Let a column that names the GPU settle what the label leaves open; two names that contradict each
    other leave it ambiguous."""
    nameless = replace(facts, labels=())
    for label in facts.labels:
        # A column beside a name that is settled often gives the model alone ("Nvidia A100"): what the
        # provider usually means by that is no contradiction.
        usual = "" if identity.status == "matched" else provider
        other = _identify(label, usual, "gpu_name", nameless, gpu_count)
        if other.status not in ("matched", "ambiguous"):
            continue
        if identity.status == "unknown":
            identity = replace(other, rule=f"name_column+{other.rule}")
        elif identity.status in ("matched", "ambiguous"):
            identity = _agreed(identity, other)
    return identity


def _agreed(identity: Identity, other: Identity) -> Identity:
    """What two names have in common."""
    both = _with_siblings(identity.candidates) & _with_siblings(other.candidates)
    shared = [card for card in catalog.cards() if card.gpu_id in both]
    if not shared:
        return Identity(
            status="ambiguous",
            gpu_count=identity.gpu_count,
            rule="name_column_contradicts",
            candidates=identity.candidates + other.candidates,
        )
    card = settle.unique([card for card in shared if not card.generic] or shared)
    if card is None or card.gpu_id == identity.gpu_id:
        return identity
    return replace(
        identity,
        status="matched",
        gpu_id=card.gpu_id,
        vendor=card.vendor,
        model=card.model,
        form_factor=card.form_factor or None,
        memory_gb=card.memory_gb,
        rule=f"{identity.rule}+name_column",
        confidence="certain",
        candidates=(card.gpu_id,),
    )


def _with_siblings(gpu_ids: Iterable[str]) -> set[str]:
    """The ids with every card that a generic one stands for."""
    ids = set(gpu_ids)
    kinds = {(c.model, c.memory_gb) for c in map(catalog.card_by_id().__getitem__, ids) if c.generic}
    return ids | {card.gpu_id for card in catalog.cards() if (card.model, card.memory_gb) in kinds}
