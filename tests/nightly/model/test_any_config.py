"""Any config.json, however odd, gives the shape of a model or a reason."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.model_shapes import counted
from pipeline.contracts.errors import GpufareError
from pipeline.model.given_models import model_of_config
from tests.model.test_config_shapes import DEEPSEEK_V3, LLAMA, NEMOTRON_H

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(), st.text(max_size=5),
    st.lists(st.one_of(st.none(), st.integers(0, 9), st.text(max_size=9)), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
FIELDS = sorted(
    {
        *LLAMA, *DEEPSEEK_V3, *NEMOTRON_H, "layer_types", "sliding_window", "use_sliding_window", "head_dim",
        "max_position_embeddings", "sliding_window_pattern", "max_window_layers", "moe_layer_freq",
        "moe_layers", "mlp_layer_types", "mlp_only_layers", "decoder_sparse_step", "index_n_heads",
        "full_attention_interval", "indexer_types", "index_head_dim", "tie_word_embeddings",
        "linear_num_value_heads", "text_config", "quantization_config", "moe_topk", "num_shared_expert",
        "global_head_dim", "per_layer_config", "num_kv_shared_layers", "hidden_size_per_layer_input",
        "num_local_experts", "layers_block_type", "is_encoder_decoder", "feed_forward_proj", "thinker_config",
        "expansion_ratio", "block_ffn_dim_multiplier", "n_positions", "mamba_d_head", "vision_config",
    }
)  # fmt: skip
KINDS = (
    "llama", "mistral", "gemma4_text", "qwen3_5_moe_text", "deepseek_v3", "nemotron_h", "t5", "bart", "lfm2",
    "granitemoehybrid", "gpt2", "falcon", "mpt", "llama4_text", "exaone4", "gemma3",
)  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.sampled_from([LLAMA, DEEPSEEK_V3, NEMOTRON_H]),
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=4),
)
def test_any_config_gives_a_shape_or_a_reason(
    base: dict[str, Any], kind: str, changes: dict[str, Any]
) -> None:
    try:
        model, _ = model_of_config(base | {"model_type": kind} | changes, "theirs", "a test")
        said = str(counted(model).params_total)
    except GpufareError as error:
        said = str(error)
    assert said.isprintable()
    assert not said.startswith("-")
    assert len(said) < 1000
