"""torchtune: the model builders, the losses and the train() of its recipes for one GPU."""

import importlib.util
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import bitsandbytes  # noqa: F401 (before the fake device: its import looks for a driver)
import torch
import torchtune
from omegaconf import OmegaConf
from torchtune import training
from torchtune.models.llama3_1._position_embeddings import Llama3ScaledRoPE

from gpufare_tracer.architectures import Architecture, architecture_of
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks.optimizers import LEARNING_RATE
from gpufare_tracer.frameworks.own_loop import STEPS_OF_A_LOOP, Begin, OwnLoop, phases_marked
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape

MODELS = {
    "llama-2": "llama2", "codellama": "llama2", "llama-3.2": "llama3_2", "llama-3.1": "llama3_1",
    "llama-3": "llama3", "mistral": "mistral", "qwen2": "qwen2",
}  # fmt: skip
"""torchtune's builder of a catalogue model, by the start of its id; longer starts first."""
ATTENTION_MODULES = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "output_proj"}
MLP_TARGETS = {"gate_proj", "up_proj", "down_proj"}
OPTIMIZERS: dict[str, tuple[str, dict[str, bool]]] = {
    "adamw": ("torch.optim.AdamW", {"foreach": True}),
    "adamw_fused": ("torch.optim.AdamW", {"fused": True}),
    "adamw_in_backward": ("torch.optim.AdamW", {"fused": True}),
    "adamw8bit": ("bitsandbytes.optim.AdamW8bit", {}),
    "paged_adamw8bit": ("bitsandbytes.optim.PagedAdamW8bit", {}),
    "paged_adamw32": ("bitsandbytes.optim.PagedAdamW", {}),
    "sgd": ("torch.optim.SGD", {"foreach": True}),
}
LOSSES = {
    "chunked": "torchtune.modules.loss.CEWithChunkedOutputLoss",
    "framework": "torchtune.modules.loss.CEWithChunkedOutputLoss",
    "whole": "torch.nn.CrossEntropyLoss",
}


@dataclass
class TorchtuneStep(OwnLoop):
    """train() of a torchtune recipe over fake batches."""

    recipe_run: Any
    model: Any
    optimizer: Any
    packages: tuple[str, ...]

    def run(self, begin: Begin) -> None:
        """The loop of the recipe, for two optimizer steps."""
        stepped = self.optimizer if isinstance(self.optimizer, torch.optim.Optimizer) else None
        with phases_marked(begin, self.model, stepped):
            self.recipe_run.train()


class _Batches:
    """A data loader of fake micro-batches."""

    def __init__(self, shape: TraceShape, count: int) -> None:
        self.shape, self.count = shape, count
        self.sampler = SimpleNamespace(set_epoch=lambda _: None)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        size = self.shape.micro_batch, self.shape.seq_len
        for _ in range(self.count):
            yield {name: torch.zeros(size, dtype=torch.long) for name in ("tokens", "labels")}


def build(recipe: Recipe, shape: TraceShape) -> TorchtuneStep:
    """The recipe's step on the fake device."""
    _refuse_what_it_has_not(recipe)
    file, name = (
        ("full_finetune_single_device.py", "FullFinetuneRecipeSingleDevice")
        if recipe.method == "full"
        else ("lora_finetune_single_device.py", "LoRAFinetuneRecipeSingleDevice")
    )
    module = _recipe_module(file)
    accumulated = 2 if recipe.gradient_accumulation else 1
    batches = _Batches(shape, STEPS_OF_A_LOOP * accumulated)
    config = OmegaConf.create(_config(recipe, shape, accumulated))
    kind = getattr(module, name)
    with ExitStack() as stack:
        for owner, attribute, answer in (
            (kind, "load_checkpoint", lambda *_, **__: {training.MODEL_KEY: {}}),
            (kind, "_setup_data", lambda *_, **__: batches),
            (torch.nn.Module, "load_state_dict", lambda *_, **__: ([], [])),
            # It reads each frequency; how long the table is does not depend on them.
            (Llama3ScaledRoPE, "apply_scaling", lambda _, frequencies, *__: frequencies.clone()),
            (training.precision, "verify_bf16_support", lambda: True),
            (training, "get_memory_stats", lambda *_, **__: {}),
            (training, "log_memory_stats", lambda *_: None),
        ):
            stack.enter_context(patch.object(owner, attribute, answer))
        run = kind(config)
        run.setup(config)
    run.save_checkpoint = lambda *_, **__: None
    optimizer = run._optimizer
    if recipe.optimizer == "adamw_in_backward":
        optimizer = _Optimizers(run._optim_ckpt_wrapper.optim_map)
    return TorchtuneStep(run, run._model, optimizer, ("torchtune",))


class _Optimizers:
    """The state of the optimizers of all parameters, which step within the backward pass."""

    def __init__(self, by_name: dict[str, Any]) -> None:
        self.by_name = by_name

    @property
    def state(self) -> dict[Any, Any]:
        return {
            parameter: state
            for optimizer in self.by_name.values()
            for parameter, state in optimizer.state.items()
        }


def _recipe_module(file: str) -> Any:
    """A recipe of torchtune, which forbids importing them as a package."""
    path = Path(torchtune.__file__).parent.parent / "recipes" / file
    spec = importlib.util.spec_from_file_location(f"torchtune_recipe_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise CannotTraceError(f"torchtune {torchtune.__version__} has no recipe {file}: install 0.6.1")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    logging.getLogger("torchtune.utils._logging").setLevel(logging.ERROR)
    silent = SimpleNamespace(update=lambda _: None, set_description=lambda _: None)
    module.tqdm = lambda **_: silent  # type: ignore[attr-defined]
    return module


def _config(recipe: Recipe, shape: TraceShape, accumulated: int) -> dict[str, Any]:
    component, options = OPTIMIZERS[recipe.optimizer]
    scheduler = {"_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup"}
    loss = {"_component_": LOSSES[recipe.loss]}
    return {
        "model": _model(recipe, shape), "device": "cuda", "dtype": recipe.weight_dtype, "seed": 0,
        "output_dir": ".", "epochs": 1, "max_steps_per_epoch": STEPS_OF_A_LOOP,
        "batch_size": shape.micro_batch,
        "gradient_accumulation_steps": accumulated, "resume_from_checkpoint": False, "compile": False,
        "save_adapter_weights_only": False, "shuffle": False, "dataset": {}, "profiler": None,
        "clip_grad_norm": 1.0 if recipe.gradient_clipping else None,
        "optimizer_in_bwd": recipe.optimizer == "adamw_in_backward",
        "enable_activation_checkpointing": recipe.checkpointing == "full",
        "enable_activation_offloading": recipe.activation_offload,
        "optimizer": {"_component_": component, "lr": LEARNING_RATE, **options}, "loss": loss,
        "lr_scheduler": {**scheduler, "num_warmup_steps": 1} if recipe.method != "full" else None,
        "tokenizer": {"_component_": "types.SimpleNamespace"},
        "metric_logger": {"_component_": f"{__name__}.Silent"},
        "checkpointer": {"model_type": "LLAMA3"},
    }  # fmt: skip


class Silent:
    """A metric logger that keeps nothing."""

    def log_config(self, config: Any) -> None:
        """Nothing is logged."""

    def log_dict(self, values: dict[str, Any], step: int) -> None:
        """Nothing is logged."""


def _model(recipe: Recipe, shape: TraceShape) -> dict[str, Any]:
    """The builder of a model with its sizes, as a torchtune config has it."""
    sizes = architecture_of(shape)
    name = _builder(sizes, shape)
    arguments: dict[str, Any] = {
        "vocab_size": sizes.vocab, "num_layers": sizes.layers, "num_heads": sizes.heads,
        "num_kv_heads": sizes.kv_heads, "embed_dim": sizes.hidden, "intermediate_dim": sizes.intermediate,
        "max_seq_len": max(shape.seq_len, 4096),
    }  # fmt: skip
    if name == "qwen2":
        arguments["tie_word_embeddings"] = sizes.tied_embeddings
    if recipe.method == "full":
        return {"_component_": f"torchtune.models.{name}.{name}", **arguments}
    targets = set(recipe.lora_targets)
    return {
        "_component_": f"torchtune.models.{name}.lora_{name}", **arguments,
        "lora_attn_modules": [module for name, module in ATTENTION_MODULES.items() if name in targets],
        "apply_lora_to_mlp": bool(targets & MLP_TARGETS), "apply_lora_to_output": "lm_head" in targets,
        "lora_rank": recipe.lora_rank, "lora_alpha": 16, "lora_dropout": recipe.lora_dropout,
    }  # fmt: skip


def _builder(sizes: Architecture, shape: TraceShape) -> str:
    kind = shape.config.get("model_type") if shape.config else None
    llama = "llama3_2" if sizes.tied_embeddings else "llama3_1"
    found = {"llama": llama, "mistral": "mistral", "qwen2": "qwen2"}
    name = found.get(str(kind)) or next(
        (builder for start, builder in MODELS.items() if sizes.model.startswith(start)), None
    )
    if name is None or sizes.experts > 1 or sizes.head_dim * sizes.heads != sizes.hidden:
        raise CannotTraceError(
            f"torchtune {torchtune.__version__} has no builder for {sizes.model!r}; "
            "trace it with transformers: --recipe hf-lora, hf-qlora or hf-full"
        )
    return name


def _refuse_what_it_has_not(recipe: Recipe) -> None:
    """Raise for switches that torchtune's recipes for one GPU do not have."""
    lacking = {
        "checkpointing": recipe.checkpointing == "selective", "kernels": recipe.kernels != "eager",
        "packing": recipe.packing != "none", "sharding": recipe.sharding != "none",
        "loss": recipe.loss == "fused_linear", "autocast": recipe.autocast is not None,
        "weight_dtype": recipe.weight_dtype == "fp16", "attention": recipe.attention != "sdpa",
        # torchao's NF4 layers swap tensors, which fake ones forbid.
        "quantization": recipe.quantization != "none",
        "kbit_keeps_inputs": recipe.kbit_keeps_inputs,
        "adapter_dtype": recipe.method != "full" and recipe.adapter_dtype != recipe.weight_dtype,
        "lora_targets": recipe.method != "full"
        and not set(recipe.lora_targets) <= {*ATTENTION_MODULES, *MLP_TARGETS, "lm_head"},
    }  # fmt: skip
    found = [name for name, is_lacking in lacking.items() if is_lacking]
    if found:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: torchtune's recipes for one GPU cannot be traced with "
            + ", ".join(f"{name}={getattr(recipe, name)!r}" for name in found)
            + "; set it to what torchtune does, or trace it with transformers: "
            f"--recipe hf-{recipe.method}"
        )
