"""A tiny Llama for traces; expected bytes are derived from its sizes by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from gpufare_tracer.result import TraceShape

HIDDEN, INTERMEDIATE, VOCAB, LAYERS = 128, 256, 512, 2
ATTENTION_WEIGHTS = 4 * HIDDEN * HIDDEN
MLP_WEIGHTS = 3 * HIDDEN * INTERMEDIATE
LINEAR_WEIGHTS = LAYERS * (ATTENTION_WEIGHTS + MLP_WEIGHTS)
TABLE_WEIGHTS = VOCAB * HIDDEN
"""The parameters of the embedding, and of the head."""
ALL_WEIGHTS = LINEAR_WEIGHTS + 2 * TABLE_WEIGHTS + (2 * LAYERS + 1) * HIDDEN


def tiny(**changes: Any) -> TraceShape:
    """Two layers, four heads, 1 x 64 tokens."""
    config = {
        "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "vocab_size": VOCAB,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    }  # fmt: skip
    values: dict[str, Any] = {"model": "tiny", "config": config, "micro_batch": 1, "seq_len": 64}
    return TraceShape.model_validate(values | changes)


@contextmanager
def attention_kernels() -> Iterator[set[str]]:
    """Collects the fused attention kernels that traces call meanwhile: flash, efficient."""
    from gpufare_tracer.work import WorkCounter

    count, called = WorkCounter.count, set()

    def noting(counter: WorkCounter, func: Any, *operands: Any) -> None:
        called.update(kernel for kernel in ("flash", "efficient") if f"_{kernel}_attention" in str(func))
        count(counter, func, *operands)

    with patch.object(WorkCounter, "count", noting):
        yield called
