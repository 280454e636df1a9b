"""The number of GPUs that a row offers, from a field or a name such as "8x H100"."""

import re
from typing import Any

from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.prices import RowError
from pipeline.parsing.text import UnreadableError, whole_number

_COUNT = re.compile(r"(?<![\w.,])(\d{1,3}) ?[x×](?!\w)", re.IGNORECASE)
_OTHER_SPELLING = re.compile(
    r"\d ?[x×]\d|\d[.,]\d+ ?[x×](?!\w)|(?<!\w)[x×] ?\d{1,3}\b|\b\d{1,3} gpus?\b", re.IGNORECASE
)


def gpu_count(value: Any) -> int:
    """Return the GPU count, at least 1, in a field or cell (``8``, ``"8"``). Raises RowError otherwise."""
    try:
        count = whole_number(value)
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {error}") from error
    if count < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {count}")
    return count


def gpu_count_in(name: str) -> int | None:
    """Return the GPU count, if any, in a name (``8x H100``, ``H100 (8×)``, ``gpu-a100-8x``).

    Raises RowError for several counts, and for a count in an unknown spelling ("H100 x8", "8 GPUs"), because
    the caller may take a name without a count to mean one GPU.
    """
    counts = _COUNT.findall(name)
    if len(counts) == 1:
        return gpu_count(counts[0])
    if counts or _OTHER_SPELLING.search(name):
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{name!r} does not clearly state its number of GPUs")
    return None
