"""Readers know the captions of their tables: a new, renamed or missing column on a page that still reads is
reported, and its offers stay the same."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built
from pipeline.parsing import tables
from pipeline.parsing.json_objects import MAX_WARNINGS, FieldAudit
from pipeline.refresh.ingest import read_answers
from pipeline.sources import kit
from tests.capture.conftest import source
from tests.sources.helpers import RATES, read_sample, sample_answers

SOURCES_WITH_TABLES = [name for name, config in configs().items() if config.columns]
READERS = Path(__file__).parents[2] / "pipeline" / "sources"

GRIDS = {
    "coreweave": (".table-v2-header .table-grid", "table-v2-cell", ".w-embed > .table-grid", "table-v2-cell"),
    "crusoe": (".pricing-table-heading", "pricing-heading", ".pricing_gpu-item", "pricing-rich"),
    "hyperstack": (
        ".page-price_card_head",
        "page-price_card_head_item",
        ".page-price_card_row_item",
        "page-price_card_row_item_col",
    ),
}
"""Tables without ``<table>``: selectors of their header rows and rows, and the classes of the cells."""

NEW = "Sustainability"


def with_column(answer: Answer, name: str) -> Answer:
    """The page with a further column in each of its tables."""
    if name == "nebius":  # its tables are escaped JSON
        return replace(answer, body=answer.body.replace(rb"\"]", rf"\",\"{NEW}\"]".encode()))
    soup = BeautifulSoup(answer.text(), "lxml")
    if name in GRIDS:
        header, header_cell, row, row_cell = GRIDS[name]
        for selector, cell, text in ((header, header_cell, NEW), (row, row_cell, "yes")):
            for container in soup.select(selector):
                added = soup.new_tag("div", attrs={"class": cell})
                added.string = text
                container.append(added)
    else:
        for row in soup.find_all("tr"):
            add_cell(soup, row)
    return replace(answer, body=str(soup).encode())


def add_cell(soup: BeautifulSoup, row: Tag) -> None:
    cells = row.find_all(["td", "th"], recursive=False)
    if len(cells) == 1:
        cells[0]["colspan"] = str(int(cells[0].get("colspan", 1)) + 1)
    elif cells:
        is_header = all(cell.name == "th" for cell in cells)
        added = soup.new_tag(cells[-1].name, attrs={"data-label": NEW, "data-title": NEW})
        added.string = NEW if is_header else "yes"
        cells[-1].insert_after(added)


def read_altered(name: str, altered: Iterable[Answer]) -> Built:
    return read_answers(list(altered), source_config(name), RATES)


def facts(built: Built) -> list[dict[str, object]]:
    """The offers without where and when they were read."""
    return [offer.model_dump(exclude={"observed_at", "capture_sha256"}) for offer in built.offers]


@pytest.mark.parametrize("name", SOURCES_WITH_TABLES)
def test_a_new_column_is_a_warning_and_changes_no_offer(name: str) -> None:
    altered = read_altered(
        name,
        (
            with_column(answer, name) if "<html" in answer.text() else answer
            for answer in sample_answers(name)
        ),
    )
    assert altered.warnings == [f"new column {NEW!r}"]
    assert facts(altered) == facts(read_sample(name))


@pytest.mark.parametrize("name", SOURCES_WITH_TABLES)
def test_a_column_that_the_page_no_longer_has_is_a_warning(name: str) -> None:
    config = source_config(name)
    known = config.model_copy(update={"columns": (*config.columns, NEW)})
    read = read_answers(sample_answers(name), known, RATES)
    assert read.warnings == [f"missing column {NEW!r}"]
    excused = known.model_copy(update={"optional_fields": (*config.optional_fields, NEW)})
    assert read_answers(sample_answers(name), excused, RATES).warnings == []


def altered_text(name: str, old: str, new: str) -> list[Answer]:
    answers = sample_answers(name)
    assert any(old in answer.text() for answer in answers)
    return [replace(answer, body=answer.text().replace(old, new).encode()) for answer in answers]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("coreweave", "On-Demand Price (Per Hour)", "On-Demand Price (Per Hour, before tax)"),
        ("hyperstack", "VRAM (GB)", "GPU memory (GB)"),
        ("nebius", "RAM, GB", "RAM, GiB"),
        ("together", "Hardware", "Hardware type"),
    ],
)
def test_a_renamed_column_gives_both_warnings(name: str, old: str, new: str) -> None:
    read = read_altered(name, altered_text(name, old, new))
    assert set(read.warnings) == {f"new column {new!r}", f"missing column {old!r}"}
    assert len(read.offers) == len(read_sample(name).offers)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("coreweave", "GPU Count", "Units"),
        ("crusoe", ">On-demand<", ">Rate<"),
        ("together", "Hardware", "Product"),
        ("gcp", "Components", "Parts"),
    ],
)
def test_a_renamed_column_that_the_reader_needs_fails_the_source(name: str, old: str, new: str) -> None:
    with pytest.raises(SourceChangedError):
        read_altered(name, altered_text(name, old, new))


def warnings_of(captions: list[list[str]], **facts: object) -> list[str]:
    audit = FieldAudit(source(**facts))
    for each in captions:
        audit.columns(each)
    return [warning.text for warning in audit.warnings()]


def test_case_spaces_and_columns_without_a_caption_do_not_matter() -> None:
    columns = ["GPU model", "Price per hour"]
    assert warnings_of([["GPU  Model", "", "PRICE PER\nHOUR", " "]], columns=columns) == []


def test_the_columns_of_all_tables_together_are_the_known_ones() -> None:
    columns = ["GPU", "On-demand", "Spot"]
    assert warnings_of([["GPU", "On-demand"], ["GPU", "Spot"]], columns=columns) == []


def test_a_table_like_those_that_are_read_is_not_skipped_silently() -> None:
    """If one of two tables with the same columns has its first column renamed, the other still reads."""

    def skipping(captions: list[str]) -> list[str]:
        audit = FieldAudit(source(columns=["GPU", "RAM", "Price"], ignored_fields=["CPU"]))
        audit.table(["GPU", "RAM", "Price"], is_read=True)
        audit.table(captions, is_read=False)
        return [warning.text for warning in audit.warnings()]

    text = "a table like those that are read was skipped; its columns are "
    assert skipping(["Card", "RAM", "Price"]) == [f"{text}Card, RAM, Price"]
    assert skipping(["Card", "Memory", "Price"]) == []
    assert skipping(["CPU", "RAM", "Price"]) == []
    assert skipping(["Volume", "Price"]) == []
    assert skipping([]) == []


def test_a_table_of_gcp_that_lost_its_column_of_gpus_is_named() -> None:
    (answer,) = [each for each in sample_answers("gcp") if "<html" in each.text()]
    soup = BeautifulSoup(answer.text(), "lxml")
    soup.find_all("th", string="GPU")[-1].string = "Chip"
    read = read_altered("gcp", [replace(answer, body=str(soup).encode())])
    assert [text for text in read.warnings if "was skipped" in text and "Chip" in text]
    assert 0 < len(read.offers) < len(read_sample("gcp").offers)


def test_without_a_table_no_column_is_missing() -> None:
    assert warnings_of([], columns=["GPU"]) == []


def test_warnings_of_columns_are_bounded_in_number_and_length() -> None:
    found = warnings_of([[f"{number} {'x' * 500}" for number in range(100)]])
    assert len(found) == MAX_WARNINGS + 1
    assert max(map(len, found)) < 120


def test_every_reader_of_tables_knows_its_columns() -> None:
    of_tables = [
        name for name in vars(tables) if getattr(vars(kit).get(name), "__module__", "") == tables.__name__
    ]
    assert of_tables
    for file in READERS.glob("*.py"):
        code = file.read_text(encoding="utf-8")
        if re.search(rf"\bkit\.(?:{'|'.join(of_tables)})\b", code):
            assert re.search(r"audit\.(?:columns|table)\(", code), f"{file.name}: note the captions"
