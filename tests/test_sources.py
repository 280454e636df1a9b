"""Every source: its yaml, its module, its sample page, and exactly the offers that stand on that page.

``expected.csv`` and ``expected_rejects.csv`` are typed from the page by hand.
"""

import csv
import inspect
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.capture.replay import pages_dir_answers
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.offer import Offer
from pipeline.contracts.paths import CATALOG_DIR
from pipeline.contracts.rates import Rate
from pipeline.daily.ingest import read_answers
from pipeline.offers.build import Built
from pipeline.offers.gpu_matching import identify
from pipeline.sources import source_module

PAGES = Path(__file__).parent / "pages"
PRICE_SOURCES = [name for name, config in configs().items() if config.kind == "prices"]
LOOKUPS = [(name, label) for name, config in configs().items() for label in config.lookups]
SETTINGS = [(name, key) for name, config in configs().items() for key in config.settings]
RATES = {"EUR": Rate(Decimal("1.1699"))}
"""The rate of the exchange rates' sample page: expected.csv of a source in euros is worked out with it."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_sample(name: str) -> Built:
    config = source_config(name)
    return read_answers(pages_dir_answers(PAGES, config), config, RATES)


def as_expected(offer: Offer, columns: list[str]) -> dict[str, str]:
    return {column: shown(getattr(offer, column)) for column in columns}


def shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float | Decimal):
        number = Decimal(str(value)).quantize(Decimal("1e-6")).normalize()
        return f"{number:f}"
    return str(value)


def normal(row: dict[str, str]) -> dict[str, str]:
    numbers = ("gpu_count", "native_price", "usd_per_gpu_hour")
    return {k: shown(Decimal(v)) if k in numbers and v else v for k, v in row.items()}


def in_order(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(rows, key=lambda row: tuple(row.items()))


def test_each_source_has_its_yaml_its_module_and_its_page() -> None:
    yamls = {path.stem for path in (CATALOG_DIR / "sources").glob("*.yaml")}
    pages = {path.name for path in PAGES.iterdir() if path.is_dir()}
    assert yamls == pages
    assert yamls
    for name in yamls:
        assert callable(source_module(name).read), name


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_sample_page_gives_exactly_its_offers(name: str) -> None:
    expected = [normal(row) for row in rows_of(PAGES / name / "expected.csv")]
    built = read_sample(name)
    columns = list(expected[0])
    found = [as_expected(offer, columns) for offer in built.offers]
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_sample_page_gives_exactly_its_rejects(name: str) -> None:
    expected = {row["reason"]: int(row["rows"]) for row in rows_of(PAGES / name / "expected_rejects.csv")}
    assert Counter(reject.reason for reject in read_sample(name).rejects) == expected


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_yaml_says_what_it_rests_on(name: str) -> None:
    config = source_config(name)
    assert config.evidence.note
    assert config.expect.usd_per_gpu_hour[0] > 0


@pytest.mark.parametrize(("name", "label"), LOOKUPS)
def test_a_lookup_says_what_the_gpu_catalogue_does_not(name: str, label: str) -> None:
    def gpu_id(label: str) -> str | None:
        return identify(label, provider=name, kind="gpu_name", context={}, gpu_count=1).gpu_id

    assert gpu_id(label) != gpu_id(source_config(name).lookups[label].means)


@pytest.mark.parametrize(("name", "label"), LOOKUPS)
def test_a_lookup_is_met_on_the_sample_page_or_in_the_readers_test(name: str, label: str) -> None:
    test_of_reader = Path(__file__).parent / "sources" / f"test_{name}.py"
    on_page = {offer.raw_label for offer in read_sample(name).offers}
    assert label in on_page or f'"{label}"' in test_of_reader.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "key"), SETTINGS)
def test_a_setting_is_read_by_its_module(name: str, key: str) -> None:
    assert re.search(rf"""settings\[["']{key}["']\]""", inspect.getsource(source_module(name)))
