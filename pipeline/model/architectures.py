"""Reads a model's shape, the columns of catalog/models.csv, from its Hugging Face config.json.

This is the only reader of config.json, for estimates and traces alike. A field that changes the shape in a
way that is not modelled causes an error that names the field.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.catalog.model_shapes import Shape
from pipeline.contracts.errors import GpufareError
from pipeline.model.config_layouts import layouts
from pipeline.parsing.printable import printable

Config = dict[str, Any]

MAX_SIZE = 1 << 24
"""No published model has a larger width, vocabulary or count."""
MAX_LAYERS = 1024
_SIZE = re.compile(r"(^|_)(n|d|num)_|_(size|dim|layers?|heads?|rank|experts)$")
_SHOWN_CHARACTERS = 60

HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
KV_HEADS = ("num_key_value_heads", "num_kv_heads")
INTERMEDIATE = ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "encoder_ffn_dim")
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
EXPERTS_ACTIVE = ("num_experts_per_tok", "top_k_experts", "num_experts_per_token", "moe_k", "moe_topk")


class ConfigError(GpufareError):
    """A config.json cannot be fetched or is not a model's; the message gives the file and the reason."""


@contextmanager
def named(model: str) -> Iterator[None]:
    """Turn errors in the config.json of a model into a ConfigError that names the model."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        text = str(error) if isinstance(error, ValueError) else f"a field is not of its name's type ({error})"
        raise ConfigError(f"config of {shown(model)}: {printable(text)[:300]}") from error


def shape_of(model: str, config: Config) -> Shape:
    """Return a language model's shape. Raises ConfigError naming a missing, wrong or unsupported field."""
    with named(model):
        check_config(config)
        _reject_other_heads(config)
        kind, text = _layout_of(config)
        sizes = sizes_of(text)
        if config.get("is_encoder_decoder") or kind in _ENCODER_DECODERS:
            return _encoder_decoder(kind, text, sizes)
        if kind == "nemotron_h":
            return _blocks(text, sizes)
        return _decoder(kind, text, sizes)


def _layout_of(config: Config) -> tuple[str, Config]:
    """Return the model type whose layout applies, and the language model's fields, including defaults."""
    text = language_model_of(config)
    kind = str(text.get("model_type") or config.get("model_type") or "")
    kind = layouts().like.get(kind, kind)
    if kind not in layouts().read_types:
        raise ValueError(
            f"model_type {shown(kind)} is not one whose layers are known; where they are those of another, "
            "such as llama or qwen3_moe, name that one as model_type"
        )
    for name, why in layouts().not_understood.items():
        if text.get(name):
            raise ValueError(f"{name} means {why}, which is not modelled")
    tied = {"tie_word_embeddings": kind in layouts().tied_by_default}
    full = {**tied, **layouts().defaults.get(kind, {}), **_given(text)}
    _reject_missing(kind, full, is_part=text is not config)
    return kind, full


def _reject_missing(kind: str, text: Config, is_part: bool) -> None:
    """Raise ValueError naming any sizes that are neither given nor implied by other sizes."""
    needed = [HIDDEN, HEADS, (*LAYERS, "hybrid_override_pattern", "layers_block_type"), ("vocab_size",)]
    if kind not in layouts().not_gated:
        needed += [(*INTERMEDIATE, "moe_intermediate_size"), *([KV_HEADS] if is_part else [])]
    if missing := [names[0] for names in needed if text.keys().isdisjoint(names)]:
        raise ValueError(f"it has no {', '.join(missing)}: add what its model has")


def _reject_other_heads(config: Config) -> None:
    """Raise ValueError if none of the config's classes predicts tokens."""
    classes = config.get("architectures") or ["ForCausalLM"]
    names = classes if isinstance(classes, list) else []
    if not any(str(name).endswith(layouts().predicts_tokens) for name in names):
        raise ValueError(
            f"architectures is {shown(classes)}, not a class that predicts tokens, such as LlamaForCausalLM; "
            "remove it where the same layers are trained as a language model"
        )


def _decoder(kind: str, text: Config, sizes: Config) -> Shape:
    shape = Shape(**sizes, gated_mlp=int(kind not in layouts().not_gated), max_context=_context(text))
    for part in (_multi_query, _latent_attention, _experts, _kinds_of_layers, _linear_mixers, _extras):
        shape = shape.model_copy(update=part(kind, text, shape))
    return shape


def _context(text: Config) -> int | None:
    return first(text, "max_position_embeddings", "n_positions", default=0, least=0) or None


def _multi_query(kind: str, text: Config, base: Shape) -> Config:
    if text.get("multi_query") and not text.get("new_decoder_architecture"):
        return {"kv_heads": 1}
    if text.get("expansion_ratio"):
        return {"intermediate": whole_number("expansion_ratio", text["expansion_ratio"]) * base.hidden}
    if kind == "lfm2" and text.get("block_auto_adjust_ff_dim", True):
        multiple = first(text, "block_multiple_of", default=256)
        width = int(float(text.get("block_ffn_dim_multiplier") or 1) * (2 * base.intermediate // 3))
        return {"intermediate": -(-width // multiple) * multiple}
    return {}


def _latent_attention(kind: str, text: Config, base: Shape) -> Config:
    if not text.get("kv_lora_rank"):
        value = first(text, "v_head_dim", default=base.head_dim)
        return {"value_head_dim": value} if value != base.head_dim else {}
    rope = first(text, "qk_rope_head_dim", least=0)
    return {
        "kv_latent": first(text, "kv_lora_rank"), "rope_head_dim": rope,
        "q_latent": first(text, "q_lora_rank", default=0, least=0) or None,
        "head_dim": first(text, "qk_nope_head_dim") + rope,
        "value_head_dim": first(text, "v_head_dim"), "kv_heads": base.heads,
    }  # fmt: skip


def _experts(kind: str, text: Config, base: Shape) -> Config:
    if kind == "gemma4_text" and not text.get("enable_moe_block"):
        return {}
    experts = first(text, *EXPERTS, default=0, least=0)
    if experts <= 1:
        dense_width = first(text, "shared_intermediate_size", default=base.intermediate)
        return {"intermediate": dense_width} if kind == "granitemoehybrid" else {}
    width = first(text, "moe_intermediate_size", default=base.intermediate)
    changes: Config = {
        "experts": experts,
        "experts_active": first(text, *EXPERTS_ACTIVE, most=experts),
        "intermediate": width,
        "shared_intermediate": _shared_width(kind, text, base, width) or None,
    }
    if dense := _dense_layers(text, base.layers):
        names = ("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size")
        changes |= {"dense_layers": dense, "dense_intermediate": first(text, *names)}
    return changes


def _shared_width(kind: str, text: Config, base: Shape, width: int) -> int:
    if kind == "llama4_text" or kind == "gemma4_text":
        return base.intermediate
    counts = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
    widths = ("shared_expert_intermediate_size", "shared_intermediate_size")
    shared = first(text, *counts, default=0, least=0)
    return first(text, *widths, "moe_shared_expert_intermediate_size", default=shared * width, least=0)


def _dense_layers(text: Config, layers: int) -> int:
    """Return the number of dense layers in a mixture of experts."""
    if kinds := text.get("mlp_layer_types"):
        return _strings("mlp_layer_types", kinds, layers).count("dense")
    if isinstance(text.get("moe_layer_freq"), list):
        return sum(not each for each in text["moe_layer_freq"])
    if isinstance(text.get("moe_layers"), list):
        return layers - len(text["moe_layers"])
    steps = ("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval")
    if (every := first(text, *steps, default=1)) != 1:
        return layers - layers // every
    if isinstance(only := text.get("mlp_only_layers"), list) and only:
        return len(only)
    names = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", "n_dense_first_layers")
    return first(text, *names, default=0, least=0)


def _strings(name: str, values: Any, layers: int) -> list[str]:
    if not isinstance(values, list) or len(values) != layers:
        raise ValueError(f"{name} is not a list of {layers} layers")
    return [str(value) for value in values]


_FULL = ("full_attention", "attention", "indexed_attention", "global")
_SLIDING = ("sliding_attention", "chunked_attention", "local")
_LINEAR = ("linear_attention", "mamba", "conv", "lightning")


def _kinds_of_layers(kind: str, text: Config, base: Shape) -> Config:
    """Return the numbers of full-attention and linear-time layers, and the attention window's size."""
    listed = text.get("layer_types") or text.get("layers_block_type")
    if listed is None:
        full = _full_among_linear(text, base.layers)
        if full is None:
            return _window(kind, text, base.layers)
        return {"full_attention_layers": full, "linear_attention_layers": base.layers - full}
    kinds = _strings("layer_types", listed, base.layers)
    if unknown := set(kinds) - {*_FULL, *_SLIDING, *_LINEAR}:
        raise ValueError(f"layer_types: {shown(min(unknown))} is no kind of layer that is modelled")
    sliding, linear = (sum(each in names for each in kinds) for names in (_SLIDING, _LINEAR))
    if not sliding and not linear:
        return {}
    return {
        "full_attention_layers": base.layers - sliding - linear,
        "linear_attention_layers": linear or None,
        "sliding_window": first(text, "sliding_window", "attention_chunk_size") if sliding else None,
    }


def _full_among_linear(text: Config, layers: int) -> int | None:
    """Return the number of attention layers among linear-time layers; None if the config does not give it."""
    if isinstance(text.get("full_attn_idxs"), list):
        return len(text["full_attn_idxs"])
    interval = first(text, "full_attention_interval", default=0, least=0)
    return layers // interval if interval else None


def _window(kind: str, text: Config, layers: int) -> Config:
    """Return the columns of the attention window, for a config that does not list its layer types."""
    if kind == "llama4_text":
        full = layers // first(text, "no_rope_layer_interval", default=4)
        return {"sliding_window": first(text, "attention_chunk_size"), "full_attention_layers": full}
    said = text.get("sliding_window")
    if not said or text.get("use_sliding_window", kind in layouts().sliding) is False:
        return {}
    window = whole_number("sliding_window", said)
    if window >= (_context(text) or MAX_SIZE):
        return {}
    pattern = text.get("sliding_window_pattern") or layouts().alternating.get(kind)
    if text.get("use_sliding_window") and "max_window_layers" in text:
        full = min(layers, first(text, "max_window_layers", least=0))
    elif isinstance(pattern, str):
        full = sum(pattern[i % len(pattern)] == "G" for i in range(layers))
    else:
        full = layers // whole_number("sliding_window_pattern", pattern) if pattern else 0
    return {"sliding_window": window, "full_attention_layers": full}


def _linear_mixers(kind: str, text: Config, base: Shape) -> Config:
    """Return the number of parameters of one linear-time mixer."""
    if not base.linear_attention_layers:
        return {}
    h = base.hidden
    if "linear_num_value_heads" in text:
        key = first(text, "linear_num_key_heads") * first(text, "linear_key_head_dim", default=128)
        heads = first(text, "linear_num_value_heads")
        value = heads * first(text, "linear_value_head_dim", default=128)
        conv = first(text, "linear_conv_kernel_dim", default=4) * (2 * key + value)
        return {"linear_mixer_params": h * (2 * key + 2 * value + 2 * heads) + conv + value * h}
    if "mamba_n_heads" in text or "mamba_num_heads" in text:
        return {"linear_mixer_params": _mamba_params(text, h)}
    if kind == "lfm2":
        return {"linear_mixer_params": 4 * h * h + h * first(text, "conv_L_cache", default=3)}
    if kind == "minimax":
        return {"linear_mixer_params": 5 * h * base.heads * base.head_dim}
    raise ValueError("its linear-time layers are of a kind that is not modelled")


def _mamba_params(text: Config, hidden: int) -> int:
    heads = first(text, "mamba_n_heads", "mamba_num_heads")
    dim = text.get("mamba_d_head") or text.get("mamba_head_dim")
    if not isinstance(dim, int):
        dim = first(text, "mamba_expand", "expand", default=2) * hidden // heads
    inner = heads * dim
    state = 2 * first(text, "mamba_n_groups", "n_groups") * first(text, "mamba_d_state", "ssm_state_size")
    conv = first(text, "mamba_d_conv", "conv_kernel", default=4) * (inner + state)
    return hidden * (2 * inner + state + heads) + conv + inner * hidden


def _extras(kind: str, text: Config, base: Shape) -> Config:
    """Return the parameter counts that the other columns do not include."""
    linear, embedding = _gemma_4_extras(text, base) if kind == "gemma4_text" else (0, 0)
    h = base.hidden
    if text.get("attn_output_gate") or kind == "afmoe":
        attention_layers = base.layers - (base.linear_attention_layers or 0)
        linear += attention_layers * h * base.heads * base.head_dim
    if text.get("index_n_heads"):
        indexers = _strings("indexer_types", text.get("indexer_types") or ["full"] * base.layers, base.layers)
        heads, dim = first(text, "index_n_heads"), first(text, "index_head_dim")
        linear += indexers.count("full") * ((base.q_latent or h) * heads * dim + h * (dim + heads))
    if kind in layouts().learned_positions:
        positions = first(text, "n_positions", "max_position_embeddings")
        embedding += h * (positions + layouts().learned_positions[kind])
    return {"extra_linear_params": linear or None, "extra_embedding_params": embedding or None}


def _gemma_4_extras(text: Config, base: Shape) -> tuple[int, int]:
    """Return Gemma 4's extra parameters: for wider heads, keys used as values, and shared keys and values."""
    h, full = base.hidden, base.full_attention_layers or 0
    said = text.get("per_layer_config")
    of_layer = next(iter(said.values())) if isinstance(said, dict) and said else {}
    wide, local = first({**text, "head_dim": None, **of_layer}, "head_dim", "global_head_dim"), base.head_dim
    same = bool(text.get("attention_k_eq_v"))
    names = ("num_key_value_heads", "num_global_key_value_heads")
    kv_wide = first({**text, "num_key_value_heads": None, **of_layer}, *names, default=base.kv_heads)
    kv_wide = kv_wide if same else base.kv_heads
    of_full = 2 * base.heads * wide + (1 if same else 2) * kv_wide * wide
    of_local = 2 * base.heads * local + 2 * base.kv_heads * local
    extra = full * h * (of_full - of_local)
    if shared := first(text, "num_kv_shared_layers", default=0, least=0):
        # Layers that share keys and values compute neither; full layers are as frequent there as elsewhere.
        wide_shared = shared * full // base.layers
        own = wide_shared * (of_full - 2 * base.heads * wide)
        extra -= h * (own + (shared - wide_shared) * 2 * base.kv_heads * local)
    per_layer = first(text, "hidden_size_per_layer_input", default=0, least=0)
    if not per_layer:
        return extra, 0
    extra += base.layers * 3 * h * per_layer
    return extra, first(text, "vocab_size_per_layer_input") * base.layers * per_layer


def _blocks(text: Config, sizes: Config) -> Shape:
    """Return Nemotron-H's shape: a block is a mixer or an MLP; a mixer and the MLP after it form a layer."""
    names = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
    listed = text.get("layers_block_type") or str(text.get("hybrid_override_pattern") or "")
    kinds = [names.get(str(each), str(each)) for each in listed]
    if set(kinds) - {"mamba", "attention", "moe", "mlp"} or {"moe", "mlp"} <= set(kinds) or not kinds:
        raise ValueError("hybrid_override_pattern: its blocks are of kinds that are not modelled")
    mamba, attention = kinds.count("mamba"), kinds.count("attention")
    layers, mlps = mamba + attention, len(kinds) - mamba - attention
    if mlps > layers:
        raise ValueError("hybrid_override_pattern: more MLPs than mixers are not modelled")
    if "moe" in kinds:
        shared = first(text, "moe_shared_expert_intermediate_size", default=0, least=0)
        sizes |= {
            "experts": first(text, *EXPERTS), "experts_active": first(text, *EXPERTS_ACTIVE),
            "intermediate": first(text, "moe_intermediate_size"),
            "shared_intermediate": shared * first(text, "n_shared_experts", default=1, least=0) or None,
        }  # fmt: skip
    return Shape(
        **(sizes | {"layers": layers, "gated_mlp": 0}),
        full_attention_layers=attention, linear_attention_layers=mamba,
        linear_mixer_params=_mamba_params(text, sizes["hidden"]),
        dense_layers=layers - mlps or None, dense_intermediate=0 if layers - mlps else None,
        max_context=_context(text),
    )  # fmt: skip


_ENCODER_DECODERS = frozenset(("t5", "bart", "mbart", "pegasus", "m2m_100", "marian", "blenderbot", "plbart"))


def _encoder_decoder(kind: str, text: Config, sizes: Config) -> Shape:
    """Return an encoder-decoder's shape: all layers are counted together; decoder layers attend twice."""
    if kind not in _ENCODER_DECODERS:
        raise ValueError(f"model_type: encoder-decoders of type {shown(kind)} are not modelled")
    if kind == "t5":
        encoder = sizes["layers"]
        decoder = first(text, "num_decoder_layers", default=encoder, most=MAX_LAYERS)
        gated, positions = "gated" in str(text.get("feed_forward_proj") or ""), 0
    else:
        encoder, decoder = (first(text, f"{part}_layers", most=MAX_LAYERS) for part in ("encoder", "decoder"))
        widths = {first(text, f"{part}_ffn_dim") for part in ("encoder", "decoder")}
        if len(widths) > 1:
            raise ValueError("encoder_ffn_dim and decoder_ffn_dim differ, which is not modelled")
        sizes |= {"intermediate": widths.pop()}
        learned = kind in ("bart", "mbart", "plbart", "blenderbot")
        gated, positions = False, 2 * first(text, "max_position_embeddings") + (4 if learned else 0)
    return Shape(
        **(sizes | {"layers": encoder + decoder, "gated_mlp": int(gated)}),
        cross_attention_layers=decoder,
        extra_embedding_params=positions * sizes["hidden"] or None,
        max_context=_context(text),
    )


def language_model_of(config: Config) -> Config:
    """Return the language model's fields, including the sizes that a part leaves to its class's defaults."""
    part, whole = _language_part(config)
    tied = {"tie_word_embeddings": whole.get("tie_word_embeddings")}
    return part if part is whole else {**tied, **_given(part), **_class_defaults(part)}


def _language_part(config: Config) -> tuple[Config, Config]:
    """Return the part of a config that describes the language model (other parts may describe vision and
    audio towers), and the whole config that contains it; without towers, the two are the same."""
    whole = config["thinker_config"] if isinstance(config.get("thinker_config"), dict) else config
    for name in ("text_config", "language_config", "llm_config"):
        for around in (config, whole):
            if isinstance(around.get(name), dict):
                return around[name], around
    return whole, whole


def _class_defaults(part: Config) -> Config:
    """Return the sizes that a part leaves to its class's defaults: transformers saves a part (but not a whole
    config) without the values that equal those defaults."""
    known = dict(layouts().class_defaults.get(str(part.get("model_type")), {}))
    if part.get("model_type") == "llama":  # the default of its class is the number of heads
        known["num_key_value_heads"] = part.get("num_attention_heads", known["num_attention_heads"])
    return {name: size for name, size in known.items() if name not in part}


def _given(config: Config) -> Config:
    return {name: value for name, value in config.items() if value is not None}


def notes_on(config: Config) -> list[str]:
    """Return a sentence for each part of a readable config.json that is skipped, filled in or replaced."""
    part, whole = _language_part(config)
    names = ("vision_config", "audio_config", "visual", "talker_config", "token2wav_config")
    towers = [name.removesuffix("_config") for name in names if config.get(name)]
    notes = [f"its {tower} tower is skipped: only text is trained" for tower in towers]
    if part is not whole and (filled := _class_defaults(part)):
        sizes = ", ".join(f"{name} {size}" for name, size in filled.items())
        notes.append(f"sizes that it omits are the defaults of its class in transformers: {sizes}")
    if stored := config.get("quantization_config") or part.get("quantization_config"):
        notes.append(
            f"its weights are published quantized ({shown(stored.get('quant_method'))}): planned in bf16, or "
            "quantized by --method qlora"
        )
    return notes


def sizes_of(text: Config) -> Config:
    """Return the sizes that all frameworks have in common. Raises ValueError naming a wrong size."""
    hidden, heads = first(text, *HIDDEN), first(text, *HEADS)
    kinds = text.get("hybrid_override_pattern") or text.get("layers_block_type") or ()
    return {
        "hidden": hidden,
        "heads": heads,
        "layers": first(text, *LAYERS, default=len(kinds) or None, most=MAX_LAYERS),
        "intermediate": first(text, *INTERMEDIATE, default=4 * hidden),
        "kv_heads": first(text, *KV_HEADS, default=heads),
        "head_dim": first(text, "head_dim", "d_kv", "attention_head_dim", default=hidden // heads),
        "vocab": first(text, "vocab_size"),
        "tied_embeddings": bool(text.get("tie_word_embeddings") or False),
    }


def check_config(config: Config) -> None:
    """Raise ValueError naming a field of the wrong type, since a config.json cannot be trusted."""
    for part in (config, language_model_of(config)):
        for name in ("model_type", "text_config", "quantization_config"):
            kind, words = (str, "text") if name == "model_type" else (dict, "an object")
            if not isinstance(part.get(name), kind | None):
                raise ValueError(f"{name} is {shown(part[name])}, not {words}")
        for name, value in part.items():
            if _SIZE.search(name) and isinstance(value, int | float | str) and not isinstance(value, bool):
                whole_number(name, value, least=0)


def first(
    config: Mapping[str, Any], *names: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE
) -> int:
    """Return the first given field among ``names``. Raises ValueError if it is missing or not a size."""
    for name in names:
        if config.get(name) is not None:
            return whole_number(name, _of_all_layers(name, config), least, most)
    if default is None:
        raise ValueError(f"it has none of {', '.join(names)}")
    return whole_number(names[0], default, least, most)


def _of_all_layers(name: str, config: Mapping[str, Any]) -> Any:
    """Return a field's value, or the common value of its list. Raises ValueError if listed values differ."""
    value = config[name]
    if not isinstance(value, list):
        return value
    if len(value) != config.get("num_hidden_layers") or len({*map(repr, value)}) != 1:
        raise ValueError(f"{name} is {shown(value)}: a list is read only with one equal value for each layer")
    return value[0]


def whole_number(name: str, value: Any, least: int = 1, most: int = MAX_SIZE) -> int:
    """Return the value if it is a whole number in range. Raises ValueError naming the field."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {shown(value)}, not a whole number from {least} to {most}")
    return value


def shown(value: Any) -> str:
    """Return a value from an untrusted file as a short, printable string."""
    text = printable(repr(value))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
