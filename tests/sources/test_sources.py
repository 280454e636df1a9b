"""Every source: its yaml, its module, its sample page, and exactly the offers on that page.

``expected.csv`` and ``expected_rejects.csv`` are typed by hand from the page and the source's yaml.
"""

import csv
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.offer import Built, Offer
from pipeline.sources import source_module
from tests.sources.helpers import PAGES, PRICE_SOURCES, RATES, read_sample, sample_answers

ALL_COLUMNS = set(Offer.model_fields)
DERIVED = {
    *("usd_per_hour", "fx_rate", "fx_date"),  # checked below
    *("country", "continent", "tier_class"),  # what they follow from has tests of its own
    "size_evidence",  # follows from these columns and catalog/machine_sizes.csv
    "match_rule",  # the labels' own tests check which words and columns decide
}
"""Columns that no expected.csv states, because no page does."""
NO_PRICES = [
    *("", "{", "[", "null", "3", "{}", "[1, 2]", "Access denied"),
    *('{"error": {"code": "busy"}}', '{"errors": ["x"]}', '{"detail": "Not found"}'),
    *('{"status": 401, "message": "Unauthorized"}', '{"title": "Unauthorized"}'),
    *("<html></html>", "<html><body><h1>Just a moment...</h1></body></html>"),
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


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_the_sample_page_gives_exactly_its_offers_and_rejects(name: str) -> None:
    built, expected, found = read_sample(name), expected_rows(name), found_rows(read_sample(name))
    assert expected
    assert (difference(expected, found), difference(found, expected)) == ([], [])
    rejects = {row["reason"]: int(row["rows"]) for row in rows_of(PAGES / name / "expected_rejects.csv")}
    assert Counter(reject.reason for reject in built.rejects) == rejects
    assert built.warnings == [], "a field that is neither read nor reviewed"


def test_an_offer_of_a_sample_page_is_converted_at_the_rate() -> None:
    for name in PRICE_SOURCES:
        for offer in read_sample(name).offers:
            assert offer.usd_per_gpu_hour is not None, name
            total = offer.usd_per_gpu_hour * Decimal(str(offer.gpu_count))
            assert offer.usd_per_hour == pytest.approx(total), name
            rate = RATES.get(offer.native_currency)
            assert (offer.fx_rate, offer.fx_date) == ((rate.usd, rate.day) if rate else (None, None)), name


def test_every_card_of_a_sample_page_is_sold_in_a_number_that_is_known() -> None:
    assumed = [
        (name, offer.gpu_id, offer.tier)
        for name in PRICE_SOURCES
        for offer in read_sample(name).offers
        if offer.gpu_id and offer.gpu_count >= 1 and offer.size_evidence == "assumed"
    ]
    assert assumed == []


def test_a_page_without_prices_counts_as_changed() -> None:
    read_anyway = []
    for name in PRICE_SOURCES:
        first, *_ = sample_answers(name)
        for body in NO_PRICES:
            try:
                list(source_module(name).read([replace(first, body=body.encode())], source_config(name)))
                read_anyway.append((name, body))
            except SourceChangedError:
                continue
    assert read_anyway == []


def test_a_yaml_states_whether_serverless_offers_train() -> None:
    wrong = []
    for name in PRICE_SOURCES:
        is_stated = source_config(name).attributes.serverless_training is not None
        if is_stated != any(offer.tier_class == "serverless" for offer in read_sample(name).offers):
            wrong.append(name)
    assert wrong == []
