"""The transformers config of a traced model: of its config.json, or made from the catalogue's sizes.

Parameter counts are those of catalog/models.csv to within 0.04% for every model there
(tests/tracing/test_architecture_configs.py): the catalogue rounds some, and leaves out biases and norms of
query and key.
"""

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import transformers

from gpufare_tracer.architectures import (
    Architecture,
    architecture_of,
    catalogue_configs,
    check_config,
    is_without_vision,
)
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.result import TraceShape
from pipeline.model.config_layouts import layouts

MAX_POSITIONS = 131_072
"""Positions that a config with rotary embeddings or ALiBi allows; it has no table of them."""
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
"""Names of the number of layers in a config.json."""

LAYER_BY_LAYER = (
    "layer_types", "mlp_layer_types", "hybrid_override_pattern", "indexer_types", "num_kv_shared_layers",
)  # fmt: skip
"""Fields of a config.json that say the kind of each layer, so that a cut model stands for no deeper one."""

UNBUILDABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""Errors of transformers for sizes that do not go together; fake tensors raise a RuntimeError."""

Switches = Callable[[Architecture], dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """The configuration of a family's models in transformers."""

    config: str
    """Name of the config class."""
    switches: Switches = lambda _: {}
    """Fields that the config needs besides the sizes of Llama's layout."""
    names: dict[str, str] | None = None
    """Sizes by the config's own names, where they are not Llama's: attribute to field of ``Architecture``."""
    dense_layers: int = 0
    """Layers at the bottom that are unlike the rest."""
    period: int = 1
    """Layers after which the kinds of layers repeat."""
    note: str = ""
    """In what the traced code differs from the model's own, where transformers lacks it."""


LLAMA_NAMES = {
    "num_hidden_layers": "layers", "hidden_size": "hidden", "intermediate_size": "intermediate",
    "num_attention_heads": "heads", "num_key_value_heads": "kv_heads", "head_dim": "head_dim",
}  # fmt: skip
NO_KV_NAMES = {
    name: size for name, size in LLAMA_NAMES.items() if name not in ("num_key_value_heads", "head_dim")
}
MPT_NAMES = {"n_layers": "layers", "d_model": "hidden", "n_heads": "heads"}
T5_NAMES = {"d_model": "hidden", "d_ff": "intermediate", "num_heads": "heads", "d_kv": "head_dim"}


def _switches(**values: Any) -> Switches:
    return lambda _: values


def _mixture(experts: str, **values: Any) -> Switches:
    return lambda sizes: {
        experts: sizes.experts, "num_experts_per_tok": sizes.experts_active,
        "moe_intermediate_size": sizes.intermediate, **values,
    }  # fmt: skip


def _encoder_decoder(sizes: Architecture) -> dict[str, Any]:
    """The catalogue counts the layers of encoder and decoder together."""
    half = max(1, sizes.layers // 2)
    return {
        "num_layers": half, "num_decoder_layers": half, "feed_forward_proj": "gated-gelu",
        "is_gated_act": True, "dense_act_fn": "gelu_new", "decoder_start_token_id": 0,
    }  # fmt: skip


NO_VISION = "language model without the vision tower"


def _llama_4(step: int) -> "Family":
    """Every ``step``-th layer has experts; every fourth has no positions."""
    switches = _mixture("num_local_experts", intermediate_size_mlp=16_384, interleave_moe_layer_step=step)
    return Family("Llama4TextConfig", switches, period=4, note=NO_VISION)


LLAMA = Family("LlamaConfig")

FAMILIES: dict[str, Family] = {
    "baichuan2-7b": Family(
        "LlamaConfig", note="Llama's code for Baichuan 2: no fused W_pack, no normalized head"
    ),
    "baichuan2-13b": Family(
        "LlamaConfig",
        note="Llama's code for Baichuan 2: rotary positions for ALiBi, no fused W_pack, no normalized head",
    ),
    "bloomz": Family(
        "BloomConfig", names={"n_layer": "layers", "hidden_size": "hidden", "n_head": "heads"}
    ),
    "chatglm3": Family(
        "GlmConfig", _switches(attention_bias=True, pad_token_id=0, partial_rotary_factor=0.5),
        note="GLM-4's code for ChatGLM3: query, key and value apart",
    ),
    "deepseek-v3": Family(
        "DeepseekV3Config",
        lambda sizes: {
            "n_routed_experts": sizes.experts, "num_experts_per_tok": sizes.experts_active,
            "moe_intermediate_size": sizes.intermediate, "intermediate_size": 18_432, "n_shared_experts": 1,
            "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128, "v_head_dim": 128, "n_group": 8, "topk_group": 4,
        },
        names={name: size for name, size in LLAMA_NAMES.items() if name != "head_dim"},
        dense_layers=3,
    ),
    "falcon-7b": Family(
        "FalconConfig",
        _switches(multi_query=True, parallel_attn=True, new_decoder_architecture=False, bias=False),
        names=NO_KV_NAMES | {"ffn_hidden_size": "intermediate"},
    ),
    "falcon-40b": Family(
        "FalconConfig",
        lambda sizes: {"new_decoder_architecture": True, "num_kv_heads": sizes.kv_heads, "bias": False},
        names=NO_KV_NAMES | {"ffn_hidden_size": "intermediate"},
    ),
    "gemma-2-2b": Family("Gemma2Config", _switches(query_pre_attn_scalar=256), period=2),
    "gemma-2-9b": Family("Gemma2Config", _switches(query_pre_attn_scalar=256), period=2),
    "gemma-2-27b": Family("Gemma2Config", _switches(query_pre_attn_scalar=144), period=2),
    "gemma-3-1b": Family("Gemma3TextConfig", _switches(sliding_window=512), period=6),
    "gemma-3-": Family("Gemma3TextConfig", _switches(sliding_window=1024), period=6, note=NO_VISION),
    "gemma-": Family("GemmaConfig"),
    "gpt-neox": Family("GPTNeoXConfig", names=NO_KV_NAMES),
    "gpt-oss": Family("GptOssConfig", _mixture("num_local_experts"), period=2),
    "llama-4-scout": _llama_4(1),
    "llama-4-maverick": _llama_4(2),
    "mistral-7b-v0.3": Family("MistralConfig", _switches(sliding_window=None)),
    "mistral-7b": Family("MistralConfig", _switches(sliding_window=4096)),
    "mistral-": Family("MistralConfig", _switches(sliding_window=None)),
    "zephyr": Family("MistralConfig", _switches(sliding_window=4096)),
    "mixtral": Family("MixtralConfig", _mixture("num_local_experts", sliding_window=None)),
    "mpt": Family("MptConfig", names=MPT_NAMES),
    "mt0": Family("MT5Config", _encoder_decoder, names=T5_NAMES, period=2),
    "t0": Family("T5Config", _encoder_decoder, names=T5_NAMES, period=2),
    "olmo-2": Family("Olmo2Config"),
    "phi-1.5": Family("PhiConfig"),
    "phi-2": Family("PhiConfig", _switches(partial_rotary_factor=0.4)),
    "phi-4-mini": Family("Phi3Config", _switches(pad_token_id=0, partial_rotary_factor=0.75)),
    "phi-": Family("Phi3Config", _switches(pad_token_id=0)),
    "powerlm": Family("GraniteConfig"),
    "qwen-": Family("Qwen2Config", note="Qwen 2's code for Qwen: query, key and value apart"),
    "qwen2": Family("Qwen2Config"),
    "qwen3-30b-a3b": Family("Qwen3MoeConfig", _mixture("num_experts")),
    "qwen3-235b-a22b": Family("Qwen3MoeConfig", _mixture("num_experts")),
    "qwen3": Family("Qwen3Config"),
    "santacoder": Family(
        "GPTBigCodeConfig", _switches(multi_query=True, max_position_embeddings=2048),
        names={"n_layer": "layers", "n_embd": "hidden", "n_head": "heads", "n_inner": "intermediate"},
    ),
    "stablelm-alpha": Family("GPTNeoXConfig", names=NO_KV_NAMES),
}  # fmt: skip
"""Families by the start of a catalogue model's id, the longest that fits; the rest are Llama's."""


def family_of(model: str) -> Family:
    """The family of a catalogue model."""
    fitting = [start for start in FAMILIES if model.startswith(start)]
    return FAMILIES[max(fitting, key=len)] if fitting else LLAMA


def catalogue_config(sizes: Architecture) -> Any:
    """The config of a catalogue model at the depth of ``sizes``."""
    if config := catalogue_configs().get(sizes.model):
        whole = architecture_of(TraceShape(model=sizes.model)).layers
        raw = config if sizes.layers == whole else cut(config, sizes.layers)
        return transformers.CONFIG_MAPPING[config["model_type"]].from_dict(raw | {"use_cache": False})
    family = family_of(sizes.model)
    values = {attribute: getattr(sizes, size) for attribute, size in (family.names or LLAMA_NAMES).items()}
    values |= {"vocab_size": sizes.vocab, "tie_word_embeddings": sizes.tied_embeddings}
    values |= {"max_position_embeddings": MAX_POSITIONS, "use_cache": False}
    return getattr(transformers, family.config)(**values | family.switches(sizes))


def empty_model(config: Any, dtype: Any, attention: str, *, is_initialized: bool = False) -> Any:
    """The model of a config on the device at hand, its weights random or not initialized.

    Raises ``CannotTraceError`` where transformers has no such attention for it.
    """
    try:
        from transformers.initialization import no_init_weights
    except ModuleNotFoundError:  # transformers 4
        from transformers.modeling_utils import no_init_weights

    with nullcontext() if is_initialized else no_init_weights():
        try:
            return model_class(config).from_config(config, dtype=dtype, attn_implementation=attention)
        except CannotTraceError:
            raise
        except UNBUILDABLE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            advice = ""
            if isinstance(error, ValueError) and re.search("attention|attn", reason, re.IGNORECASE):
                advice = " (recipe: attention: eager, which transformers takes for such a model by itself)"
            raise CannotTraceError(
                f"{type(config).__name__} with attention {attention!r}: {reason}{advice}"
            ) from error


def tie_weights(model: Any, shape: TraceShape) -> None:
    """Tie the head to the embeddings where the published weights are tied.

    T5's config says tied whatever it is given; its newer checkpoints bring a head of their own.
    """
    import torch

    model.tie_weights()
    if model.config.is_encoder_decoder and not architecture_of(shape).tied_embeddings:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))


def config_of(shape: TraceShape) -> Any:
    """The transformers config of a shape, at the depth to trace.

    Raises ``CannotTraceError`` for a config.json that transformers does not know or cannot read.
    """
    if shape.config is None:
        return catalogue_config(architecture_of(shape))
    check_config(shape.model, shape.config)
    kind = shape.config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise CannotTraceError(
            f"config of {shape.model!r}: transformers {transformers.__version__} knows no model_type "
            f"{kind!r}; trace a model of the same sizes whose code is in transformers"
        )
    raw = cut(shape.config, shape.layers) if shape.layers else shape.config
    try:
        config = transformers.CONFIG_MAPPING[kind].from_dict(raw)
    except Exception as error:  # any check of any model's config
        raise CannotTraceError(f"config of {shape.model!r}: {type(error).__name__}: {error}") from error
    config.use_cache = False
    return config


def cut(config: dict[str, Any], layers: int) -> dict[str, Any]:
    """A config.json with fewer layers; lists that have an entry for each layer are cut with it."""
    if isinstance(config.get("text_config"), dict):
        return config | {"text_config": cut(config["text_config"], layers)}
    depths = {name: layers for name in DEPTHS if config.get(name) is not None} or {DEPTHS[0]: layers}
    full = max((config[name] for name in depths if name in config), default=None)
    lists = {
        name: value[:layers]
        for name, value in config.items()
        if isinstance(value, list) and full is not None and len(value) == full
    }
    return config | lists | depths


def model_class(config: Any) -> Any:
    """The transformers class that makes the model of a config: with a decoder alone, or with an encoder too.

    Raises ``CannotTraceError`` for a config of another kind of model.
    """
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    if type(config) in auto._model_mapping:
        return auto
    raise CannotTraceError(
        f"model_type {config.model_type!r} is no language model of transformers {transformers.__version__}: "
        "trace a training step of it with --step module:function"
    )


def note_of(shape: TraceShape) -> str:
    """In what the traced code differs from the model's own; empty where it does not."""
    if shape.config:
        return ""
    if shape.model in catalogue_configs():
        return NO_VISION if is_without_vision(shape.model) else ""
    return family_of(shape.model).note


def layer_pattern(model: str) -> tuple[int, int]:
    """Layers at the bottom of a catalogue model that are unlike the rest, and after how many the rest repeat.

    Two depths stand for a deep model only if both have all bottom layers and differ by whole periods.
    """
    if config := catalogue_configs().get(model):
        if any(name in config for name in LAYER_BY_LAYER):
            return 0, architecture_of(TraceShape(model=model)).layers
        every = config.get("full_attention_interval") or layouts().alternating.get(config["model_type"], 1)
        return config.get("first_k_dense_replace", 0), every
    family = family_of(model)
    return family.dense_layers, family.period
