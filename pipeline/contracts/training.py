"""The values that settings of a training job may have: for commands, imported runs and SQL alike."""

from typing import Literal, get_args

Method = Literal["full", "lora", "qlora", "pretrain"]
METHODS: tuple[Method, ...] = get_args(Method)
ADAPTER_METHODS: tuple[Method, ...] = ("lora", "qlora")

Checkpointing = Literal["none", "sac", "full"]
"""Activation checkpointing; ``sac`` is selective activation checkpointing."""
CHECKPOINTINGS: tuple[Checkpointing, ...] = get_args(Checkpointing)

Stack = Literal["hf", "liger", "foak", "torchtune", "litgpt", "compile", "te", "mosaic"]
"""Training software."""
STACKS: tuple[Stack, ...] = get_args(Stack)
