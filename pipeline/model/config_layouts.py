"""What the model types of transformers mean by their config.json, where its fields do not say."""

from collections.abc import Mapping
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TIED_BY_DEFAULT = 
"""Model types whose class of transformers ties embeddings and head where the config does not say."""
NOT_GATED = 
"""Model types whose MLP has two matrices."""
POSITIONS = {"gpt2": 0, "gpt_bigcode": 0, "gpt_neo": 0, "gpt-sw3": 0, "openai-gpt": 0, "opt": 2, "biogpt": 2}
"""Model types with a table of learned positions, and how many more it has than the config says."""
ALTERNATING = {
    "gemma2": 2,
    "gpt_oss": 2,
    "gemma3_text": 6,
    "gemma3": 6,
    "gemma4_text": 6,
    "cohere2": 4,
    "olmo3": 4,
}
"""Model types whose every n-th layer attends to all, where the config has no list of layers."""
SLIDING_UNLESS_SAID = frozenset(("mistral", "mixtral", "phi3", "phimoe", "starcoder2", *ALTERNATING))
"""Model types whose ``sliding_window`` is in use without a switch."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma2": {"head_dim": 256, "vocab_size": 256_000},
    "gemma3_text": {
        "head_dim": 256,
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    },
    "gemma4_text": {"global_head_dim": 512},
    "gpt_oss": {"head_dim": 64},
    "llama4_text": {"attention_chunk_size": 8192, "intermediate_size_mlp": 16_384},
    "phimoe": {"num_local_experts": 16, "num_experts_per_tok": 2},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_next": {"attn_output_gate": True, "linear_num_key_heads": 16, "linear_num_value_heads": 32},
    "qwen3_5_text": {"attn_output_gate": True},
    "qwen3_5_moe_text": {"attn_output_gate": True},
    "t5": {"d_kv": 64, "decoder_start_token_id": 0},
}
"""What the class of transformers takes where a published config.json leaves a size out."""
TEXT_TYPES = {
    "gemma3": "gemma3_text", "gemma4": "gemma4_text", "llama4": "llama4_text", "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text", "mt5": "t5", "umt5": "t5", "kimi_k2": "deepseek_v3",
    "gemma4_unified": "gemma4_text", "gemma4_unified_text": "gemma4_text", "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe", "qwen2_5_vl_text": "qwen2", "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2", "qwen2_vl": "qwen2", "glm4v_text": "glm4", "glm4v_moe_text": "glm4_moe",
}  # fmt: skip
"""Model types by the name of another with the same layout."""
READ_TYPES = 
"""Model types whose count of parameters is that of their class in transformers."""
NOT_UNDERSTOOD = {
    "altup_num_inputs": "several residual streams",
    "moe_latent_size": "experts in a latent space",
    "block_configs": "layers each of a size of its own",
    "swa_num_key_value_heads": "heads that differ between sliding and full layers",
    "compress_ratios": "compressed attention",
    "num_kv_shared_layers": "keys and values shared between layers",
    "use_double_wide_mlp": "MLPs of two widths",
}
"""Fields that change the shape in a way that the columns of catalog/models.csv cannot say."""
