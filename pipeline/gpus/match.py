"""The decision on a label: it means one card, is ambiguous, is unknown, or does not name a GPU."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from math import isclose
from typing import Any

from pipeline.contracts.listing import LabelKind
from pipeline.contracts.offer import MatchConfidence, MatchStatus
from pipeline.gpus import candidates, catalogue, tokens
from pipeline.gpus.candidates import Evidence
from pipeline.gpus.catalogue import Accelerator, Card, ProviderRule
from pipeline.gpus.instance_types import InstanceType, find_instance_type
from pipeline.gpus.label import (
    ALTERNATIVES,
    NO_COLUMNS,
    Columns,
    ParsedLabel,
    alternative_sizes,
    names_alternatives,
    parse_columns,
    parse_label,
)

_COUNT_TOLERANCE = 0.15
"""Maximum relative difference between two counts that agree."""
_WHOLE_CARD_SHARE = 0.8
"""If a label mentions MIG, a memory size below this share of the card's memory is that of a slice."""
_NAME_AMONG_WORDS = re.compile(r"(?<![^ (])[A-Za-z]\w*[._-]\w[\w.-]*(?![^ ),])")
_FRACTION = re.compile(r"(?<![\d.])1/([2-9]|1[0-6])(?!\d)")


@dataclass(frozen=True, slots=True)
class Identity:
    """The GPU that a label names.

    ``memory_gb`` is the memory of one device: a whole GPU, or the MIG or vGPU slice that is sold, which is
    ``gpu_fraction`` of a GPU. ``gpu_count`` is in whole GPUs; slices and shares count as fractions. ``rule``
    names the deciding evidence, and ``candidates`` lists the possible gpu_ids. ``confidence`` is "usual" if
    no memory size is stated and the model's usual size is assumed."""

    status: MatchStatus
    gpu_id: str | None = None
    vendor: str | None = None
    model: str | None = None
    form_factor: str | None = None
    memory_gb: float | None = None
    gpu_count: float | None = None
    gpu_fraction: float | None = None
    rule: str = ""
    confidence: MatchConfidence = "none"
    candidates: tuple[str, ...] = ()

    @classmethod
    def of(cls, card: Card, rule: str, confidence: MatchConfidence = "certain", **more: Any) -> "Identity":
        """Return the identity of a whole card, with the fields in ``more`` replaced."""
        facts: dict[str, Any] = {
            "gpu_id": card.gpu_id,
            "vendor": card.vendor,
            "model": card.model,
            "form_factor": card.form_factor or None,
            "memory_gb": card.memory_gb,
            "candidates": (card.gpu_id,),
        }
        return cls("matched", rule=rule, confidence=confidence, **facts | more)


def identify(
    raw_label: str,
    *,
    provider: str = "",
    kind: LabelKind = "gpu_name",
    context: Mapping[str, str | float | Decimal] | str = "",
    gpu_count: float | None = None,
) -> Identity:
    """Find the GPU that a label names.

    ``context`` gives the seller's other columns (a mapping, or text like "key=value; key=value"; other text
    is ignored as a remark). ``gpu_count`` is the offer's number of GPUs; a fraction is a share of one GPU. A
    label is ambiguous if it leaves the model or memory size open, or if a column contradicts it.
    """
    columns = parse_columns(context) if context else NO_COLUMNS
    key = catalogue.provider_key(provider)
    identity = _identify(raw_label, key, kind, columns, gpu_count)
    return _with_name_columns(identity, columns, key, gpu_count) if columns.names else identity


def _identify(
    raw_label: str, provider: str, kind: LabelKind, columns: Columns, given_count: float | None
) -> Identity:
    rules = _provider_rules(raw_label, provider)
    machine, other_words = _instance_type_in(raw_label, provider)
    parsed, counts = parse_label(other_words)
    if machine is not None:
        named_beside = frozenset(() if parsed.is_weak else parsed.models)
        of_machine, _ = parse_label(machine.gpu_label)
        if of_machine.models and named_beside and named_beside.isdisjoint(of_machine.models):
            cards = _cards_of(*of_machine.models, *parsed.models)
            return _ambiguous(cards, "instance_type_contradicts")
        if of_machine.models or not named_beside:
            # The two counts in "4x H100 (p5.48xlarge)" leave the number of GPUs open; "2x p5.48xlarge" counts
            # machines; "1x A10" beside a machine that has a fraction of an A10 means that fraction.
            stated = counts if named_beside else frozenset[float]()
            if machine.gpu_count is not None:
                stated = (stated - {1} if machine.gpu_count < 1 else stated) | {machine.gpu_count}
            counts = stated
            memory_gb = machine.total_memory_gb
            return _decide(of_machine, counts, columns, given_count, rules, True, "instance_type+", memory_gb)
    if parsed.models and ALTERNATIVES.search(other_words) and (rule := _alternatives(other_words, parsed)):
        return _ambiguous(_cards_of(*parsed.models), rule)
    if parsed.is_bare_code and not (provider or _has_brand(other_words)):
        # A seller's list of GPUs has an A2 among them; elsewhere, "A2" and "M4" also name other things.
        return _ambiguous(_cards_of(*parsed.models), "code_without_brand")
    if "/" in raw_label and (share := _FRACTION.search(raw_label)) and given_count in (None, 1):
        given_count = 1 / int(share[1])
    return _decide(parsed, counts, columns, given_count, rules, kind == "instance_type", "", None)


def _provider_rules(raw_label: str, provider: str) -> tuple[ProviderRule, ...]:
    """Return the rules for the provider. Resellers put the upstream cloud's name before an underscore:
    "hyperstack__8xH100_80GB"."""
    upstream, underscore, _ = raw_label.partition("_")
    if underscore and (key := catalogue.provider_key(upstream)) in catalogue.providers_with_rules():
        return catalogue.provider_rules(provider, key)
    return catalogue.provider_rules(provider)


def _instance_type_in(raw_label: str, provider: str) -> tuple[InstanceType | None, str]:
    """Return the machine that a label names, alone or among other words ("A100 40GB (a2-highgpu-1g)"), and
    the other words, with HOST_WORD for the machine's name ("T4 (n1-standard-4)" describes the host)."""
    machine = find_instance_type(raw_label, provider)
    if machine is not None:
        return machine, ""
    if " " in raw_label and any(map(raw_label.__contains__, "(._-")):
        for name in _NAME_AMONG_WORDS.findall(raw_label):
            machine = find_instance_type(name, provider)
            if machine is not None:
                return machine, raw_label.replace(name, f" {tokens.HOST_WORD} ")
    return None, raw_label


def _has_brand(label: str) -> bool:
    return not catalogue.words_of_kind("brand").isdisjoint(tokens.split_words(label))


def _alternatives(label: str, parsed: ParsedLabel) -> str:
    """Return the rule by which a label leaves open which of several cards it means, or ""."""
    if names_alternatives(label):
        return "several_models"
    sizes = frozenset(alternative_sizes(label))
    known = {card.memory_gb for card in _cards_of(*parsed.models)} if sizes else sizes
    return "several_memories" if len(sizes) > 1 and sizes <= known else ""


def _cards_of(*models: str) -> list[Card]:
    return [card for model in models for card in catalogue.cards_of_model()[model]]


@lru_cache(maxsize=tokens.CACHE_SIZE)
def _decide(
    parsed: ParsedLabel,
    counts: frozenset[float],
    columns: Columns,
    given_count: float | None,
    rules: tuple[ProviderRule, ...],
    is_instance_type: bool,
    rule_prefix: str,
    machine_memory_gb: float | None,
) -> Identity:
    """Return the identity of a parsed label, given its counts."""
    given = given_count if given_count is not None else columns.gpu_count
    count, is_contradicted = _gpu_count(counts, given)
    if not parsed.models:
        return _without_model(parsed.accelerator, count, rule_prefix)
    count_matters = count is not None and (
        count < 1
        or machine_memory_gb is not None
        or columns.total_memory_gb is not None
        or _has_modified_boards(parsed.models)
    )
    # Otherwise memory sizes are per GPU, and labels that differ only in their counts share a cached choice.
    evidence = Evidence(
        parsed, columns, count if count_matters else None, machine_memory_gb, is_instance_type
    )
    identity = _choose(evidence, rules)
    if not count_matters and count is not None and count > 1 and identity.rule.endswith("contradicts"):
        # A memory size that fits no card may be the total of all GPUs.
        identity = _choose(replace(evidence, gpu_count=count), rules)
    if is_contradicted and identity.status == "matched":
        card = catalogue.card_by_id()[identity.gpu_id or ""]
        return replace(_ambiguous([card], "count_contradicts"), gpu_count=count)
    if parsed.has_unknown_words and identity.status == "matched":
        # A count can be part of an unknown name: "GN21-X11", "VENTUS 3X".
        card = catalogue.card_by_id()[identity.gpu_id or ""]
        return replace(_ambiguous([card], f"{rule_prefix}unknown_word"), gpu_count=given)
    sold_gpus = _sold_gpus(count, identity.gpu_fraction)
    return replace(identity, gpu_count=sold_gpus, rule=rule_prefix + identity.rule)


def _gpu_count(stated: frozenset[float], given: float | None) -> tuple[float | None, bool]:
    """Return the number of GPUs, and whether the label's counts contradict it. A given count of 1 can stand
    for the share of a GPU that the label states."""
    if given is None:
        return (next(iter(stated)), False) if len(stated) == 1 else (None, False)
    if given == 1 and stated and max(stated) < 1:
        return max(stated), False
    agrees = any(isclose(given, count, rel_tol=_COUNT_TOLERANCE) for count in stated)
    return given, given > 0 and bool(stated) and not agrees


def _sold_gpus(count: float | None, fraction: float | None) -> float | None:
    """Return the number of GPUs in an offer; a slice counts as its share of a GPU."""
    if fraction is None or (count is not None and count < 1):
        return count
    return fraction * (count or 1)


@cache
def _has_modified_boards(models: tuple[str, ...]) -> bool:
    return any(card.is_modified for model in models for card in catalogue.cards_of_model()[model])


def _without_model(accelerator: Accelerator | None, count: float | None, rule_prefix: str) -> Identity:
    """Return the identity of a label that names no GPU: another accelerator, or unknown."""
    if accelerator is None:
        return Identity(status="unknown", gpu_count=count, rule="no_known_model")
    return Identity(
        status="not_a_gpu",
        vendor=accelerator.vendor,
        model=accelerator.model,
        memory_gb=accelerator.memory_gb,
        gpu_count=count,
        rule=f"{rule_prefix}not_a_gpu",
        confidence="certain",
    )


@lru_cache(maxsize=tokens.CACHE_SIZE)
def _choose(evidence: Evidence, rules: tuple[ProviderRule, ...]) -> Identity:
    """Return the identity, without a count, of the card of a named model that agrees with all evidence."""
    parsed = evidence.label
    all_cards = [c for c in _cards_of(*parsed.models) if not parsed.gpu_ids or c.gpu_id in parsed.gpu_ids]
    if parsed.conflict:
        return _ambiguous(all_cards, "several_models")
    cards, of_any_form_factor, steps = _of_stated_kind(all_cards, evidence)
    if not cards:
        return _ambiguous(all_cards, steps[-1])
    renamed = _renamed_by_provider(cards, rules)
    if renamed is not cards:
        cards = renamed
        steps.append("provider")
    by_memory = candidates.by_memory(cards, evidence)
    if by_memory.contradicted:
        other = candidates.by_memory(of_any_form_factor, evidence)
        return _ambiguous(all_cards if other.contradicted else other.cards, by_memory.rule)
    if by_memory.rule:
        steps.append(by_memory.rule)
    return _single_card(by_memory.cards, steps, evidence, rules)


def _of_stated_kind(cards: list[Card], evidence: Evidence) -> tuple[list[Card], list[Card], list[str]]:
    """Return the cards of the stated architecture, form factor, memory type and slice, those of any form
    factor, and the deciding steps. If no card is left, the last step names the contradiction."""
    parsed, steps = evidence.label, ["label"]
    cards = candidates.by_architecture(cards, parsed)
    if len(parsed.models) > 1:
        # A word like "server" is a form factor of only some models, so the memory size selects models first.
        by_memory = candidates.by_memory(cards, evidence)
        cards = cards if by_memory.contradicted else by_memory.cards
    if not cards:
        return [], [], ["architecture_contradicts"]
    form_factors = parsed.form_factors | evidence.columns.form_factors
    of_form, has_decided = candidates.by_form_factor(cards, form_factors)
    if not of_form:
        return [], cards, ["form_factor_contradicts"]
    if has_decided:
        steps.append("form_factor")
    of_type = candidates.by_memory_type(of_form, parsed)
    if not of_type:
        return [], cards, ["memory_type_contradicts"]
    if len(of_type) < len(of_form):
        steps.append("memory_type")
    of_slice = candidates.by_mig_profile(of_type, parsed)
    return of_slice, cards, steps if of_slice else ["slice_fits_no_card"]


def _single_card(
    cards: list[Card], steps: list[str], evidence: Evidence, rules: Iterable[ProviderRule]
) -> Identity:
    """Return the one card left, chosen if necessary by what the provider means or by the usual memory;
    otherwise an ambiguous identity."""
    confidence: MatchConfidence = "certain"
    if len(cards) > 1:
        meant = _meant_by_provider(cards, rules)
        if meant is not cards:
            cards = meant
            steps.append("provider")
    card = _common_card(cards)
    has_one_model = len({card.model for card in cards}) == 1
    if card is None and has_one_model:
        card = _common_card([card for card in cards if card.named_without_memory])
        if card is not None:
            confidence = "usual"
            steps.append("usual_memory")
    if card is not None and _is_open_slice(card, evidence):
        return _ambiguous(cards, "slice_open")
    if card is not None:
        return _matched(card, "+".join(steps), confidence, evidence)
    steps.append("memory_open" if has_one_model else "model_open")
    return _ambiguous(cards, "+".join(steps))


def _common_card(cards: Sequence[Card]) -> Card | None:
    """Return the card that represents all the given cards; None if their models or memory sizes differ."""
    kinds = {(card.model, card.memory_gb) for card in cards}
    if len(kinds) != 1:
        return None
    if len(cards) == 1:
        return cards[0]
    ordinary = [card for card in cards if card.form_factor == ""]
    return ordinary[0] if ordinary else catalogue.generic_cards().get(kinds.pop())


def _meant_by_provider(cards: list[Card], rules: Iterable[ProviderRule]) -> list[Card]:
    """Return the cards that the provider's first applicable rule means, or all cards if no rule applies."""
    for rule in rules:
        if rule.applies_to and any(card.form_factor != rule.applies_to for card in cards):
            continue
        meant = catalogue.card_by_id()[rule.gpu_id]
        kind = (meant.model, meant.memory_gb)
        kept = [c for c in cards if c is meant or (meant.generic and (c.model, c.memory_gb) == kind)]
        if kept:
            return kept
    return cards


def _renamed_by_provider(cards: list[Card], rules: Iterable[ProviderRule]) -> list[Card]:
    """Return the cards, replacing any whose name the provider uses for another card ("NVLink" for SXM)."""
    meant = {rule.applies_to: rule.gpu_id for rule in rules}
    if not any(card.gpu_id in meant for card in cards):
        return cards
    return [catalogue.card_by_id()[meant.get(card.gpu_id, card.gpu_id)] for card in cards]


def _ambiguous(cards: Sequence[Card], rule: str) -> Identity:
    """Return an ambiguous identity, with the vendor and the model if all candidates share them."""
    vendors, models = {card.vendor for card in cards}, {card.model for card in cards}
    return Identity(
        status="ambiguous",
        vendor=vendors.pop() if len(vendors) == 1 else None,
        model=models.pop() if len(models) == 1 else None,
        rule=rule,
        candidates=tuple(dict.fromkeys(card.gpu_id for card in cards)),
    )


def _matched(card: Card, rule: str, confidence: MatchConfidence, evidence: Evidence) -> Identity:
    slice_gb, count = _slice_gb(card, evidence), evidence.gpu_count
    share = count if count and count < 1 else None
    return Identity.of(
        card,
        rule,
        confidence,
        memory_gb=slice_gb or card.memory_gb,
        gpu_fraction=min(1.0, slice_gb / card.memory_gb) if slice_gb else share,
    )


def _is_open_slice(card: Card, evidence: Evidence) -> bool:
    """True if a label mentions MIG without a slice's memory size or share: an "H100 MIG" is not an H100."""
    is_share = evidence.gpu_count is not None and evidence.gpu_count < 1
    return evidence.label.mentions_mig and not is_share and _slice_gb(card, evidence) is None


def _slice_gb(card: Card, evidence: Evidence) -> float | None:
    """Return the memory of the MIG or vGPU slice that is sold, in GB; None for whole GPUs."""
    parsed = evidence.label
    if parsed.slice_gb is not None or not parsed.mentions_mig:
        return parsed.slice_gb
    sizes = (*parsed.adjacent_memories, *parsed.other_memories, evidence.columns.memory_gb or card.memory_gb)
    return next((size for size in sizes if size < _WHOLE_CARD_SHARE * card.memory_gb), None)


def _with_name_columns(
    identity: Identity, columns: Columns, provider: str, gpu_count: float | None
) -> Identity:
    """Return the identity, given columns that also name the GPU: such a column settles an ambiguous label,
    and a contradiction makes the identity ambiguous."""
    without_names = replace(columns, names=())
    for name in columns.names:
        # A column beside a settled label often states only the model ("Nvidia A100"): what the provider
        # usually means by such a name does not contradict the label.
        named_by = "" if identity.status == "matched" else provider
        other = _identify(name, named_by, "gpu_name", without_names, gpu_count)
        if other.status not in ("matched", "ambiguous"):
            continue
        if identity.status == "unknown":
            identity = replace(other, rule=f"name_column+{other.rule}")
        elif identity.status in ("matched", "ambiguous"):
            identity = _agreed(identity, other)
    return identity


def _agreed(identity: Identity, other: Identity) -> Identity:
    """Return the identity that two names for one GPU have in common."""
    common = _with_siblings(identity.candidates) & _with_siblings(other.candidates)
    cards = [card for card in catalogue.cards() if card.gpu_id in common]
    if not cards:
        return Identity(
            status="ambiguous",
            gpu_count=identity.gpu_count,
            rule="name_column_contradicts",
            candidates=identity.candidates + other.candidates,
        )
    card = _common_card(cards)
    if card is None or card.gpu_id == identity.gpu_id:
        return identity
    rule = f"{identity.rule}+name_column"
    return Identity.of(card, rule, gpu_count=identity.gpu_count, gpu_fraction=identity.gpu_fraction)


def _with_siblings(gpu_ids: Iterable[str]) -> set[str]:
    """Return the given ids, and the ids of every card that a generic card among them represents."""
    ids = set(gpu_ids)
    kinds = {(c.model, c.memory_gb) for c in map(catalogue.card_by_id().__getitem__, ids) if c.generic}
    return ids | {card.gpu_id for card in catalogue.cards() if (card.model, card.memory_gb) in kinds}
