"""The audited JSON reader: typed fields, and warnings for what is new and for what is gone."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.listing import ReaderWarning, SourceChangedError
from pipeline.parsing.json_objects import MAX_WARNINGS, FieldAudit, JsonObject
from pipeline.parsing.prices import RowError
from pipeline.refresh.ingest import read_answers
from tests.sources.helpers import SAMPLES, answer, page

CONFIG = source_config("linode").model_copy(update={"ignored_fields": (), "optional_fields": ()})


def texts(audit: FieldAudit) -> list[str]:
    return [warning.text for warning in audit.warnings()]


def item(raw: dict[str, Any], audit: FieldAudit | None = None) -> JsonObject:
    return (audit or FieldAudit(CONFIG)).item(json.loads(json.dumps(raw), parse_float=Decimal), answer("{}"))


def test_typed_fields() -> None:
    row = item({"a": "x", "n": 1.5, "whole": "8", "price": 2.5, "o": {"b": 1}, "l": [{"c": 1}, 2, {"c": 3}]})
    assert row.text("a") == "x"
    assert row.decimal("n") == row.optional_decimal("n") == Decimal("1.5")
    assert row.whole_number("whole") == row.gpu_count("whole") == 8
    assert row.price("price") == Decimal("2.5")
    assert row.object("o").get("b") == 1
    assert [inner.get("c") for inner in row.objects("l")] == [1, 3]
    assert ("a" in row, "z" in row) == (True, False)


@pytest.mark.parametrize("accessor", ["text", "decimal", "whole_number", "price", "gpu_count"])
@pytest.mark.parametrize("raw", [{}, {"x": None}, {"x": ""}, {"x": []}, {"x": {}}, {"x": True}])
def test_a_mandatory_field_that_is_missing_or_of_another_type_is_refused(
    accessor: str, raw: dict[str, Any]
) -> None:
    with pytest.raises(RowError):
        getattr(item(raw), accessor)("x")


def test_half_a_thing_is_not_a_whole_number() -> None:
    with pytest.raises(RowError, match=r"x: 1\.5 is not a whole number"):
        item({"x": 1.5}).whole_number("x")


@pytest.mark.parametrize("raw", [{}, {"x": None}, {"x": ""}, {"x": []}, {"x": {}}])
def test_an_optional_field_that_is_missing_or_of_another_type_is_none(raw: dict[str, Any]) -> None:
    row = item(raw)
    assert row.optional_text("x") is row.optional_number("x") is row.optional_decimal("x") is None
    assert (row.object("x").raw, row.objects("x"), row.objects_by_name("x")) == ({}, [], {})


@pytest.mark.parametrize(
    ("value", "gib"), [(2**30, 1), (str(3 * 2**29), 1.5), (0, 0), (None, None), ("x", None), (True, None)]
)
def test_bytes_as_gib(value: object, gib: float | None) -> None:
    assert item({"x": value}).optional_number("x", per=2**30) == gib


def test_of_several_spellings_the_first_with_a_value_counts_and_all_are_read() -> None:
    audit = FieldAudit(CONFIG)
    assert item({"old": 1, "new": None}, audit).get("new", "old") == 1
    assert item({"old": 1, "new": 2}, audit).get("new", "old") == 2
    assert item({"old": 0}, audit).get("new", "old") == 0
    assert texts(audit) == []


def test_an_entry_that_is_not_an_object_keeps_its_name() -> None:
    gpus = item({"gpus": {"h100": {"count": 1}, "l40s": "?"}}).objects_by_name("gpus")
    assert {name: gpu.raw for name, gpu in gpus.items()} == {"h100": {"count": 1}, "l40s": {}}


def test_unread_and_missing_fields_are_named_once_with_their_path() -> None:
    audit = FieldAudit(CONFIG)
    body = {"data": [{"id": 1, "gpu": {"name": "x", "ecc": 1}, "odd": 1}] * 3, "total": 3}
    for row in audit.items(answer(body), "data"):
        row.get("id"), row.get("price"), row.object("gpu").get("name"), row.object("gpu").get("count")
    assert texts(audit) == [
        "new field 'answer.total', which is not read",
        "new field 'gpu.ecc', which is not read",
        "new field 'odd', which is not read",
        "missing field 'gpu.count'",
        "missing field 'price'",
    ]


def test_a_field_that_one_row_has_is_not_missing_and_one_that_is_read_somewhere_is_not_new() -> None:
    audit = FieldAudit(CONFIG)
    first, second = audit.items(answer([{"a": 1, "b": 1}, {"a": 2}]), "data")
    first.get("a"), second.get("b")
    assert texts(audit) == []


def test_objects_that_are_only_peeked_at_are_not_audited() -> None:
    audit = FieldAudit(CONFIG)
    rows = audit.items(answer([{"kind": {"of": "gpu"}, "a": 1}, {"kind": {"of": "cpu"}, "other": 1}]), "data")
    for row in rows:
        if row.peek("kind", "of") == "gpu":
            row.get("a")
    assert texts(audit) == []


def test_nothing_is_missing_inside_an_object_that_is_missing() -> None:
    audit = FieldAudit(CONFIG)
    item({"a": 1}, audit).object("gpu").object("memory").get("size")
    assert texts(audit) == ["new field 'a', which is not read", "missing field 'gpu'"]


def test_reviewed_lines_silence_their_fields_only() -> None:
    config = CONFIG.model_copy(update={"ignored_fields": ("a",), "optional_fields": ("gpu",)})
    audit = FieldAudit(config)
    item({"a": 1, "gpus": 1}, audit).get("gpu")
    item({"b": 1}, audit).get("a.b")
    assert texts(audit) == [
        "new field 'b', which is not read",
        "new field 'gpus', which is not read",
        "missing field 'a.b'",
    ]


def test_warnings_are_bounded_in_number_and_length() -> None:
    audit = FieldAudit(CONFIG)
    item({f"{at:03}{'x' * 500}": 1 for at in range(MAX_WARNINGS + 5)}, audit).get("000" + "x" * 500)
    found = texts(audit)
    assert len(found) == MAX_WARNINGS + 1
    assert found[-1] == "4 more new or missing fields"
    assert max(map(len, found)) < 150


@pytest.mark.parametrize(
    "body", ["[1]", '{"data": 1}', '{"data": [1]}', "{}", "3", '{"data": [], "rows": []}']
)
def test_what_has_no_list_of_objects_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        FieldAudit(CONFIG).items(answer(body), "data", "rows")


def renamed(config: SourceConfig, text: str) -> list[str]:
    return read_answers([answer(text)], config).warnings


def test_a_renamed_field_gives_both_warnings_with_the_offers() -> None:
    config = source_config("linode")
    text = page("linode", "types.json")
    assert renamed(config, text) == []
    assert renamed(config, text.replace('"vcpus"', '"vcpu_count"')) == [
        "new field 'vcpu_count', which is not read",
        "missing field 'vcpus'",
    ]


SAMPLES_BY_SOURCE = {
    "digitalocean_sizes_2026-08.json": "digitalocean",
    "jarvislabs_server_meta_2026-08.json": "jarvislabs",
    "scaleway_servers_2026-08-22.json": "scaleway",
    "verda_instance_types_2026-08.json": "verda",
}


@pytest.mark.parametrize("name", SAMPLES_BY_SOURCE)
def test_samples_of_whole_answers_have_reviewed_fields_only(name: str) -> None:
    config = source_config(SAMPLES_BY_SOURCE[name])
    assert read_answers([answer((SAMPLES / name).read_bytes())], config).warnings == []


def test_a_warning_is_a_separate_row() -> None:
    audit = FieldAudit(CONFIG)
    item({"a": 1, "b": 1}, audit).get("a")
    assert list(audit.warnings()) == [ReaderWarning("new field 'b', which is not read")]
