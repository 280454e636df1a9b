"""Reads how a run is spread over GPUs, and its batch, from the free text of a published row."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pipeline.model.denials import affirmed
from pipeline.model.model_names import RunError
from pipeline.model.run_settings import MOST

Meaning = TypeVar("Meaning")


def meant(meanings: Iterable[tuple[str, Meaning]], text: str) -> Meaning | None:
    """Return the meaning of the first pattern that the text affirms; None if it affirms none."""
    return next((meaning for pattern, meaning in meanings if affirmed(pattern, text)), None)


_SIZE = r"(?:[ _-]\(?(?:size|degree))"


def _sizes_of(short: str, long: str) -> str:
    """Return the pattern of a group's size, as in ``tp4``, ``tensor parallel 4`` or ``4-way tensor ...``."""
    named = rf"{long}[ _-](?:model[ _-])?parallel(?:ism)?"
    return (
        rf"(?:(?<![a-z])|(?<=\dx)){short}(?:{_SIZE}[ =:]*|[ =:-]?)(\d+)"
        rf"|{named}{_SIZE}?(?: of| over)?[ =:]*(\d+)"
        rf"|(\d+)-way (?:{named}|{short}\b)"
    )


# Ulysses and ring attention split the sequence, as context parallelism does. Virtual pipeline stages (VP,
# VPP) and sequence parallelism (SP) without a size split nothing that is counted here.
_SEQUENCE_SIZES = r"(?:ulysses|ring[ _-]attention)(?:[ _-](?:sp|size|degree))*[ =:-]*(\d+)"
PARALLEL_SIZES = {
    "tp": _sizes_of("tp", "tensor"),
    "pp": _sizes_of("pp", "pipeline"),
    "cp": f"{_sizes_of('cp', 'context')}|{_SEQUENCE_SIZES}",
    "sp": _sizes_of("sp", "sequence"),
    "dp": _sizes_of("dp", "(?<!sharded[ _-])data"),
    "ep": _sizes_of("ep", "expert"),
}
_NEEDS_SIZE = {"tp": "tensor", "pp": "pipeline", "ep": "expert"}
SIZES_IN_NOTES = {
    "cp": rf"context[ _-]parallel(?:ism)?[ =:]*(\d+)|{_SEQUENCE_SIZES}",
    "sp": r"sequence[ _-]parallel(?:ism)?(?:[ _-](?:size|degree))?[ =:]*(\d+)",
}


def group_sizes(text: str, notes: str, stack: str) -> dict[str, float]:
    """Return the sizes of tensor, pipeline, context, data and expert groups, keyed by two-letter names.

    Raises RunError for a size that no group can have, and for groups named without their size.
    """
    config = re.search(r"config (\S+)", notes)
    found: dict[str, float] = {}
    for key, pattern in PARALLEL_SIZES.items():
        match = re.search(pattern, text)
        if match is None and key in SIZES_IN_NOTES:
            match = re.search(SIZES_IN_NOTES[key], notes)
        if match is None and config is not None:
            match = re.search(rf"{key}(\d+)", config.group(1))
        if match:
            found[key] = float(next(size for size in match.groups() if size))
            if not 1 <= found[key] <= MOST:
                raise RunError(f"parallelism: {key}{found[key]:g} is not the size of a group")
    for key, named in _NEEDS_SIZE.items():
        if key not in found and affirmed(rf"{named}[ _-]((model|data)[ _-])?parallel", text):
            raise RunError(f"parallelism '{text}': the size of the group is missing")
    sequence = found.pop("sp", None)
    # Megatron's sequence parallelism is that of the tensor group: a size equal to it names no other group.
    if sequence and not (stack == "te" and sequence == found.get("tp")):
        found.setdefault("cp", sequence)
    return found


_SHARDINGS = (
    (r"zero-?3|zero.*fsdp|fsdp.*zero", "zero3"),
    (r"fsdp|full(?:y)?[ _-]shard(?:ed)?", "fsdp"),
    (r"zero-?2", "zero2"),
    (r"zero-?1|\bddp\b", "ddp"),
    (r"single(?![ -]node)", "none"),
)
_NOT_ESTIMATED = (
    (r"nvme", "offloading to NVMe is not estimated"),
    (r"naive|device_map", "layers spread over GPUs that wait for each other are not estimated"),
)


def sharding_of(text: str, framework: str, gpus: float, nodes: float | None) -> str | None:
    """Return what is sharded, as sql/model names it; None if nothing is said.

    Raises RunError for ways to spread or offload a model that are not estimated.
    """
    if problem := meant(_NOT_ESTIMATED, text):
        raise RunError(f"parallelism '{text}': {problem}")
    if affirmed(r"hsdp|hybrid[ _-]?shard", text):
        if gpus > 8 or (nodes or 1) > 1:
            raise RunError(f"parallelism '{text}': shards within each of several nodes are not estimated")
        return "fsdp"
    if found := meant(_SHARDINGS, text):
        return found
    if affirmed("zero-1", framework.lower()):
        return "zero1"
    if affirmed(r"(?<!megatron-)deepspeed", framework.lower()):
        return "zero3" if gpus > 1 else "none"
    return "none" if text == "none" and gpus == 1 else None


def network_gbps(text: str) -> float | None:
    """Return a node's network Gbit/s from text such as '8x ConnectX-7 IB NDR 400Gb/s' or '1600 Gbps/node'."""
    lanes = re.findall(
        r"(\d+)\s*x\s*(?:[A-Za-z][\w\- ]*?\s)?(?:IB |NDR |InfiniBand )*(\d+)\s*G(?:bE|b/s|bps|be)", text
    )
    lanes += re.findall(r"(\d+)\s*x\s*Omni-Path (\d+)", text)
    if lanes:
        return max(float(count) * float(rate) for count, rate in lanes)
    per_node = re.search(r"(\d+)\s*Gbps/node", text)
    return float(per_node.group(1)) if per_node else None


_MICRO_STEPS = re.compile(r"\b(?:ga|grad(?:ient)?[ _-]acc(?:um(?:ulation)?)?(?:[ _-]steps)?)[ =:]*(\d+)")
_AMOUNT = r"(?<![\d.,*^])(\d[\d,]*(?:\.\d+)?) ?([km])?"
_TOKENS = re.compile(
    rf"{_AMOUNT}[ _-]?tokens(?! ?(?:/|per|on each) ?(?:gpu|card|device|rank))"
    rf"|(?:batch[ _-](?:size[ _-]in[ _-])?tokens|tokens[ _-]per[ _-](?:step|batch))[ =:]*{_AMOUNT}"
)
_SEQUENCES = re.compile(
    r"\b(?:global(?:[ _-]batch)?(?:[ _-]size)?|gbs)[ =:]*(\d[\d,]*)(?!\.?\d|[\d.,]* ?[km]?[ _-]?tokens)"
    r"|(?<![\d.,*^])(\d[\d,]*) (?:seqs?|sequences)\b"
)
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6}


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch of an optimizer step as a row states it; None for what the row leaves open."""

    micro_steps: float | None
    sequences: float | None
    """The sequences on all GPUs."""

    def steps_on(self, data_parallel: float, micro_batch: float) -> float | None:
        """Return the number of micro-steps in a batch, given the number of data-parallel groups."""
        if self.micro_steps is not None:
            return self.micro_steps
        if self.sequences is None:
            return None
        return max(1.0, round(self.sequences / (micro_batch * data_parallel)))

    def at_once(self, micro_batch: float) -> float | None:
        """Return the number of micro-batches that all GPUs together work on at a time, at most."""
        return self.sequences and self.sequences / (micro_batch * (self.micro_steps or 1))


def read_batch(text: str, seq_len: float | None) -> Batch:
    """Read text such as ``GA=4``, ``global=64 seqs``, ``gbs 64`` or ``0.5M tokens``."""
    lowered = text.lower()
    steps, total, tokens = (pattern.search(lowered) for pattern in (_MICRO_STEPS, _SEQUENCES, _TOKENS))
    sequences = float((total[1] or total[2]).replace(",", "")) if total else None
    if sequences is None and tokens and seq_len:
        amount, unit = tokens.groups()[:2] if tokens[1] else tokens.groups()[2:]
        sequences = float(amount.replace(",", "")) * _TIMES[unit or ""] / seq_len
    return Batch(float(steps[1]) if steps else None, sequences)
