"""Price pages of a made-up year: sample pages in their real shape, with prices that walk from a seed.

The truth of a day is computed from the sample pages' expected prices and the walk, not by the readers.
"""

import csv
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random

from tests.sources.helpers import PAGES

FIRST_DAY = date(2025, 11, 20)
PRICES = ("crusoe", "linode", "scaleway", "together")
SOURCES = ("ecb", *PRICES)

KEY = ("raw_label", "instance_type", "gpu_count", "price_kind", "term_days", "tier", "region")
"""Columns that distinguish the offers of these sources; empty if a source lacks them."""

Key = tuple[str, ...]
Truth = dict[str, dict[Key, Decimal]]

CHANGE_CHANCE = 0.25
LARGEST_STEP = 0.03
WALK_DAYS = 1_000
FURTHEST = (0.85, 1.15)
"""A walk stays between these shares of the sample's prices: no gate has a reason to hold one back."""

_TOKENS: Mapping[str, str] = {
    "crusoe": r"(?<=\$)\d+\.\d+",
    "together": r"(?<=\$)\d+\.\d+",
    "linode": r'(?<="hourly": )\d+\.\d+',
    "scaleway": r'(?<="hourly_price": )\d+(?:\.\d+)?',
    "ecb": r"(?<=currency='USD' rate=')\d\.\d+",
}
"""The prices in a source's page."""


@dataclass(frozen=True)
class Misread:
    """A page that says wrong prices: all of them times ``factor``, or only the dearest one."""

    factor: int = 10
    only_dearest: bool = False


@dataclass(frozen=True)
class Market:
    """The pages and the true prices of every day, for one seed."""

    seed: str

    def price(self, base: Decimal, source: str, day: date) -> Decimal:
        """Return a sample page's price as of a day."""
        share = _walk(self.seed, source)[(day - FIRST_DAY).days % WALK_DAYS]
        return round(base * share, max(2, -int(base.normalize().as_tuple().exponent)))

    def truth(self, day: date) -> Truth:
        """The prices of every offer on a day."""
        return {
            source: {key: self.price(base, source, day) for key, base in _expected(source).items()}
            for source in PRICES
        }

    def usd_per_eur(self, day: date) -> Decimal:
        """The exchange rate of a day."""
        (base,) = re.findall(_TOKENS["ecb"], _sample_text("ecb", "eurofxref-daily.xml"))
        return self.price(Decimal(base), "ecb", day)

    def write(self, folder: Path, day: date, misread: Mapping[str, Misread] | None = None) -> Path:
        """A folder of pages as they are on a day."""
        for source in SOURCES:
            target = folder / source
            shutil.copytree(PAGES / source, target, dirs_exist_ok=True)
            for file in target.iterdir():
                if file.suffix in (".json", ".html", ".xml") and file.name != "index.json":
                    text = _sample_text(source, file.name)
                    wrong = (misread or {}).get(source)
                    file.write_text(self._page(text, source, day, wrong), encoding="utf-8")
            entries = json.loads((target / "index.json").read_text(encoding="utf-8"))
            moment = datetime(day.year, day.month, day.day, 6, tzinfo=UTC).isoformat()
            (target / "index.json").write_text(json.dumps([e | {"observed_at": moment} for e in entries]))
        return folder

    def _page(self, text: str, source: str, day: date, wrong: Misread | None) -> str:
        dearest = max(_expected(source).values(), default=Decimal())

        def new(found: re.Match[str]) -> str:
            base = Decimal(found[0])
            is_wrong = wrong and (base == dearest or not wrong.only_dearest)
            return str(self.price(base, source, day) * (wrong.factor if wrong and is_wrong else 1))

        text = re.sub(_TOKENS[source], new, text)
        return re.sub(r"(?<=time=')[\d-]+", str(day - timedelta(days=1)), text) if source == "ecb" else text


@cache
def _walk(seed: str, source: str) -> list[Decimal]:
    dice = Random(f"{seed} {source}")
    share, shares = 1.0, []
    for _ in range(WALK_DAYS):
        if dice.random() < CHANGE_CHANCE:
            share *= 1 + dice.uniform(-LARGEST_STEP, LARGEST_STEP)
            share = min(max(share, FURTHEST[0]), FURTHEST[1])
        shares.append(round(Decimal(share), 6))
    return shares


@cache
def _sample_text(source: str, name: str) -> str:
    return (PAGES / source / name).read_text(encoding="utf-8")


@cache
def _expected(source: str) -> dict[Key, Decimal]:
    with (PAGES / source / "expected.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {tuple(row.get(name) or "" for name in KEY): Decimal(row["native_price"]) for row in rows}


def key_of(source: str, row: Mapping[str, object]) -> Key:
    """The key of a published offer, with the columns that the source's expected.csv has."""
    with (PAGES / source / "expected.csv").open(encoding="utf-8", newline="") as file:
        known = next(csv.reader(file))
    return tuple(_text(row[name]) if name in known else "" for name in KEY)


def _text(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
