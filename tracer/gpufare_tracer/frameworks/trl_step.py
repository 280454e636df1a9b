"""TRL: a real SFTTrainer trains fake batches, with transformers' training loop and accelerate under it."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import accelerate
import bitsandbytes  # noqa: F401 (before the fake device: its import looks for a driver)
import datasets
import peft
import tokenizers
import torch
import transformers
import trl
from trl.kernels import chunked_logprob
from trl.trainer import utils as trl_utils

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks.optimizers import optimizer_of
from gpufare_tracer.frameworks.own_loop import STEPS_OF_A_LOOP, Begin, OwnLoop, phases_marked
from gpufare_tracer.frameworks.transformers_step import base_model, packages, targets_of
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape


@dataclass
class TrlStep(OwnLoop):
    """train() of an SFTTrainer over fake batches."""

    trainer: Any
    model: Any
    optimizer: Any
    packages: tuple[str, ...]

    def run(self, begin: Begin) -> None:
        """The trainer's loop, for two optimizer steps."""
        try:
            with _fused_head_on_fakes(), phases_marked(begin, self.model, self.optimizer):
                self.trainer.train()
        finally:
            _forget_accelerator()


def build(recipe: Recipe, shape: TraceShape) -> TrlStep:
    """The recipe's step on the fake device."""
    _refuse_what_it_has_not(recipe)
    _forget_accelerator()
    transformers.logging.set_verbosity_error()
    logging.getLogger("trl").setLevel(logging.ERROR)
    model = base_model(recipe, shape)
    model.hf_quantizer = SimpleNamespace(is_trainable=True, is_qat_trainable=False)
    model.generation_config = transformers.GenerationConfig()
    tokenizer = _tokenizer()
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.backends.cuda, "is_built", lambda: True))
        trainer = trl.SFTTrainer(
            model=model, args=_arguments(recipe, shape), train_dataset=_examples(shape),
            processing_class=tokenizer, peft_config=_adapters(recipe, model),
        )  # fmt: skip
    trained = [p for p in trainer.model.parameters() if p.requires_grad]
    trainer.optimizer = optimizer_of(recipe, trained)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.get_train_dataloader = lambda: _batches(trainer, recipe, shape)
    return TrlStep(trainer, trainer.model, trainer.optimizer, ("trl", "accelerate", *packages(recipe)))


class _Kernel:
    """A Triton kernel that computes nothing: it allocates nothing either."""

    def __getitem__(self, grid: Any) -> Any:
        return lambda *_, **__: None


@contextmanager
def _fused_head_on_fakes() -> Iterator[None]:
    """TRL's chunked head and loss without values: no label is masked, so every row is scored."""
    with (
        patch.object(chunked_logprob, "_forward_kernel", _Kernel()),
        patch.object(chunked_logprob, "_backward_kernel", _Kernel()),
        patch.object(chunked_logprob, "_use_triton", lambda _: True),
        patch.object(trl_utils, "_use_triton", lambda _: False),
    ):
        yield


def _forget_accelerator() -> None:
    """accelerate keeps the device of the first trainer for the whole process."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


def _arguments(recipe: Recipe, shape: TraceShape) -> Any:
    is_packed = recipe.packing == "padding_free"
    return trl.SFTConfig(
        output_dir=gettempdir(), per_device_train_batch_size=shape.micro_batch, max_steps=STEPS_OF_A_LOOP,
        gradient_accumulation_steps=2 if recipe.gradient_accumulation else 1,
        bf16=recipe.autocast == "bf16", fp16=recipe.autocast == "fp16",
        gradient_checkpointing=recipe.checkpointing != "none",
        gradient_checkpointing_kwargs=_checkpointing(recipe), activation_offloading=recipe.activation_offload,
        max_grad_norm=1.0 if recipe.gradient_clipping else 0.0, max_length=shape.seq_len,
        packing=is_packed,
        logging_strategy="no", save_strategy="no", report_to="none", disable_tqdm=True,
        logging_nan_inf_filter=False, dataset_kwargs={"skip_prepare_dataset": True},
    )  # fmt: skip


def _checkpointing(recipe: Recipe) -> dict[str, bool] | None:
    if recipe.checkpointing == "none":
        return None
    return {"use_reentrant": recipe.checkpoint_reentrant, "selective": recipe.checkpointing == "selective"}


def _adapters(recipe: Recipe, model: Any) -> Any:
    if recipe.method == "full":
        return None
    return peft.LoraConfig(
        r=recipe.lora_rank, lora_dropout=recipe.lora_dropout, target_modules=targets_of(model, recipe),
        task_type="CAUSAL_LM",
    )  # fmt: skip


def _tokenizer() -> Any:
    """A tokenizer of three words: examples come as numbers."""
    padding, end, word = "<pad>", "<eos>", "a"
    words = tokenizers.models.WordLevel({padding: 0, end: 1, word: 2}, unk_token=word)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(words), pad_token=padding, eos_token=end
    )


def _examples(shape: TraceShape) -> Any:
    """Enough for the trainer to start; it trains the batches of ``_batches``."""
    ids = [[2] * shape.seq_len]
    return datasets.Dataset.from_dict({"input_ids": ids, "labels": ids})


def _batches(trainer: Any, recipe: Recipe, shape: TraceShape) -> list[Any]:
    """Micro-batches as the trainer's own collator makes them, on the device as accelerate puts them."""
    ids = [2] * shape.seq_len
    example = {"input_ids": ids, "labels": ids, "seq_lengths": [shape.seq_len]}
    if recipe.packing == "none":
        del example["seq_lengths"]
    batch = trainer.data_collator([example] * shape.micro_batch)
    if not recipe.attention_mask:
        batch.pop("attention_mask", None)
    count = STEPS_OF_A_LOOP * (2 if recipe.gradient_accumulation else 1)
    return [{name: torch.zeros_like(t, device="cuda") for name, t in batch.items()} for _ in range(count)]


def _refuse_what_it_has_not(recipe: Recipe) -> None:
    """Raise for switches that an SFTTrainer on one GPU does not have."""
    lacking = {
        "kernels": recipe.kernels != "eager", "loss": recipe.loss != "framework",
        "sharding": recipe.sharding != "none",
        "lora_targets": recipe.method != "full" and "lm_head" in recipe.lora_targets,
        "optimizer": recipe.optimizer == "adamw_in_backward", "kbit_upcast": recipe.kbit_upcast,
        "autocast": recipe.autocast == "fp16",
    }  # fmt: skip
    found = [name for name, is_lacking in lacking.items() if is_lacking]
    if found:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: TRL {trl.__version__}'s SFTTrainer cannot be traced with "
            + ", ".join(f"{name}={getattr(recipe, name)!r}" for name in found)
            + f"; trace it with transformers: --recipe hf-{recipe.method}"
        )
