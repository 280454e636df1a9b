"""transformers with PEFT: the model as from_config makes it, adapters as get_peft_model adds them."""

from functools import partial
from typing import Any

import bitsandbytes  # noqa: F401 (before the fake device: its import looks for a driver)
import peft
import torch

from pipeline.model.tracing.frameworks import sharding
from pipeline.model.tracing.frameworks.architecture_configs import config_of, empty_model, tie_weights
from pipeline.model.tracing.frameworks.optimizers import optimizer_of
from pipeline.model.tracing.recipes import Recipe
from pipeline.model.tracing.result import TraceShape
from pipeline.model.tracing.steps import PlainStep

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def build(recipe: Recipe, shape: TraceShape) -> PlainStep:
    """The recipe's step on the fake device."""
    model = with_adapters(base_model(recipe, shape), recipe)
    model.train()
    model = sharding.shard(model, recipe, sharding.decoder_layers(model))
    trained = [p for p in model.parameters() if p.requires_grad]
    return PlainStep(
        model, optimizer_of(recipe, trained), partial(_loss, model, recipe, shape),
        packages(recipe), recipe.gradient_accumulation, recipe.gradient_clipping,
    )  # fmt: skip


def packages(recipe: Recipe) -> tuple[str, ...]:
    """Packages whose code runs."""
    used = ["transformers"]
    if recipe.method != "full":
        used.append("peft")
    if (
        recipe.quantization in ("nf4", "nf4dq", "int8")
        or "8bit" in recipe.optimizer
        or "paged" in recipe.optimizer
    ):
        used.append("bitsandbytes")
    if recipe.kernels == "liger" or recipe.loss == "fused_linear":
        used.append("liger-kernel")
    return tuple(used)


def base_model(recipe: Recipe, shape: TraceShape) -> Any:
    """The model with its weights in the recipe's type, gradient checkpointing not yet on."""
    with torch.device("cuda"):
        model = empty_model(config_of(shape), DTYPES[recipe.weight_dtype], recipe.attention)
    tie_weights(model, shape)
    return model


def with_adapters(model: Any, recipe: Recipe) -> Any:
    """The model as it trains: adapters added, checkpointing on."""
    checkpointing = {"use_reentrant": recipe.checkpoint_reentrant}
    if recipe.method != "full":
        adapters = peft.LoraConfig(
            r=recipe.lora_rank, lora_dropout=recipe.lora_dropout, target_modules=list(recipe.lora_targets),
            task_type="CAUSAL_LM",
        )  # fmt: skip
        model = peft.get_peft_model(model, adapters, autocast_adapter_dtype=recipe.adapter_dtype == "fp32")
    if recipe.checkpointing == "full":
        model.gradient_checkpointing_enable(checkpointing)
        if recipe.method != "full":
            model.enable_input_require_grads()
    return model


def _loss(model: Any, recipe: Recipe, shape: TraceShape) -> Any:
    is_packed = recipe.packing == "padding_free"
    size = (1, shape.micro_batch * shape.seq_len) if is_packed else (shape.micro_batch, shape.seq_len)
    ids = torch.zeros(size, dtype=torch.long, device="cuda")
    more = {"position_ids": torch.zeros_like(ids)} if is_packed else {}
    if recipe.attention_mask:
        more["attention_mask"] = torch.ones(size, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", dtype=DTYPES[recipe.autocast or "bf16"], enabled=recipe.autocast is not None):
        return model(input_ids=ids, labels=torch.zeros_like(ids), use_cache=False, **more)["loss"]
