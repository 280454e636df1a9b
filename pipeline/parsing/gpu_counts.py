"""Number of GPUs of a row: from a field, a name such as "8x H100", or the memory of a slice."""

import re
from decimal import Decimal
from typing import Any

from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.prices import RowError
from pipeline.parsing.text import UnreadableError, number, whole_number

_COUNT = re.compile(r"(?<![\w.,])(\d{1,3}) ?[x×](?!\w)", re.IGNORECASE)
_OTHER_SPELLING = re.compile(
    r"\d ?[x×]\d|\d[.,]\d+ ?[x×](?!\w)|(?<!\w)[x×] ?\d{1,3}\b|\b\d{1,3} gpus?\b", re.IGNORECASE
)


def gpu_count(value: Any) -> int:
    """Return the whole number of GPUs, at least 1, in a field or cell (``8``, ``"8"``). Raises RowError."""
    try:
        count = whole_number(value)
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {error}") from error
    if count < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {count}")
    return count


def gpu_count_in(name: str) -> int | None:
    """Return the GPU count in a name (``8x H100``, ``H100 (8×)``, ``gpu-a100-8x``); None without one.

    Raises RowError for several counts, and for one in an unknown spelling ("H100 x8", "8 GPUs"), because the
    caller may take a name without a count for one GPU.
    """
    counts = _COUNT.findall(name)
    if len(counts) == 1:
        return gpu_count(counts[0])
    if counts or _OTHER_SPELLING.search(name):
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{name!r} does not clearly state its number of GPUs")
    return None


def gpu_count_by_memory(memory_gb: Any, card_memory_gb: Any) -> Decimal:
    """Return an offer's GPUs by its GPU memory and that of one card: a whole number, or below 1 for a slice.

    Raises RowError.
    """
    try:
        count = number(memory_gb) / number(card_memory_gb)
    except (UnreadableError, ArithmeticError) as error:
        detail = f"GPU memory {memory_gb!r} GB, of one card {card_memory_gb!r} GB"
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, detail) from error
    if count <= 0 or (count > 1 and count != count.to_integral_value()):
        raise RowError(
            RejectReason.UNKNOWN_GPU_COUNT,
            f"{memory_gb} GB is not a whole number of cards with {card_memory_gb} GB",
        )
    return count
