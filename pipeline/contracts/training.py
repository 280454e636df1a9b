"""Allowed values of a training job's settings, for commands, imported runs and SQL."""

from typing import Literal, get_args

Method = Literal["full", "lora", "qlora", "pretrain"]
METHODS: tuple[Method, ...] = get_args(Method)
ADAPTER_METHODS: tuple[Method, ...] = ("lora", "qlora")

CHECKPOINTINGS = ("none", "sac", "full")
"""Activation checkpointing; ``sac`` is selective activation checkpointing."""

STACKS = ("hf", "liger", "foak", "torchtune", "litgpt", "compile", "te", "mosaic")
"""Training software."""

EVIDENCES = ("own", "measured", "traced", "interpolated", "extrapolated")
"""Kinds of evidence for an estimate, those nearest to measured runs first; see ``evidences_from`` in SQL."""
