"""What the model types of transformers mean by their config.json, where its fields do not say."""

from collections.abc import Mapping
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TIED_BY_DEFAULT = _names("""
    bloom cohere cohere2 cohere2_moe falcon ernie4_5 ernie4_5_moe gemma gemma2 gemma3_text gemma4_text
    gpt2 gpt_bigcode gpt_neo gpt-sw3 granite_swa lfm2 minicpm3 mpt openai-gpt opt smollm3 starcoder2
    vaultgemma xglm t5 bart mbart pegasus marian blenderbot plbart youtu biogpt gpt_neox_japanese
""")
"""Model types whose class of transformers ties embeddings and head where the config does not say."""
NOT_GATED = _names("""
    apertus arcee biogpt bloom codegen falcon fuyu gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese
    gptj gpt-sw3 jais2 mpt nanochat nemotron nemotron_h openai-gpt opt persimmon phi starcoder2 bart
    mbart pegasus marian blenderbot plbart
""")
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
SLIDING_UNLESS_SAID = frozenset(
    ("mistral", "mixtral", "phi3", "phimoe", "starcoder2", "exaone4", *ALTERNATING)
)
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
    "qwen3_next": {
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
    },
    "qwen3_5_text": {"attn_output_gate": True, "full_attention_interval": 4},
    "qwen3_5_moe_text": {"attn_output_gate": True, "full_attention_interval": 4},
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
READ_TYPES = _names("""
    afmoe apertus arcee aria_text axk1 bart biogpt bitnet blenderbot bloom codegen cohere cohere2
    cohere2_moe cwm deepseek_v2 deepseek_v3 deepseek_v32 diffllama dots1 emu3 ernie4_5 ernie4_5_moe
    exaone4 exaone_moe falcon flex_olmo flint fuyu gemma gemma2 gemma3_text gemma4_text glm glm4
    glm4_moe glm4_moe_lite glm_moe_dsa gpt-sw3 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese
    gpt_oss gptj granite granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared helium
    hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax internlm3 iquestcoder jais2 kolibri1 laguna lfm2
    llama llama4_text marian mbart mellum minicpm3 minimax minimax_m2 minimax_m3_vl_text ministral
    ministral3 mistral mistral4 mixtral mllama mpt nanochat nemotron nemotron_h olmo olmo2 olmo3
    olmo_hybrid olmoe openai-gpt opt pegasus persimmon phi phi3 phimoe plbart qwen2 qwen2_moe qwen3
    qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 solar_open stablelm starcoder2
    t5 vaultgemma youtu
""")
"""Model types whose count of parameters is that of their class in transformers."""
PREDICTS_TOKENS = (
    "ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForSeq2SeqLM", "ForImageTextToText",
    "ForMultimodalLM", "MTModel", "ChatModel",
)  # fmt: skip
"""How the names of classes end whose head predicts tokens."""
NOT_UNDERSTOOD = {
    "altup_num_inputs": "several residual streams",
    "moe_latent_size": "experts in a latent space",
    "block_configs": "layers each of a size of its own",
    "swa_num_key_value_heads": "heads that differ between sliding and full layers",
    "compress_ratios": "compressed attention",
    "use_double_wide_mlp": "MLPs of two widths",
}
"""Fields that change the shape in a way that the columns of catalog/models.csv cannot say."""
