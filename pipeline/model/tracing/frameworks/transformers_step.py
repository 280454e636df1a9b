"""transformers with PEFT: the model as from_config makes it, adapters as get_peft_model adds them."""

from functools import partial
from typing import Any

import bitsandbytes  # noqa: F401 (before the fake device: its import looks for a driver)
import peft
import torch
import transformers
from transformers import AutoModelForCausalLM

from pipeline.model.tracing.architectures import Architecture, architecture_of
from pipeline.model.tracing.errors import CannotTraceError
from pipeline.model.tracing.frameworks.optimizers import optimizer_of
from pipeline.model.tracing.recipes import Recipe
from pipeline.model.tracing.result import TraceShape
from pipeline.model.tracing.steps import PlainStep

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MAX_POSITIONS = 131_072

FAMILIES = {
    "mixtral": "MixtralConfig", "mistral": "MistralConfig", "zephyr": "MistralConfig", "gemma-2-": "Gemma2Config",
    "gemma": "GemmaConfig", "qwen2": "Qwen2Config", "qwen": "Qwen2Config", "phi-3": "Phi3Config",
}  # fmt: skip
"""Class of a catalogue model's config, by the start of its id; the rest are Llama's."""


def build(recipe: Recipe, shape: TraceShape) -> PlainStep:
    """The recipe's step on the fake device."""
    model = with_adapters(base_model(recipe, shape), recipe)
    model.train()
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


def config_of(shape: TraceShape) -> Any:
    """The transformers config of a shape: of its config.json, or made from the catalogue's sizes."""
    if shape.config:
        kind = shape.config.get("model_type")
        if kind not in transformers.CONFIG_MAPPING:
            raise CannotTraceError(
                f"config of {shape.model!r}: transformers {transformers.__version__} knows no model_type {kind!r}"
            )
        config = transformers.CONFIG_MAPPING[kind].from_dict(shape.config)
        if shape.layers:
            config.get_text_config().num_hidden_layers = shape.layers
        return config
    return _catalogue_config(architecture_of(shape))


def _catalogue_config(sizes: Architecture) -> Any:
    kind = next((name for start, name in FAMILIES.items() if sizes.model.startswith(start)), "LlamaConfig")
    more: dict[str, Any] = {}
    if kind == "MixtralConfig":
        more = {
            "num_local_experts": sizes.experts,
            "num_experts_per_tok": sizes.experts_active,
            "sliding_window": None,
        }
    elif kind == "MistralConfig":
        more = {"sliding_window": None}
    return getattr(transformers, kind)(
        num_hidden_layers=sizes.layers, hidden_size=sizes.hidden, intermediate_size=sizes.intermediate,
        num_attention_heads=sizes.heads, num_key_value_heads=sizes.kv_heads, head_dim=sizes.head_dim,
        vocab_size=sizes.vocab, tie_word_embeddings=sizes.tied_embeddings,
        max_position_embeddings=MAX_POSITIONS, **more,
    )  # fmt: skip


def base_model(recipe: Recipe, shape: TraceShape) -> Any:
    """The model with its weights in the recipe's type, gradient checkpointing not yet on."""
    from transformers.initialization import no_init_weights

    config = config_of(shape)
    config.use_cache = False
    with torch.device("cuda"), no_init_weights():
        model = AutoModelForCausalLM.from_config(
            config, dtype=DTYPES[recipe.weight_dtype], attn_implementation=recipe.attention
        )
    model.tie_weights()
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
    size = shape.micro_batch, shape.seq_len
    ids = torch.zeros(size, dtype=torch.long, device="cuda")
    more = {}
    if recipe.attention_mask:
        more["attention_mask"] = torch.ones(size, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", dtype=DTYPES[recipe.autocast or "bf16"], enabled=recipe.autocast is not None):
        return model(input_ids=ids, labels=torch.zeros_like(ids), use_cache=False, **more)["loss"]
