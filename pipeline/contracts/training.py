"""The values that settings of a training job may have: for commands, imported runs and SQL alike."""

from typing import Literal, get_args

Method = Literal["full", "lora", "qlora", "pretrain"]
METHODS: tuple[Method, ...] = get_args(Method)
ADAPTER_METHODS: tuple[Method, ...] = ("lora", "qlora")

CHECKPOINTINGS = ("none", "sac", "full")
"""Activation checkpointing; ``sac`` is selective activation checkpointing."""

STACKS = ("hf", "liger", "foak", "torchtune", "litgpt", "compile", "te", "mosaic")
"""Training software."""
