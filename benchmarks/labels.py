"""How many labels one core matches per second.

The labels are all different, and the caches are empty at the start, as in a refresh. A second pass over the
same labels shows the effect of repetition; a pass with every cache emptied before each label shows the worst
case, in which every word is new.
"""

import itertools
import random
import time
from collections.abc import Iterator, Sequence

from benchmarks.lines import Line, Taken, above, timed
from pipeline.gpus import identify, label, match, tokens

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
VENDORS = ["", "NVIDIA ", "nvidia ", "NVIDIA GeForce ", "Nvidia Tesla "]
TAILS = [
    "",
    " spot",
    " - US East in Ashburn",
    " running in Mumbai",
    " / 64 vCPU / 512 GB RAM",
    " secure cloud",
    " EU",
]
SEPARATORS = [" ", "-", "_"]
ROUNDS = 3


def clear_caches() -> None:
    """Empty the caches for labels, but not those for the catalogue."""
    for module in (tokens, label, match):
        for each in vars(module).values():
            if hasattr(each, "cache_clear") and each.cache_info().maxsize == tokens.CACHE_SIZE:
                each.cache_clear()


def _cards() -> Iterator[str]:
    for model, (forms, memories) in CARDS.items():
        sizes = ["", *(size.format(memory) for size in SIZES for memory in memories)]
        for form, size in itertools.product(forms, sizes):
            yield " ".join(word for word in (model, form, size) if word)


def distinct_labels(count: int) -> list[str]:
    """Return ``count`` different labels of real cards, in sellers' spellings and a fixed shuffled order."""
    parts = itertools.product(VENDORS, COUNTS, _cards(), TAILS, SEPARATORS)
    labels = {
        number + (vendor + card).replace(" ", separator) + tail
        for vendor, number, card, tail, separator in parts
    }
    if len(labels) < count:
        raise SystemExit(f"only {len(labels)} different labels can be made; ask for fewer than {count}")
    chosen = sorted(labels)
    random.Random(7).shuffle(chosen)
    return chosen[:count]


def labels(count: int = 100_000) -> list[Line]:
    """Measure the rates, each the best of three rounds."""
    chosen = distinct_labels(count)
    identify("read the catalogue", provider="vast")
    first, again = [], []
    for _ in range(ROUNDS):
        clear_caches()
        first.append(timed(lambda _: _match(chosen)))
        again.append(timed(lambda _: _match(chosen)))
    best = min(first)
    worst = _without_caches(chosen[:2_000])
    return [
        above(
            f"{count:,} different labels, caches empty", best, count / best.processor, 100_000, "per second"
        ),
        Line("the same labels again", min(again), f"{count / min(again).processor:,.0f} per second"),
        Line("caches emptied before every label", worst, f"{2_000 / worst.processor:,.0f} per second"),
    ]


def _match(labels: Sequence[str]) -> None:
    for text in labels:
        identify(text, provider="vast")


def _without_caches(labels: Sequence[str]) -> Taken:
    """Return the time taken to match each label with empty caches; emptying them is not timed."""
    processor = wall = 0.0
    for text in labels:
        clear_caches()
        processors, walls = time.process_time(), time.perf_counter()
        identify(text, provider="vast")
        processor += time.process_time() - processors
        wall += time.perf_counter() - walls
    return Taken(processor, wall)
