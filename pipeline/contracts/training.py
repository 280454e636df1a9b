"""The values that settings of a training job may have: for commands, imported runs and SQL alike."""

from typing import Literal, get_args

Method = Literal["full", "lora", "qlora", "pretrain"]
METHODS: tuple[Method, ...] = get_args(Method)
ADAPTER_METHODS: tuple[Method, ...] = ("lora", "qlora")

CHECKPOINTINGS = ("none", "sac", "full")
"""Activation checkpointing; ``sac`` is selective activation checkpointing."""

STACKS = ("hf", "liger", "foak", "torchtune", "litgpt", "compile", "te", "mosaic")
"""Training software."""

EVIDENCES = ("measured", "traced", "interpolated", "extrapolated")
"""How near an estimate is to measured runs, best first; ``evidences_from`` in SQL."""
