"""Readers know the captions of their tables and the fields of their items: what is new, renamed or gone on
a page that still reads is reported, and its offers stay the same."""

from dataclasses import replace

from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.offer import Built
from pipeline.refresh.ingest import read_answers
from tests.sources.helpers import PRICE_SOURCES, RATES, read_sample, sample_answers

SOURCES_WITH_TABLES = [name for name, config in configs().items() if config.columns]

NEW = "Sustainability"


def test_every_source_with_tables_states_their_columns() -> None:
    with_tables = {
        name for name in PRICE_SOURCES if any(b"<table" in page.body for page in sample_answers(name))
    }
    in_other_markup = {"coreweave", "crusoe", "hyperstack", "nebius"}
    assert {*SOURCES_WITH_TABLES} == (with_tables | in_other_markup) - {"jarvislabs"}


def test_a_column_that_the_page_no_longer_has_is_a_warning_unless_it_is_optional() -> None:
    wrong = []
    for name in SOURCES_WITH_TABLES:
        config = source_config(name)
        known = config.model_copy(update={"columns": (*config.columns, NEW)})
        excused = known.model_copy(update={"optional_fields": (*config.optional_fields, NEW)})
        found = [read_answers(sample_answers(name), each, RATES).warnings for each in (known, excused)]
        if found != [[f"missing column {NEW!r}"], []]:
            wrong.append((name, found))
    assert wrong == []


def altered(name: str, old: str, new: str) -> Built:
    """What the reader gives where a text is another one."""
    pages = sample_answers(name)
    assert any(old in page.text() for page in pages)
    changed = [replace(page, body=page.text().replace(old, new).encode()) for page in pages]
    return read_answers(changed, source_config(name), RATES)


def test_a_renamed_column_or_field_gives_both_warnings() -> None:
    for name, old, new in (
        ("coreweave", "On-Demand Price (Per Hour)", "On-Demand Price (Per Hour, before tax)"),
        ("hyperstack", "VRAM (GB)", "GPU memory (GB)"),
        ("nebius", "RAM, GB", "RAM, GiB"),
        ("together", "Hardware", "Hardware type"),
    ):
        found = altered(name, old, new)
        assert set(found.warnings) == {f"new column {new!r}", f"missing column {old!r}"}
        assert len(found.offers) == len(read_sample(name).offers)
    assert altered("linode", '"vcpus"', '"vcpu_count"').warnings == [
        "new field 'vcpu_count', which is not read",
        "missing field 'vcpus'",
    ]
