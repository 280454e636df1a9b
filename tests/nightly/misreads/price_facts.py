"""Dated prices of many providers, collected from public repositories, as offers' keys; and the bounds of
catalog/gpu_price_bounds.csv, which are computed from them.

    python -m tests.nightly.misreads.price_facts PRICE_FACTS.csv > catalog/gpu_price_bounds.csv

The file of facts is not part of the project: the test of the bounds is skipped without it.
"""

import csv
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from functools import cache
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

from pipeline.catalog.source_config import configs
from pipeline.gates.contradictions import succeeds
from pipeline.gpus import identify

ROOT = Path(__file__).parents[3]

BOUNDS_COLUMNS = (
    "source", "gpu_id", "price_kind", "low_usd_per_gpu_hour", "high_usd_per_gpu_hour", "prices", "sources",
    "first_day", "last_day", "evidence",
)  # fmt: skip
"""The columns of catalog/gpu_price_bounds.csv."""

_TEXTS = {
    "on_demand": "on_demand on_demand_community on_demand_secure on_demand_prototyping on_demand_production "
    "on_demand_vm on_demand_bare_metal marketplace_offer_on_demand",
    "spot": "spot preemptible spot_community spot_secure",
    "reserved": "reserved_6mo reserved_12mo reserved_1yr reserved_3yr committed_1yr committed_3yr",
}
KINDS = {text: kind for kind, texts in _TEXTS.items() for text in texts.split()}
"""Price kinds of the facts that are one of ours. Minima, medians and averages over a market, and prices of a
GPU without its machine, are none."""

TERM_DAYS = {"6mo": 180, "12mo": 365, "1yr": 365, "3yr": 1095}

TIERS = ("community", "secure", "prototyping", "production", "vm", "bare_metal")

SOURCES = {
    "vast.ai": "vast", "oracle oci": "oci", "thunder compute": "thundercompute", "linode/akamai": "linode",
}  # fmt: skip
"""Providers that the facts name otherwise than our catalogue."""

SERVERLESS = frozenset({"modal", "replicate", "baseten"})
"""Sources whose prices the facts call on-demand, and we serverless."""

MISLABELLED = frozenset({("runpod", "reserved_3yr")})
"""RunPod sells plans of up to six months. One file has its three-month price, which is above the six-month
one, as that of three years."""

MARKETPLACES = frozenset({"vast", "salad", "tensordock", "akash", "primeintellect"})
"""Each host sets its own price there, so no price is the source's."""


@dataclass(frozen=True)
class Fact:
    """One price as one public file had it. ``source`` is ours where we read the provider, else its name."""

    source: str
    gpu_id: str
    price_kind: str
    term_days: int | None
    tier: str | None
    region: str | None
    usd_per_gpu_hour: Decimal
    day: str
    origin: str


def facts_file() -> Path | None:
    """The file of facts where there is one: $PRICE_FACTS, or shared/ beside a folder that has the project."""
    named = os.environ.get("PRICE_FACTS")
    places = [Path(named)] if named else [p / "shared" / "price_facts.csv" for p in ROOT.parents]
    return next((path for path in places if path.exists()), None)


@cache
def read_facts(path: Path) -> Sequence[Fact]:
    """The facts of a kind of ours whose label names a card for sure."""
    with path.open(newline="", encoding="utf-8") as file:
        facts = [_fact(row) for row in csv.DictReader(file)]
    return [fact for fact in facts if fact is not None]


def _fact(row: dict[str, str]) -> Fact | None:
    kind = KINDS.get(row["price_kind"])
    provider = row["provider"].lower()
    source = _our_names().get(provider, provider)
    is_ours = "(" not in provider and "part only" not in row["gpu_label"]
    if kind is None or not is_ours or (source, row["price_kind"]) in MISLABELLED:
        return None
    if source in SERVERLESS and kind == "on_demand":
        kind = "serverless"
    count = float(row["gpu_count"] or 1)
    gpu_id = _gpu_id(row["gpu_label"], source, count)
    if gpu_id is None:
        return None
    price, region = Decimal(row["price_usd_hr"]), re.search(r"region ([^;)]+)", row["source"])
    return Fact(
        source=source,
        gpu_id=gpu_id,
        price_kind=kind,
        term_days=next((d for t, d in TERM_DAYS.items() if row["price_kind"].endswith(t)), None),
        tier=next((tier for tier in TIERS if row["price_kind"].endswith(tier)), None),
        region=region[1] if region else None,
        usd_per_gpu_hour=price / Decimal(str(count)) if row["unit"].startswith("per_instance") else price,
        day=row["as_of"],
        origin=re.split(r"[@ ]", row["source"])[0],
    )


@cache
def _our_names() -> dict[str, str]:
    ours = {config.provider.lower(): name for name, config in configs().items()}
    return ours | SOURCES | {name: name for name in configs()}


@cache
def _gpu_id(label: str, source: str, count: float) -> str | None:
    outside, inside = re.sub(r"\s*\(.*\)", "", label), re.sub(r".*\((.*)\).*", r"\1", label)
    of_machines = [(text, "instance_type") for text in (label, inside, outside)]
    for text, kind in [(label, "gpu_name"), (outside, "gpu_name"), *of_machines]:
        found = identify(text, provider=source, kind=kind, context={}, gpu_count=count)
        if found.status == "matched":
            return found.gpu_id
    return None


def bounds(facts: Iterable[Fact]) -> list[dict[str, str]]:
    """The range of the prices of each card and kind in each month: at each source of ours, and over all list
    prices."""
    groups: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.source not in MARKETPLACES:
            for source in {"", fact.source} & {"", *configs()}:
                groups[source, fact.gpu_id, fact.price_kind, fact.day[:7]].append(fact)
    rows = []
    for key, group in sorted(groups.items()):
        prices = sorted(fact.usd_per_gpu_hour for fact in group)
        days = sorted(fact.day for fact in group)
        ends = [f"{round(price, 4).normalize():f}" for price in (prices[0], prices[-1])]
        sources = " | ".join(sorted({fact.source for fact in group}))
        origins = " ".join(sorted({fact.origin for fact in group}))
        values = (*key[:3], *ends, str(len(prices)), sources, days[0], days[-1], origins)
        rows.append(dict(zip(BOUNDS_COLUMNS, values, strict=True)))
    return rows


def max_inversion(facts: Iterable[Fact]) -> Decimal:
    """The threshold max_inversion: the largest that was seen, rounded up to a tenth. An inversion is how many
    times as dear an older model was as its successor, wherever one source asked for both on one day for one
    kind, term, tier and region. Spot apart."""
    groups: dict[Any, dict[str, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        if fact.source not in MARKETPLACES and fact.price_kind != "spot":
            like = (fact.source, fact.day, fact.price_kind, fact.term_days, fact.tier, fact.region)
            groups[like][fact.gpu_id].append(fact.usd_per_gpu_hour)
    seen = [Decimal(1)]
    for by_card in groups.values():
        for older, successor in permutations(by_card, 2):
            if succeeds(successor, older):
                seen.append(median(by_card[older]) / median(by_card[successor]))
    return max(seen).quantize(Decimal("0.1"), ROUND_UP)


if __name__ == "__main__":
    writer = csv.DictWriter(sys.stdout, BOUNDS_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(bounds(read_facts(Path(sys.argv[1]))))
