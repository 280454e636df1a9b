"""LitGPT: its GPT, its LoRA, Fabric's precision plugins, and the fit() of its own finetuning scripts."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import bitsandbytes
import lightning
import litgpt
import torch
from lightning.fabric.accelerators import CUDAAccelerator
from lightning.fabric.plugins import BitsandbytesPrecision
from lightning.fabric.plugins.precision import bitsandbytes as fabric_bitsandbytes
from litgpt.args import EvalArgs, TrainArgs
from litgpt.finetune import full as full_script
from litgpt.finetune import lora as lora_script

from gpufare_tracer.architectures import Architecture, architecture_of, hugging_face_id
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks import quantized
from gpufare_tracer.frameworks.optimizers import optimizer_of
from gpufare_tracer.frameworks.own_loop import STEPS_OF_A_LOOP, Begin, OwnLoop, phases_marked
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape

PRECISIONS = {"bf16": "bf16-true", "fp16": "16-true", "fp32": "32-true"}
MIXED_PRECISIONS = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
QUANTIZE = {"nf4": "nf4", "nf4dq": "nf4-dq"}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
LORA_FLAGS = {
    "q_proj": "lora_query", "k_proj": "lora_key", "v_proj": "lora_value", "o_proj": "lora_projection",
    "gate_proj": "lora_mlp", "up_proj": "lora_mlp", "down_proj": "lora_mlp", "lm_head": "lora_head",
}  # fmt: skip
LLAMA_LIKE = ("llama", "mistral", "tinyllama", "smollm2", "yi-", "zephyr")
"""Starts of the ids whose sizes say all: RMSNorm, gated SiLU, rotary embeddings, no biases."""


@dataclass
class LitGptStep(OwnLoop):
    """fit() of litgpt/finetune/lora.py or full.py over fake batches."""

    fabric: Any
    model: Any
    optimizer: Any
    recipe: Recipe
    shape: TraceShape
    packages: tuple[str, ...]

    def run(self, begin: Begin) -> None:
        """The loop of the script, for two optimizer steps."""
        micro_steps = 2 if self.recipe.gradient_accumulation else 1
        arguments = TrainArgs(
            save_interval=None, global_batch_size=self.shape.micro_batch * micro_steps,
            micro_batch_size=self.shape.micro_batch, lr_warmup_steps=1, epochs=1, max_steps=STEPS_OF_A_LOOP,
            max_seq_length=self.shape.seq_len,
        )  # fmt: skip
        script = full_script if self.recipe.method == "full" else lora_script
        optimizer = self.fabric.setup_optimizers(self.optimizer)
        scheduler = script.get_lr_scheduler(optimizer, warmup_steps=1, max_steps=10)
        batches = _Batches(self.shape, self.recipe.longest_batch_first)
        common = {
            "fabric": self.fabric, "train_dataloader": batches, "val_dataloader": _Batches(None),
            "devices": 1, "checkpoint_dir": None, "out_dir": None, "train": arguments,
            "eval": EvalArgs(interval=STEPS_OF_A_LOOP + 1, max_iters=1), "data": None,
        }  # fmt: skip
        with (
            patch.object(script, "Tokenizer", lambda _: None),
            patch.object(script, "get_longest_seq_length", lambda _: (self.shape.seq_len, 0)),
            patch.object(script, "RunningMean", _RunningLoss),
            patch.object(self.fabric, "print", lambda *_: None),
            _inputs_kept(self.recipe),
            phases_marked(begin, self.model, self.optimizer),
        ):
            if script is full_script:
                state = {
                    "model": self.model, "optimizer": optimizer, "scheduler": scheduler,
                    "iter_num": 0, "step_count": 0,
                }  # fmt: skip
                script.fit(state=state, resume=False, **common)
            else:
                script.fit(model=self.model, optimizer=optimizer, scheduler=scheduler, **common)


class _RunningLoss:
    """torchmetrics' RunningMean without its deep copies, which fake tensors forbid; it holds one loss."""

    def __init__(self, **_: Any) -> None:
        self.loss: Any = None

    def to(self, _: Any) -> "_RunningLoss":
        return self

    def update(self, loss: Any) -> None:
        self.loss = loss.clone()

    def compute(self) -> Any:
        return self.loss


class _Batches:
    """A data loader of fake micro-batches; of none where there is no shape."""

    def __init__(self, shape: TraceShape | None, is_longest_first: bool = False) -> None:
        self.shape, self.is_longest_first = shape, is_longest_first
        self.dataset: list[Any] = [None]

    def __len__(self) -> int:
        return 0 if self.shape is None else 1000

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for index in range(len(self)):
            yield self._batch(index > 0 and self.is_longest_first)

    def _batch(self, is_short: bool) -> dict[str, Any]:
        shape = self.shape
        length = max(2, shape.seq_len // 8) if is_short else shape.seq_len  # type: ignore[union-attr]
        ids = torch.zeros((shape.micro_batch, length), dtype=torch.long, device="cuda")  # type: ignore[union-attr]
        count = torch.zeros(1, 1, dtype=torch.long)
        return {
            "input_ids": ids, "labels": torch.zeros_like(ids),
            "token_counts": {"raw": count, "raw_plus_prompt_template": count},
        }  # fmt: skip


def build(recipe: Recipe, shape: TraceShape) -> LitGptStep:
    """The recipe's step on the fake device."""
    _refuse_what_it_has_not(recipe)
    fabric = _fabric(recipe)
    config = config_of(recipe, shape)
    with fabric.init_module(), _quantized_as_made(recipe):
        if recipe.method == "full":
            model = litgpt.GPT(config)
        else:
            model = litgpt.lora.GPT(config)
            litgpt.lora.mark_only_lora_as_trainable(model)
    model = fabric.setup_module(model)
    optimizer = optimizer_of(recipe, list(model.parameters()))
    if recipe.quantization != "none" and recipe.stable_embedding:
        _stable_embedding(model)
    model.train()
    packages = ("litgpt", "lightning", *(("bitsandbytes",) if recipe.quantization != "none" else ()))
    return LitGptStep(fabric, model, optimizer, recipe, shape, packages)


def _fabric(recipe: Recipe) -> Any:
    plugins = None
    if recipe.quantization != "none":
        plugins = BitsandbytesPrecision(QUANTIZE[recipe.quantization], DTYPES[recipe.weight_dtype])
    precision = MIXED_PRECISIONS[recipe.autocast] if recipe.autocast else PRECISIONS[recipe.weight_dtype]
    return lightning.Fabric(
        accelerator=CUDAAccelerator(), devices=1, plugins=plugins, precision=None if plugins else precision
    )


@contextlib.contextmanager
def _inputs_kept(recipe: Recipe) -> Iterator[None]:
    """MatMul4Bit of bitsandbytes before 0.43 (autograd/_functions.py), where the recipe has it.

    Its context holds the input, which is no saved tensor and so lives as long as the loss, into the next
    forward pass; the weight is dequantized to the type that it had, then cast.
    """

    def forward(
        ctx: Any, activations: Any, packed: Any, out: Any = None, bias: Any = None, quant_state: Any = None
    ) -> Any:
        weight = bitsandbytes.functional.dequantize_4bit(packed.view(-1, 1), quant_state).to(
            activations.dtype
        )
        ctx.is_empty, ctx.state, ctx.dtype_bias = False, quant_state, None if bias is None else bias.dtype
        ctx.tensors = (activations, packed.view(-1, 1))
        return torch.nn.functional.linear(activations, weight, bias)

    with contextlib.ExitStack() as stack:
        if recipe.kbit_keeps_inputs:
            product = bitsandbytes.autograd._functions.MatMul4Bit
            stack.enter_context(patch.object(product, "forward", staticmethod(forward)))
        yield


@contextlib.contextmanager
def _quantized_as_made(recipe: Recipe) -> Iterator[None]:
    """Let the plugin's linear layers quantize fake weights as they are made: from fp16, as it does."""
    if recipe.quantization == "none":
        yield
        return
    layer_class = fabric_bitsandbytes._Linear4bit
    made = layer_class.__init__

    def make(layer: Any, *args: Any, **kwargs: Any) -> None:
        made(layer, *args, **kwargs)
        layer.weight = quantized._in_4_bits(layer, layer.weight.data.to(torch.half))

    with (
        patch.object(bitsandbytes.nn.modules, "Params4bit", quantized._plain_parameter),
        patch.object(layer_class, "__init__", make),
    ):
        yield


def _stable_embedding(model: Any) -> None:
    """As main() of litgpt/finetune/lora.py: the embedding is made anew, and trains unnoticed.

    The optimizer was made before, so it knows nothing of the new one and keeps the old one.
    """
    old = model.transformer.wte
    new = bitsandbytes.nn.StableEmbedding(old.num_embeddings, old.embedding_dim)
    model.transformer.wte = new.to(device=old.weight.device, dtype=old.weight.dtype)


def config_of(recipe: Recipe, shape: TraceShape) -> Any:
    """LitGPT's config of a shape: its own for a checkpoint that it knows, or of a Llama's sizes."""
    adapters: dict[str, Any] = {}
    kind = litgpt.Config
    if recipe.method != "full":
        kind = litgpt.lora.Config
        adapters = {
            "lora_r": recipe.lora_rank, "lora_alpha": 16, "lora_dropout": recipe.lora_dropout,
            **dict.fromkeys(LORA_FLAGS.values(), False),
            **{LORA_FLAGS[target]: True for target in recipe.lora_targets},
        }  # fmt: skip
    sizes = architecture_of(shape)
    with contextlib.suppress(ValueError):
        return kind.from_name(hugging_face_id(shape), **adapters, n_layer=sizes.layers)
    return kind(**_llama(sizes, shape), **adapters)


def _llama(sizes: Architecture, shape: TraceShape) -> dict[str, Any]:
    kind = shape.config.get("model_type") if shape.config else None
    if not (kind in ("llama", "mistral") or sizes.model.startswith(LLAMA_LIKE)) or sizes.experts > 1:
        raise CannotTraceError(
            f"litgpt {litgpt.__version__} has no config for {sizes.model!r}; trace it with transformers: "
            "--recipe hf-lora, hf-qlora or hf-full"
        )
    return {
        "name": sizes.model, "n_layer": sizes.layers, "n_embd": sizes.hidden, "n_head": sizes.heads,
        "n_query_groups": sizes.kv_heads, "head_size": sizes.head_dim, "vocab_size": sizes.vocab,
        "padding_multiple": 64, "intermediate_size": sizes.intermediate, "bias": False,
        "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP", "rotary_percentage": 1.0,
        "parallel_residual": False, "block_size": max(4096, shape.seq_len),
    }  # fmt: skip


def _refuse_what_it_has_not(recipe: Recipe) -> None:
    """Raise for switches that litgpt's scripts do not have."""
    lacking = {
        "checkpointing": recipe.checkpointing != "none", "kernels": recipe.kernels != "eager",
        "packing": recipe.packing != "none", "sharding": recipe.sharding != "none",
        "loss": recipe.loss == "fused_linear", "gradient_clipping": recipe.gradient_clipping,
        "quantization": recipe.quantization not in ("none", *QUANTIZE),
        "adapter_dtype": recipe.method != "full" and recipe.adapter_dtype != recipe.weight_dtype,
        "lora_targets": recipe.method != "full" and not set(recipe.lora_targets) <= set(LORA_FLAGS),
    }  # fmt: skip
    found = [name for name, is_lacking in lacking.items() if is_lacking]
    if found:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: litgpt's finetuning on one GPU does not have "
            + ", ".join(f"{name}={getattr(recipe, name)!r}" for name in found)
            + "; set it to what litgpt does, or trace with transformers"
        )
