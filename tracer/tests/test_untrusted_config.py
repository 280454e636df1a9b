"""A config.json that anybody may have written: wrong fields are one clear line."""

from typing import Any

import pytest

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.result import TraceShape

GOOD: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 0}, "hidden_size is 0, not a whole number"),
        ({"hidden_size": -64}, "hidden_size is -64"),
        ({"hidden_size": "64"}, "hidden_size is '64'"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"hidden_size": 64.5}, r"hidden_size is 64\.5"),
        ({"hidden_size": [64]}, r"hidden_size is \[64\]"),
        ({"vocab_size": 10**30}, "vocab_size is 10+, not a whole number from 0 to"),
        ({"num_hidden_layers": 5000}, "num_hidden_layers is 5000"),
        ({"num_attention_heads": 65}, "head_dim is 0"),
        ({"kv_lora_rank": -1}, "kv_lora_rank is -1"),
        ({"text_config": [1]}, r"text_config is \[1\], not an object"),
        ({"model_type": ["llama"]}, r"model_type is \['llama'\], not text"),
        ({"quantization_config": 4}, "quantization_config is 4, not an object"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CannotTraceError, match=words):
        architecture_of(TraceShape(model="theirs", config=GOOD | changes))


def test_a_good_config_is_read() -> None:
    assert architecture_of(TraceShape(model="theirs", config=GOOD)).head_dim == 16


def test_text_of_a_config_is_printable_and_short() -> None:
    with pytest.raises(CannotTraceError) as caught:
        architecture_of(TraceShape(model="theirs", config=GOOD | {"model_type": ["\x1b[31m" * 1000]}))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 200
    assert str(CannotTraceError("\x1b[31m" + "x" * 10_000)).isprintable()
    assert len(str(CannotTraceError("x" * 10_000))) < 700
