"""transformers with PEFT: the model as from_config makes it, with adapters as get_peft_model adds them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import peft
import peft.tuners.lora.bnb  # before the fake device exists: bitsandbytes looks for a driver
import torch
from accelerate.utils.operations import convert_outputs_to_fp32
from transformers.pytorch_utils import Conv1D

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks import activation_offload, fused_kernels, gptq, liger, quantized, sharding
from gpufare_tracer.frameworks.architecture_configs import config_of, empty_model, note_of, tie_weights
from gpufare_tracer.frameworks.optimizers import optimizer_of
from gpufare_tracer.frameworks.surroundings import here
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.steps import Step
from gpufare_tracer.timeline import Phase

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

OTHER_NAMES = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), ("qkv_proj", "c_attn", "query_key_value", "Wqkv")),
    "o_proj": ("attn.c_proj", "self_attention.dense", "dense", "out_proj"),
    "gate_proj": ("gate_up_proj", "w2", "fc1", "mlp.c_fc", "dense_h_to_4h", "input_linear"),
    "up_proj": ("gate_up_proj", "w1", "fc1", "mlp.c_fc", "dense_h_to_4h", "input_linear"),
    "down_proj": ("fc2", "mlp.c_proj", "dense_4h_to_h", "output_linear"),
}  # fmt: skip
"""Names in models that fuse or rename Llama's layers: Phi-3, GPT-2, Falcon, MPT, Qwen 1 and Granite 4."""
LATENT_NAMES = {
    "q_proj": ("q_a_proj", "q_b_proj"),
    **dict.fromkeys(("k_proj", "v_proj"), ("kv_a_proj_with_mqa", "kv_b_proj")),
}
"""Names of Llama's layers in multi-head latent attention, which factorizes these layers."""
MLP_TARGETS = ("gate_proj", "up_proj", "down_proj")


@dataclass
class TransformersStep(Step):
    """A step of a transformers model; the model's output may be kept until the step ends."""

    held: list[Any] = field(default_factory=list)

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Run one optimizer step; a kept output is freed at the end of the step, like a local variable."""
        super().run(begin)
        self.held.clear()


def build(recipe: Recipe, shape: TraceShape) -> TransformersStep:
    """Build the recipe's step on the device of the current surroundings.

    Raises ``CannotTraceError``, saying what to do instead, for a recipe that this module cannot build.
    """
    model = with_adapters(base_model(recipe, shape), recipe)
    _shift_logits(model, recipe)
    model.train()
    held: list[Any] = []
    model = sharding.shard(model, recipe, sharding.decoder_layers(model))
    return TransformersStep(
        model, optimizer_of(recipe, model, here().undo),
        partial(_loss, _forward(model, recipe), recipe, shape, held),
        packages(recipe), recipe.gradient_accumulation, recipe.gradient_clipping,
        torch.amp.GradScaler(here().device) if recipe.gradient_scaling else None, note_of(shape), held,
    )  # fmt: skip


def packages(recipe: Recipe) -> tuple[str, ...]:
    """Return the packages whose code runs."""
    used = ["transformers"]
    if recipe.method != "full":
        used.append("peft")
    if recipe.quantization in quantized.METHODS or "8bit" in recipe.optimizer or "paged" in recipe.optimizer:
        used.append("bitsandbytes")
    if recipe.kernels == "liger" or recipe.loss == "fused_linear":
        used.append("liger-kernel")
    return tuple(used)


def base_model(recipe: Recipe, shape: TraceShape) -> Any:
    """Return the model with its weights in the recipe's type, but without activation checkpointing yet."""
    dtype = DTYPES[recipe.weight_dtype]
    is_gptq = recipe.quantization == "gptq"
    is_quantized = recipe.quantization in quantized.METHODS
    is_initialized = here().is_real and not is_quantized
    with torch.device("meta" if is_quantized or is_gptq else here().device):
        model = empty_model(config_of(shape), dtype, recipe.attention, is_initialized=is_initialized)
        tie_weights(model, shape)
    if is_quantized:
        quantize = partial(quantized.quantize_really, device=here().device)
        model = (quantize if here().is_real else quantized.quantize)(model, recipe, dtype)
    elif is_gptq:
        model = gptq.quantize(model, dtype if recipe.sharding == "fsdp" else None)
        tie_weights(model, shape)
    if liger.wanted(recipe):
        liger.apply(model, recipe, here().undo)
    return model


def with_adapters(model: Any, recipe: Recipe) -> Any:
    """Return the model ready to train, with the recipe's adapters and activation checkpointing."""
    if recipe.kbit_upcast:
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    if recipe.method != "full":
        model = _adapted(model, recipe)
        _cast_adapters(model, DTYPES[recipe.adapter_dtype])
    if recipe.kbit_casts_back:
        for module in (model.get_input_embeddings(), model.get_output_embeddings()):
            module.to(torch.bfloat16)
    if recipe.activation_offload:
        activation_offload.apply(model)
    if recipe.kernels == "unsloth":
        fused_kernels.apply(model, recipe, here().undo)
    if recipe.checkpointing != "none":
        model.gradient_checkpointing_enable({"use_reentrant": recipe.checkpoint_reentrant})
        if recipe.method != "full":
            model.enable_input_require_grads()
    return model


def _adapted(model: Any, recipe: Recipe) -> Any:
    adapters = peft.LoraConfig(
        r=recipe.lora_rank, lora_dropout=recipe.lora_dropout, target_modules=targets_of(model, recipe),
        task_type="CAUSAL_LM",
    )  # fmt: skip
    if recipe.quantization == "gptq":
        adapters = gptq.adapted_by_peft(adapters)
    try:
        return peft.get_peft_model(model, adapters, autocast_adapter_dtype=recipe.adapter_dtype == "fp32")
    except ValueError as error:  # fused experts with dropout, or with a gate but no up projection
        raise CannotTraceError(f"recipe {recipe.name!r}: PEFT refuses its adapters: {error}") from error


def targets_of(model: Any, recipe: Recipe) -> list[str]:
    """Return the model's own names for the recipe's LoRA targets, in the form that PEFT takes.

    transformers 5 keeps the experts of a mixture in one tensor. If PEFT knows the names that the experts had
    in transformers 4, it adapts that tensor and nothing else in the MLPs; in other mixtures, it adapts shared
    experts and dense layers. The macro ``adapts_experts`` in sql/model does the same for catalogue models.
    Raises ``CannotTraceError`` naming the target if the model has no known name for the target.
    """
    linears = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear | Conv1D)}
    fused = any(name.endswith("experts.down_proj") for name, _ in model.named_parameters())
    has_mlp = not fused or any(linear.endswith((".down_proj", ".output_linear")) for linear in linears)
    experts = names_of_experts(model.config.model_type) if fused else {}
    wanted = [name for name in recipe.lora_targets if has_mlp or name in experts or name not in MLP_TARGETS]
    return sorted({each for name in wanted for each in experts.get(name) or _targets(name, linears, recipe)})


def names_of_experts(model_type: str) -> dict[str, tuple[str]]:
    """Return PEFT's names for a model's fused experts, keyed by Llama's; empty if PEFT cannot adapt them."""
    try:
        from peft.utils import transformers_weight_conversion as conversion
    except ImportError:  # PEFT 0.18, or transformers 4
        return {}
    kind = conversion._MODEL_TO_CONVERSION_PATTERN.get(model_type)
    names = [name for name in conversion._MOE_TARGET_MODULE_MAPPING.get(kind, {}) if name != "gate"]
    return {target: (name,) for target, name in zip(MLP_TARGETS, names, strict=False)}


def _targets(name: str, linears: set[str], recipe: Recipe) -> tuple[str, ...]:
    for candidates in ((name,), *((other,) for other in OTHER_NAMES.get(name, ())), LATENT_NAMES.get(name)):
        if candidates and all(
            any(f".{linear}".endswith(f".{each}") for linear in linears) for each in candidates
        ):
            return candidates
    leaves = sorted({linear.rpartition(".")[2] for linear in linears})
    raise CannotTraceError(
        f"recipe {recipe.name!r} adapts {name!r}, which this model lacks; its linear layers are "
        f"{', '.join(leaves)}"
    )


def _cast_adapters(model: Any, dtype: Any) -> None:
    """Cast the adapters, which PEFT makes in their layer's type or in fp32, as a user's script would."""
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.dtype is not dtype:
            parameter.data = parameter.data.to(dtype)


def _shift_logits(model: Any, recipe: Recipe) -> None:
    """Use the loss of older transformers versions, which shifts the logits instead of the labels."""
    if recipe.shifted_logits == "none":
        return
    if recipe.kernels not in ("eager", "unsloth") or recipe.loss != "framework":
        raise CannotTraceError(
            f"recipe {recipe.name!r}: shifted_logits is for transformers' own loss, not that of other kernels"
        )
    base = model.get_base_model() if recipe.method != "full" else model
    is_fused = recipe.kernels == "unsloth"
    base.loss_function = partial(
        _loss_of_shifted_logits,
        fused_kernels.cross_entropy if is_fused else torch.nn.functional.cross_entropy,
    )
    if recipe.shifted_logits == "model":
        base.get_output_embeddings().register_forward_hook(lambda module, inputs, output: output.float())


def _loss_of_shifted_logits(
    cross_entropy: Callable[..., Any], logits: Any, labels: Any, vocab_size: int, **_: Any
) -> Any:
    logits = logits.float()
    shifted = logits[..., :-1, :].contiguous()
    return cross_entropy(shifted.view(-1, vocab_size), labels[..., 1:].contiguous().view(-1))


def _forward(model: Any, recipe: Recipe) -> Callable[..., Any]:
    """Return the model's forward pass as accelerate prepares it."""
    if not recipe.fp32_logits:
        return model  # type: ignore[no-any-return]
    return convert_outputs_to_fp32(model)  # type: ignore[no-any-return]


def _loss(forward: Callable[..., Any], recipe: Recipe, shape: TraceShape, held: list[Any]) -> Any:
    device, size = here().device, (shape.micro_batch, shape.seq_len)
    ids = _token_ids(size, shape)
    more = {}
    if recipe.attention_mask:
        more["attention_mask"] = torch.ones(size, dtype=torch.long, device=device)
    with torch.autocast(device, dtype=DTYPES[recipe.autocast or "bf16"], enabled=recipe.autocast is not None):
        output = forward(input_ids=ids, labels=torch.zeros_like(ids), use_cache=False, **more)
    if recipe.outputs_held:
        held.append(output)
    return output["loss"]


def _token_ids(size: tuple[int, int], shape: TraceShape) -> Any:
    """Return random tokens, so that a mixture uses all its experts; in a trace, tokens have no values."""
    if here().is_real:
        return torch.randint(architecture_of(shape).vocab, size, device=here().device)
    return torch.zeros(size, dtype=torch.long, device=here().device)
