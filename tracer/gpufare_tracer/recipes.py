"""Recipes as data: the switches that determine the memory and work of a training step.

catalog/recipes.yaml contains named presets; a trace may override individual switches.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.home import paths

RECIPES_FILE = "recipes.yaml"

Dtype = Literal["fp32", "bf16", "fp16"]
Framework = Literal["transformers", "own"]


class Recipe(BaseModel):
    """All switches of a training recipe; the defaults are those of transformers' Trainer with PEFT."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str = ""
    framework: Framework
    """The framework whose code runs the step; ``own`` is the user's code."""
    emulates: str | None = None
    """The framework that ``framework``'s code emulates, and how; None if nothing is emulated."""
    source: str = ""
    """Address of the documentation for the preset's switches."""

    method: Literal["full", "lora", "qlora"] = "lora"
    quantization: Literal["none", "nf4", "nf4dq", "gptq"] = "none"
    kbit_upcast: bool = False
    """True if norms, embeddings and head are cast to fp32, as peft's prepare_model_for_kbit_training does."""

    kbit_casts_back: bool = False
    """True if embeddings and head are cast back to bf16 after ``kbit_upcast``, as in TRL 0.13 under bf16."""

    weight_dtype: Dtype = "bf16"
    autocast: Dtype | None = None
    """The type of torch.autocast around the forward pass; None without autocast."""
    fp32_logits: bool = False
    """True if the model's outputs are cast to fp32, as accelerate's convert_outputs_to_fp32 does."""

    shifted_logits: Literal["none", "model", "loss"] = "none"
    """The next-token loss of older transformers versions, which copies all logits except the last position's.

    model: the model casts its logits to fp32 first, as in transformers up to 4.45;
    loss: the loss function (``ForCausalLMLoss``) casts them, and the output keeps the originals, as in 4.46;
    none: the labels are shifted instead, as in transformers today.
    """
    gradient_scaling: bool = False
    """True if torch's GradScaler is used, which fp16 autocast needs."""
    outputs_held: bool = False
    """True if the model's output, and with it the logits, is kept until the optimizer has stepped.

    A loop of ``out = model(...); out.loss.backward(); optimizer.step()`` keeps ``out``; Trainer does not.
    """

    lora_rank: int = Field(default=16, ge=1)
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)
    lora_targets: tuple[str, ...] = (
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    )  # fmt: skip
    """The layers with adapters, by their names in Llama; a LoRA adapter on the head is ``lm_head``."""
    adapter_dtype: Dtype = "fp32"

    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    """sdpa is the kernel that torch chooses for the card: flash, memory-efficient or math."""
    kernels: Literal["eager", "liger", "unsloth"] = "eager"
    loss: Literal["framework", "fused_linear"] = "framework"
    """The framework's own loss, or fused_linear: head and loss in one kernel (Liger, cut cross-entropy)."""
    attention_mask: bool = False
    """True if a batch has a padding mask."""

    checkpointing: Literal["none", "full"] = "none"
    checkpoint_reentrant: bool = False
    checkpoint_around_unit: bool = False
    """True for older transformers (such as 4.48), which checkpoint around a layer's FSDP unit, not within it.

    Reentrant checkpoints around frozen units keep each layer's gradient until the backward pass ends.
    """
    activation_offload: bool = False

    optimizer: Literal[
        "adamw", "adamw_fused", "adamw8bit", "paged_adamw8bit", "paged_adamw32", "sgd"
    ] = "adamw_fused"  # fmt: skip
    """adamw is torch's AdamW with foreach kernels."""
    gradient_clipping: bool = True
    gradient_accumulation: bool = False
    """True if gradients are accumulated over several micro-batches."""

    sharding: Literal["none", "ddp", "fsdp"] = "none"
    gpu_count: int = Field(default=1, ge=1)
    cpu_offload: bool = False

    @model_validator(mode="after")
    def _switches_agree(self) -> Self:
        """Refuse switches that contradict each other or would have no effect."""
        for is_wrong, problem in (
            (
                self.method == "qlora" and self.quantization == "none",
                "method=qlora with quantization=none is plain LoRA: set quantization=nf4, nf4dq "
                "or gptq, or method=lora",
            ),
            (
                self.method != "qlora" and self.quantization != "none",
                f"method={self.method} with quantization={self.quantization}: set quantization=none, "
                "or method=qlora",
            ),
            (
                self.kbit_casts_back and not self.kbit_upcast,
                "kbit_casts_back=true with kbit_upcast=false: nothing was cast, set it to false",
            ),
            (
                self.gpu_count > 1 and self.sharding == "none",
                f"gpu_count={self.gpu_count} with sharding=none: set sharding=ddp or fsdp, or gpu_count=1",
            ),
            (
                self.checkpoint_around_unit and (self.sharding != "fsdp" or self.checkpointing == "none"),
                "checkpoint_around_unit=true is for checkpointed layers under sharding=fsdp: set it to false",
            ),
            (
                self.cpu_offload and self.sharding == "none",
                "cpu_offload=true with sharding=none: set sharding=fsdp, or cpu_offload=false",
            ),
        ):
            if is_wrong:
                raise ValueError(problem)
        return self


def read_recipes(path: Path | None = None) -> dict[str, Recipe]:
    """Return the presets in catalog/recipes.yaml, keyed by name.

    A preset may name another preset as its ``base`` and state only the differences.
    Raises ``ValueError`` for an unknown base or switch.
    """
    raw = yaml.safe_load((path or paths.CATALOG_DIR / RECIPES_FILE).read_text(encoding="utf-8"))
    return {name: Recipe.model_validate({"name": name, **_with_base(raw, name)}) for name in raw}


def _with_base(raw: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    if name not in raw:
        raise ValueError(f"{RECIPES_FILE}: no recipe {name!r}; there are {', '.join(sorted(raw))}")
    own = dict(raw[name])
    base = own.pop("base", None)
    return own if base is None else {**_with_base(raw, base), **own}
