"""How many labels per second one core matches: ``python benchmarks/normalize_labels.py [LABELS]``.

The labels are all different, and the caches are empty at the start, as in a refresh. A second pass over the
same labels shows the effect of repetition, and a pass with every cache emptied before each label the worst
case, in which every word is new. Times are processor time of one core.
"""

import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence

from pipeline.offers.gpu_matching import identify
from pipeline.offers.gpu_matching.match import clear_caches

CARDS = {
    "H100": (["", "SXM5", "PCIe", "SXM", "NVLink"], [80]), "H100 NVL": ([""], [94]),
    "H200": (["", "SXM", "NVL"], [141]), "B200": (["", "SXM6"], [180, 192]), "B300": (["", "SXM6"], [288]),
    "A100": (["", "SXM4", "PCIe", "SXM"], [40, 80]), "V100": (["", "SXM2", "PCIe"], [16, 32]),
    "GH200": ([""], [96, 144]), "GB200 NVL72": ([""], [186]), "A10G": ([""], [24]),
    "A40": (["", "PCIe"], [48]), "L4": (["", "PCIe"], [24]), "L40S": (["", "PCIe"], [48]),
    "T4": (["", "PCIe"], [16]),
    "Tesla P40": ([""], [24]), "MI300X": (["", "OAM"], [192]), "MI325X": (["", "OAM"], [256]),
    "RTX 3090 Ti": (["", "PCIe"], [24]), "RTX 4060 Ti": ([""], [8, 16]), "RTX 4070 Ti SUPER": ([""], [16]),
    "RTX 4090": (["", "PCIe"], [24, 48]), "RTX 5090": (["", "PCIe"], [32]), "GTX 1080 Ti": ([""], [11]),
    "RTX A4000": (["", "PCIe"], [16]), "RTX A6000": (["", "PCIe"], [48]), "RTX 6000 Ada": ([""], [48]),
    "RTX PRO 6000": (["", "Server Edition", "WS"], [96]), "Quadro RTX 8000": ([""], [48]),
    "RX 7900 XTX": ([""], [24]), "Radeon Pro W7900": ([""], [48]), "RTX 4000 SFF Ada": ([""], [20]),
}  # fmt: skip
SIZES = ["{}GB", "{} GB", "{}G", "({} GB)", "{}GiB", "{}GB VRAM"]
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
ROUNDS = 3


def _cards() -> Iterator[str]:
    for model, (forms, memories) in CARDS.items():
        sizes = ["", *(size.format(memory) for size in SIZES for memory in memories)]
        for form, size in itertools.product(forms, sizes):
            yield " ".join(word for word in (model, form, size) if word)


def distinct_labels(count: int) -> list[str]:
    """``count`` different labels of real cards, written as sellers write them, in a fixed shuffled order."""
    parts = itertools.product(VENDORS, COUNTS, _cards(), TAILS, SEPARATORS)
    labels = {
        number + (vendor + card).replace(" ", separator) + tail
        for vendor, number, card, tail, separator in parts
    }
    if len(labels) < count:
        sys.exit(f"only {len(labels)} different labels can be made; ask for fewer than {count}")
    chosen = sorted(labels)
    random.Random(7).shuffle(chosen)
    return chosen[:count]


def rate(labels: Sequence[str]) -> float:
    """Labels per second."""
    started = time.process_time()
    for label in labels:
        identify(label, provider="vast")
    return len(labels) / (time.process_time() - started)


def rate_without_caches(labels: Sequence[str]) -> float:
    """Labels per second, with the caches emptied before each label, outside of the measured time."""
    seconds = 0.0
    for label in labels:
        clear_caches()
        started = time.process_time()
        identify(label, provider="vast")
        seconds += time.process_time() - started
    return len(labels) / seconds


def main() -> None:
    """Print the rates, each the best of three rounds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    labels = distinct_labels(count)
    identify("read the catalogue", provider="vast")
    first, again = [], []
    for _ in range(ROUNDS):
        clear_caches()
        first.append(rate(labels))
        again.append(rate(labels))
    print(f"different labels, caches empty at the start: {max(first):>12,.0f} labels/s")
    print(f"the same labels again:                       {max(again):>12,.0f} labels/s")
    cold = rate_without_caches(labels[:2_000])
    print(f"caches emptied before every label:           {cold:>12,.0f} labels/s")


if __name__ == "__main__":
    main()
