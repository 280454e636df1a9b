"""How many labels per second one core normalizes: ``python benchmarks/normalize_labels.py [LABELS]``.

The labels are all different and the caches start empty, as at the start of a refresh; a second pass over
the same labels shows what repetition is worth, and a pass with every cache emptied before each label shows
the worst case, in which no word has been met before. Seconds are the processor's: one core, whatever else
runs.
"""

import itertools
import random
import sys
import time
from collections.abc import Callable, Sequence

from pipeline.offers.gpu_labels import identify
from pipeline.offers.labels.identify import forget

MODELS = [
    "H100", "H200", "B200", "B300", "A100", "A10G", "A40", "L4", "L40S", "T4", "V100", "GH200", "MI300X",
    "MI325X", "RTX 4090", "RTX 3090 Ti", "RTX 4070 Ti SUPER", "RTX A6000", "RTX 6000 Ada", "RTX PRO 6000",
    "GTX 1080 Ti", "RX 7900 XTX", "Quadro RTX 8000", "Radeon Pro W7900", "RTX 5090", "RTX A4000",
    "Tesla P40", "GB200 NVL72",
]  # fmt: skip
FORMS = ["", "SXM5", "SXM4", "PCIe", "NVL", "SXM", "NVLink"]
MEMORIES = ["", "80GB", "40 GB", "24G", "48GB", "141GB", "180 GB", "96GiB"]
COUNTS = ["", "1x ", "2x ", "4 x ", "8x ", "(8x) "]
VENDORS = ["", "NVIDIA ", "nvidia ", "NVIDIA GeForce ", "AMD Instinct "]
TAILS = [
    "",
    " spot",
    " - US East (Ashburn)",
    " running in Mumbai",
    " / 64 vCPU / 512 GB RAM",
    " secure cloud",
    " EU",
]
SEPARATORS = [" ", "-", "_"]


def distinct_labels(count: int) -> list[str]:
    """``count`` different labels, made as sellers make them, in a fixed shuffled order."""
    labels: set[str] = set()
    for vendor, number, model, form, memory, tail, separator in itertools.product(
        VENDORS, COUNTS, MODELS, FORMS, MEMORIES, TAILS, SEPARATORS
    ):
        words = " ".join(word for word in (model, form, memory) if word)
        labels.add(number + (vendor + words).replace(" ", separator) + tail)
    chosen = sorted(labels)
    random.Random(7).shuffle(chosen)
    if len(chosen) < count:
        sys.exit(f"only {len(chosen)} different labels can be made; ask for fewer than {count}")
    return chosen[:count]


def rate(labels: Sequence[str], before_each: Callable[[], None] | None = None) -> float:
    """Labels per second."""
    spent = 0.0
    for label in labels:
        if before_each:
            before_each()
        started = time.process_time()
        identify(label, provider="vast")
        spent += time.process_time() - started
    return len(labels) / spent


def plain_rate(labels: Sequence[str]) -> float:
    """Labels per second without a clock around each."""
    started = time.process_time()
    for label in labels:
        identify(label, provider="vast")
    return len(labels) / (time.process_time() - started)


def main() -> None:
    """Print the rates."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    labels = distinct_labels(count)
    identify("H100", provider="vast")
    forget()
    identify("warm the catalogue", provider="vast")
    print(f"different labels, caches empty at the start: {plain_rate(labels):>12,.0f} labels/s")
    print(f"the same labels again:                       {plain_rate(labels):>12,.0f} labels/s")
    print(f"caches emptied before every label:           {rate(labels[:2_000], forget):>12,.0f} labels/s")


if __name__ == "__main__":
    main()
