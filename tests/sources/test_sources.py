"""Every source: its yaml, its module, its sample page, and exactly the offers on that page.

``expected.csv`` and ``expected_rejects.csv`` are typed by hand from the page and the source's yaml.
"""

import ast
import csv
import inspect
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import pipeline
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.offer import Built, Offer
from pipeline.gpus import identify
from pipeline.home.paths import CATALOG_DIR
from pipeline.sources import kit, source_module
from tests.sources.helpers import PAGES, PRICE_SOURCES, RATES, read_sample, sample_answers

LOOKUPS = [(name, label) for name, config in configs().items() for label in config.lookups]
SETTINGS = [(name, key) for name, config in configs().items() for key in config.settings]
ALL_COLUMNS = set(Offer.model_fields)
DERIVED = {
    *("usd_per_hour", "fx_rate", "fx_date"),  # checked below
    *("country", "continent", "tier_class", "size_evidence"),  # what they follow from has tests of its own
    "match_rule",  # the labels' own tests check which words and columns decide
    "size_evidence",  # follows from these columns and catalog/machine_sizes.csv
}
"""Columns that no expected.csv states, because no page does."""
NO_PRICES = [
    "",
    "{",
    "[",
    "null",
    "3",
    "{}",
    "[1, 2]",
    "Access denied",
    '{"status": 401, "message": "Unauthorized"}',
    '{"error": {"code": "busy"}}',
    '{"errors": ["x"]}',
    '{"detail": "Not found"}',
    '{"title": "Unauthorized"}',
    "<html></html>",
    "<html><body><h1>Just a moment...</h1></body></html>",
    "<html>503 Service Unavailable",
]
"""Answers without prices that any provider may give."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(value: object) -> str:
    """A value as text, numbers to six places: so that "0.10" and 0.1 are equal."""
    if value is None:
        return ""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        number = Decimal(str(value)).quantize(Decimal("1e-6")).normalize()
        return f"{number:f}"
    return str(value)


def typed(column: str, text: str) -> str:
    """A cell of expected.csv, read as that column's type in the contract; several numbers stand as "1;2"."""
    annotation: Any = Offer.model_fields[column].annotation
    value = text.split(";") if column == "gpu_counts" and text else text or None
    return shown(TypeAdapter(annotation).validate_python(value))


def expected_rows(name: str) -> list[Mapping[str, str]]:
    """The offers in expected.csv with all columns; one that the file does not have is null in every row.

    Where a sample has several answers, the column ``file`` says which of them the offer was read from.
    """
    config = source_config(name)
    files = [entry["file"] for entry in json.loads((PAGES / name / "index.json").read_text(encoding="utf-8"))]
    answers = dict(zip(files, sample_answers(name), strict=True))
    rows = []
    for row in rows_of(PAGES / name / "expected.csv"):
        answer = answers[row.pop("file", files[0])]
        usual = {
            "source": name,
            "provider": config.provider,
            "match_status": "matched",
            "match_confidence": "certain" if row["gpu_id"] else "none",
            "candidates": row["gpu_id"],
            "source_url": answer.url,
            "capture_sha256": answer.sha256,
            "observed_at": shown(answer.observed_at),
        }
        stated = {column: typed(column, text) for column, text in row.items()}
        rows.append(dict.fromkeys(ALL_COLUMNS - DERIVED, "") | usual | stated)
    return rows


def found_rows(built: Built) -> list[Mapping[str, str]]:
    columns = sorted(ALL_COLUMNS - DERIVED)
    return [{column: shown(getattr(offer, column)) for column in columns} for offer in built.offers]


def difference(rows: list[Mapping[str, str]], others: list[Mapping[str, str]]) -> list[dict[str, str]]:
    """The rows that the others lack, without their null columns."""
    left = Counter(frozenset(row.items()) for row in rows)
    left.subtract(Counter(frozenset(row.items()) for row in others))
    return [
        {column: text for column, text in sorted(row) if text} for row, times in left.items() if times > 0
    ]


def test_each_source_has_its_yaml_its_module_and_its_page() -> None:
    yamls = {path.stem for path in (CATALOG_DIR / "sources").glob("*.yaml")}
    pages = {path.name for path in PAGES.iterdir() if path.is_dir()}
    assert yamls == pages | {"imported"}  # which has files of users in place of a page
    assert yamls
    for name in yamls:
        assert callable(source_module(name).read), name


def test_a_reader_imports_our_code_from_the_kit_only() -> None:
    for name in configs():
        tree = ast.parse(inspect.getsource(source_module(name)))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        ours = [text for node in imports if "pipeline" in (text := ast.unparse(node)) or "gpufare" in text]
        assert ours == ["from pipeline.sources import kit"], name
        assert not any(node.level for node in imports if isinstance(node, ast.ImportFrom)), name


def test_each_helper_of_the_kit_is_used_outside_its_module() -> None:
    used: set[str] = set()
    for file in Path(pipeline.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(f"{node.value.id}.{node.attr}")
    helpers = {
        name: helper
        for name, helper in vars(kit).items()
        if inspect.isfunction(helper) and helper.__module__.startswith("pipeline.parsing.")
    }
    assert helpers
    for name, helper in helpers.items():
        module = helper.__module__.rpartition(".")[2]
        assert {name, f"kit.{name}", f"{module}.{name}"} & used, f"{module}.{name} has no user"


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_sample_page_gives_exactly_its_offers(name: str) -> None:
    expected, found = expected_rows(name), found_rows(read_sample(name))
    assert expected
    assert (difference(expected, found), difference(found, expected)) == ([], [])


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_every_card_of_the_sample_page_is_sold_in_a_number_that_is_known(name: str) -> None:
    assumed = [
        (offer.gpu_id, offer.tier)
        for offer in read_sample(name).offers
        if offer.gpu_id and offer.gpu_count >= 1 and offer.size_evidence == "assumed"
    ]
    assert assumed == []


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_an_offer_of_the_sample_page_is_converted_at_the_rate(name: str) -> None:
    for offer in read_sample(name).offers:
        assert offer.usd_per_gpu_hour is not None
        assert offer.usd_per_hour == pytest.approx(offer.usd_per_gpu_hour * Decimal(str(offer.gpu_count)))
        rate = RATES.get(offer.native_currency)
        assert (offer.fx_rate, offer.fx_date) == ((rate.usd, rate.day) if rate else (None, None))


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_sample_page_gives_exactly_its_rejects(name: str) -> None:
    expected = {row["reason"]: int(row["rows"]) for row in rows_of(PAGES / name / "expected_rejects.csv")}
    assert Counter(reject.reason for reject in read_sample(name).rejects) == expected


@pytest.mark.parametrize("name", PRICE_SOURCES)
@pytest.mark.parametrize("body", NO_PRICES)
def test_a_page_without_prices_counts_as_changed(name: str, body: str) -> None:
    first, *_ = sample_answers(name)
    with pytest.raises(SourceChangedError):
        list(source_module(name).read([replace(first, body=body.encode())], source_config(name)))


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_fields_of_the_sample_page_are_read_or_reviewed(name: str) -> None:
    assert read_sample(name).warnings == []


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_yaml_states_its_evidence(name: str) -> None:
    config = source_config(name)
    assert config.evidence.note
    assert config.expect.usd_per_gpu_hour[0] > 0


@pytest.mark.parametrize(("name", "label"), LOOKUPS)
def test_lookup_changes_the_match_of_its_label(name: str, label: str) -> None:
    def gpu_id(label: str) -> str | None:
        return identify(label, provider=name, kind="gpu_name", context={}, gpu_count=1).gpu_id

    assert gpu_id(label) != gpu_id(source_config(name).lookups[label].means)


@pytest.mark.parametrize(("name", "label"), LOOKUPS)
def test_a_lookup_is_met_on_the_sample_page_or_in_the_readers_test(name: str, label: str) -> None:
    test_of_reader = Path(__file__).with_name(f"test_{name}.py")
    on_page = {offer.raw_label for offer in read_sample(name).offers}
    assert label in on_page or f'"{label}"' in test_of_reader.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "key"), SETTINGS)
def test_a_setting_is_read_by_its_module(name: str, key: str) -> None:
    assert re.search(rf"""settings\[["']{key}["']\]""", inspect.getsource(source_module(name)))


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_source_with_serverless_offers_states_whether_they_train(name: str) -> None:
    serverless = any(offer.tier_class == "serverless" for offer in read_sample(name).offers)
    assert serverless == (source_config(name).attributes.serverless_training is not None)
