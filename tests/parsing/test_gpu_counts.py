"""The number of GPUs in a field or a name: stated clearly, or refused."""

from decimal import Decimal

from pipeline.parsing.gpu_counts import gpu_count, gpu_count_in
from tests.parsing.cases import wrong


def test_a_gpu_count_is_a_whole_number_above_zero() -> None:
    counts = [(1, 1), ("8", 8), (Decimal("4.0"), 4), ("1,000", 1000)]
    none = [
        (0, "0"), (-1, "-1"), ("0.5", "0.5 is not a whole number"), ("8x", "'8x' is not a number"),
        ("", "'' is not a number"), (None, "None is not a number"), (True, "True is not a number"),
    ]  # fmt: skip
    refused = [(value, f"unknown_gpu_count: GPU count {text}") for value, text in none]
    assert wrong(gpu_count, [*counts, *refused]) == []


def test_the_count_in_a_name() -> None:
    counts = {
        "8x NVIDIA H100": 8, "16X H100": 16, "2 × L40S": 2, "NVIDIA H100 (8x)": 8, "gpu-a100-large-4x": 4,
        "8x": 8, "999x H100": 999,
    }  # fmt: skip
    none = ["NVIDIA H100", "AMD MI300X", "RTX 4090", "L40 48 GB", "8xlarge", "1000x H100", "gpus"]
    assert wrong(gpu_count_in, [*counts.items(), *((name, None) for name in none)]) == []


def test_an_unclear_count_in_a_name_is_refused() -> None:
    names = [
        *("2x 4x H100", "H100 x8", "H100 ×8", "8 GPUs", "1 GPU", "H100 8xSXM 2x4", "4x4090", "H100 (0.008x)"),
        *("1,008x H100", "1 gpu", "x 8 H100", "8x8x"),
    ]  # fmt: skip
    unclear = "unknown_gpu_count: {!r} does not clearly state its number of GPUs"
    assert wrong(gpu_count_in, [(name, unclear.format(name)) for name in names]) == []
    assert wrong(gpu_count_in, [("0x H100", "unknown_gpu_count: GPU count 0")]) == []
