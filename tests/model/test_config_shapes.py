"""The shape that a config.json gives: each kind of layer, and refusals that name the field."""

from typing import Any

import pytest

from pipeline.catalog.model_shapes import counted
from pipeline.contracts.errors import GpufareError
from pipeline.model.architectures import ConfigError, notes_on, shape_of
from pipeline.model.given_models import model_of_config
from tests.model.conftest import cases

CONFIGS: dict[str, Any] = cases("configs.yaml")
LLAMA, DEEPSEEK_V3, NEMOTRON_H = CONFIGS["llama"], CONFIGS["deepseek_v3"], CONFIGS["nemotron_h"]
GPT_OSS, BITNET, HUNYUAN_A13B = CONFIGS["gpt_oss"], CONFIGS["bitnet"], CONFIGS["hunyuan_a13b"]
VISION = {"model_type": "clip_vision_model", "hidden_size": 1024, "num_hidden_layers": 24}


def without(config: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != name}


WINDOWS: tuple[tuple[dict[str, Any], int | None, int | None], ...] = (
    ({"model_type": "mistral", "sliding_window": 4096, "max_position_embeddings": 32768}, 4096, 0),
    ({"model_type": "mistral", "sliding_window": None}, None, None),
    ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, None, None),
    ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28},
     4096, 28),
    ({"model_type": "phi3", "sliding_window": 262144, "max_position_embeddings": 131072}, None, None),
    ({"model_type": "gemma2", "sliding_window": 4096}, 4096, 16),
    ({"model_type": "gemma3_text", "sliding_window": 1024}, 1024, 5),
    ({"model_type": "gpt_oss", "sliding_window": 128,
      "layer_types": ["sliding_attention", "full_attention"] * 16}, 128, 16),
    ({"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLG",
      "use_sliding_window": None}, 4096, 8),
)  # fmt: skip


def test_sliding_windows() -> None:
    shapes = [shape_of("theirs", LLAMA | changes) for changes, *_ in WINDOWS]
    assert [(shape.sliding_window, shape.full_attention_layers) for shape in shapes] == [
        (window, full) for _, window, full in WINDOWS
    ]


def test_vision_tower_is_skipped_and_named() -> None:
    whole = {"model_type": "gemma3", "text_config": LLAMA | {"model_type": "gemma3_text"},
             "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}}  # fmt: skip
    assert shape_of("theirs", whole) == shape_of("theirs", LLAMA | {"model_type": "gemma3_text"})
    assert notes_on(whole) == ["its vision tower is skipped: only text is trained"]
    assert notes_on(LLAMA) == []


def test_omitted_fields_of_a_config_have_their_class_defaults() -> None:
    gemma = without(LLAMA, "vocab_size") | {"model_type": "gemma3_text"}
    shape = shape_of("theirs", gemma)
    assert (shape.vocab, shape.head_dim, shape.tied_embeddings) == (262_208, 256, 1)
    linear = LLAMA | {"model_type": "qwen3_next", "linear_num_key_heads": 8, "linear_num_value_heads": 24}
    sizes = {"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}
    assert shape_of("theirs", linear) == shape_of("theirs", linear | sizes)
    for name, size in sizes.items():
        assert shape_of("theirs", linear) != shape_of("theirs", linear | {name: 2 * size})


QUANTIZED = (
    (DEEPSEEK_V3, "fp8", 671e9), (BITNET, "bitnet", 2.41e9),
    (GPT_OSS | {"num_hidden_layers": 24, "num_local_experts": 32}, "mxfp4", 20.9e9),
    (GPT_OSS | {"num_hidden_layers": 36, "num_local_experts": 128}, "mxfp4", 116.8e9),
)  # fmt: skip


def test_a_quantized_checkpoint_has_the_shape_before_quantization() -> None:
    for config, method, params in QUANTIZED:
        stored = config | {"quantization_config": {"quant_method": method}}
        model, notes = model_of_config(stored, "theirs", "a test")
        assert counted(model).params_total == pytest.approx(params, rel=0.01)
        said = f"its weights are published quantized ('{method}')"
        assert notes == [f"{said}: planned in bf16, or quantized by --method qlora"]
        part = {"text_config": stored, "vision_config": VISION}
        assert notes[0] in model_of_config(part, "theirs", "a test")[1]


OMITTED: tuple[tuple[dict[str, Any], str, int], ...] = (
    # llava-hf/llava-1.5-7b-hf: Llama 2 7B with 64 more tokens
    ({"model_type": "llama", "vocab_size": 32064},
     "hidden_size 4096, intermediate_size 11008, num_hidden_layers 32, num_attention_heads 32, "
     "num_key_value_heads 32", 6_738_415_616 + 64 * 2 * 4096),
    # llava-hf/llava-v1.6-mistral-7b-hf, whose null is not the class's window
    ({"model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": None,
      "vocab_size": 32064}, "hidden_size 4096, num_hidden_layers 32, num_attention_heads 32", 7_242_256_384),
    # Qwen/Qwen2-Audio-7B, without biases
    ({"model_type": "qwen2", "intermediate_size": 11008, "sliding_window": 32768, "vocab_size": 156032},
     "hidden_size 4096, num_hidden_layers 32, num_attention_heads 32, num_key_value_heads 32", 7_754_485_760),
)  # fmt: skip


def test_sizes_that_a_part_omits_are_the_defaults_of_its_class() -> None:
    for text, omitted, params in OMITTED:
        model, notes = model_of_config({"text_config": text, "vision_config": VISION}, "theirs", "a test")
        assert (counted(model).params_total, model.sliding_window) == (params, None)
        assert notes[1] == f"sizes that it omits are the defaults of its class in transformers: {omitted}"
    assert shape_of("theirs", {"text_config": {"model_type": "mistral"}}).sliding_window == 4096
    text = {"model_type": "llama", "hidden_size": 5120, "num_attention_heads": 40, "num_hidden_layers": 40}
    assert shape_of("theirs", {"text_config": text}).kv_heads == 40


def test_a_list_of_one_equal_value_for_each_layer_is_that_value() -> None:
    shape = shape_of("theirs", HUNYUAN_A13B)
    assert (shape.experts_active, shape.intermediate, shape.shared_intermediate) == (8, 3072, 3072)
    # 80,393,183,232 with the norms of queries and keys, in transformers 5.23.0.
    assert counted(shape).params_total == pytest.approx(80_393_183_232, rel=1e-6)
    assert counted(shape).params_active == pytest.approx(13e9, rel=0.02)
    # Saved by transformers, whose class always has one shared expert.
    assert shape_of("theirs", without(HUNYUAN_A13B, "num_shared_expert")) == shape
    assert shape_of("a", without(NEMOTRON_H, "n_shared_experts")) == shape_of("a", NEMOTRON_H)


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"model_type": "llama", "vocab_size": 32064},
     "it has no hidden_size, num_attention_heads, num_hidden_layers, intermediate_size: add"),
    ({"text_config": {"model_type": "qwen3", "hidden_size": 4096, "vocab_size": 32064}},
     "it has no num_attention_heads, num_hidden_layers, intermediate_size, num_key_value_heads: add"),
    *((HUNYUAN_A13B | {"moe_topk": values}, r"moe_topk is .*(not a whole number|one equal value)")
      for values in ([8] * 31 + [4], [8] * 31, [], [[8]] * 32)),
    (without(LLAMA, "model_type"), "model_type '' is not one whose layers are known"),
    (without(LLAMA, "vocab_size"), "it has no vocab_size"),
    (LLAMA | {"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000, not a whole number"),
    (HUNYUAN_A13B | {"use_cla": True}, "use_cla means keys and values that layers share"),
    (LLAMA | {"altup_num_inputs": 4}, "altup_num_inputs means several residual streams"),
    (NEMOTRON_H | {"moe_latent_size": 1024}, "moe_latent_size means experts in a latent space"),
    (NEMOTRON_H | {"hybrid_override_pattern": "M-E*X"}, "hybrid_override_pattern"),
    (LLAMA | {"layer_types": ["full_attention"] * 3}, "layer_types is not a list of 32 layers"),
    (LLAMA | {"layer_types": ["recurrent"] * 32}, "'recurrent' is no kind of layer"),
    (LLAMA | {"layer_types": ["mamba"] * 32}, "linear-time layers are of a kind"),
    (without(DEEPSEEK_V3, "num_experts_per_tok"), "has none of num_experts_per_tok"),
    (DEEPSEEK_V3 | {"first_k_dense_replace": 62}, "dense_layers is 62, not from 0 to 61"),
    (LLAMA | {"is_encoder_decoder": True}, "encoder-decoders of type 'llama'"),
    (LLAMA | {"text_config": [1]}, "text_config is"),
    (LLAMA | {"quantization_config": "fp8"}, "quantization_config is 'fp8', not an object"),
)  # fmt: skip


def test_unknown_fields_are_refused_by_name() -> None:
    for config, words in REFUSED:
        with pytest.raises(GpufareError, match=words):
            model_of_config(config, "theirs", "a test")


def test_text_of_others_is_printable_and_short() -> None:
    with pytest.raises(ConfigError) as caught:
        shape_of("\x1b[31m" * 99, LLAMA | {"model_type": "\x1b[31m" * 1000})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_the_text_of_a_published_mllama_is_read_as_mllama() -> None:
    text = {
        "model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336,
        "vocab_size": 128256, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
        "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "tie_word_embeddings": False,
    }  # fmt: skip
    published = shape_of("mllama", {"model_type": "mllama", "text_config": text})
    assert (published.layers, published.hidden, published.kv_heads) == (40, 4096, 8)
