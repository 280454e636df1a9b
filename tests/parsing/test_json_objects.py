"""JSON read field by field, and the warnings of fields and columns that are new or gone."""

import json
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.listing import Listing, ReaderWarning, Reject, read_json
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import CellPrice, RowError
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

CONFIG = source_config("linode").model_copy(update={"ignored_fields": (), "optional_fields": ()})
PAGE = answer("{}", "https://a.example/")


def config(**facts: Any) -> SourceConfig:
    return CONFIG.model_copy(update=facts)


def texts(audit: FieldAudit) -> list[str]:
    return [warning.text for warning in audit.warnings()]


def item(raw: dict[str, Any], audit: FieldAudit | None = None) -> JsonObject:
    return (audit or FieldAudit(CONFIG)).item(json.loads(json.dumps(raw), parse_float=Decimal), PAGE)


def test_typed_fields() -> None:
    row = item({"a": "x", "n": 1.5, "whole": "8", "price": 2.5, "o": {"b": 1}, "l": [{"c": 1}, 2, {"c": 3}]})
    assert (row.text("a"), row.optional_text("a"), row.config) == ("x", "x", CONFIG)
    assert row.decimal("n") == row.optional_decimal("n") == Decimal("1.5")
    assert (row.optional_number("n"), row.optional_number("whole", per=2**4)) == (1.5, 0.5)
    assert row.whole_number("whole") == row.gpu_count("whole") == 8
    assert row.price("price") == Decimal("2.5")
    assert row.object("o").get("b") == 1
    assert [inner.get("c") for inner in row.objects("l")] == [1, 3]
    assert ("a" in row, "z" in row, row.name("a", "z", "n")) == (True, False, "x, None, 1.5")


def test_a_mandatory_field_that_is_missing_or_of_another_type_is_refused_with_its_path() -> None:
    raws = [({}, None), ({"x": None}, None), ({"x": ""}, None), ({"x": []}, []), ({"x": True}, True)]
    for raw, value in raws:
        inner = item({"o": raw | {"z": 1}}).object("o")
        shown = raw.get("x")
        assert outcome(inner.text, "x") == f"missing_field: o.x is {shown!r}, not a text"
        for read in (inner.decimal, inner.whole_number):
            assert outcome(read, "x") == f"missing_field: o.x: {shown!r} is not a number"
        assert outcome(inner.gpu_count, "x") == f"unknown_gpu_count: GPU count {shown!r} is not a number"
        absent = f"not_offered: o.x: no price is given: {shown!r}"
        unread = f"unreadable_price: o.x: {value!r} is not a number"
        assert outcome(inner.price, "x") == (unread if value is not None else absent)
        several = f"missing_field: o.x is {value!r}, not a text"
        assert outcome(inner.text, "x", "y") == several
    assert outcome(item({"x": 1.5}).whole_number, "x") == "missing_field: x: 1.5 is not a whole number"


def test_an_optional_field_that_is_missing_or_of_another_type_is_none() -> None:
    for raw in ({}, {"x": None}, {"x": ""}, {"x": []}, {"x": {}}):
        row = item(raw)
        assert row.optional_text("x") is row.optional_number("x") is row.optional_decimal("x") is None
        assert (row.object("x").raw, row.objects("x"), row.objects_by_name("x")) == ({}, [], {})
    gpus = item({"gpus": {"h100": {"count": 1}, "l40s": "?"}}).objects_by_name("gpus")
    assert {name: gpu.raw for name, gpu in gpus.items()} == {"h100": {"count": 1}, "l40s": {}}


def test_of_several_spellings_the_first_with_a_value_counts_and_all_are_read() -> None:
    audit = FieldAudit(CONFIG)
    for raw, value in (({"old": 1, "new": None}, 1), ({"old": 1, "new": 2}, 2), ({"old": 0, "new": ""}, 0)):
        assert item(raw, audit).get("new", "old") == value
    assert item({"z": 1}, audit).get("new", "old") is None
    assert texts(audit) == ["new field 'z', which is not read"]


def test_unread_and_missing_fields_are_named_once_with_their_path() -> None:
    audit = FieldAudit(CONFIG)
    body = {"data": [{"id": 1, "gpu": {"name": "x", "ecc": 1}, "odd": 1}, 3, {"id": 2}], "total": 3}
    for row in audit.items(answer(body), "data"):
        row.get("id"), row.get("price"), row.object("gpu").get("name"), row.object("gpu").get("count")
    assert texts(audit) == [
        "new field 'answer.total', which is not read",
        "new field 'gpu.ecc', which is not read",
        "new field 'odd', which is not read",
        "missing field 'gpu.count'",
        "missing field 'price'",
    ]


def test_reviewed_lines_silence_their_fields_only() -> None:
    audit = FieldAudit(config(ignored_fields=("a",), optional_fields=("gpu",)))
    item({"a": 1, "gpus": 1}, audit).get("gpu")
    item({"b": 1}, audit).get("a.b")
    assert list(audit.warnings()) == [
        ReaderWarning("new field 'b', which is not read"),
        ReaderWarning("new field 'gpus', which is not read"),
        ReaderWarning("missing field 'a.b'"),
    ]


def test_what_has_no_list_of_objects_is_a_change() -> None:
    no_list = "the answer has no list under data or rows"
    problems = {
        "[1]": "the list under data or rows has no objects",
        '{"data": [1]}': "the list under data or rows has no objects",
        '{"data": 1}': no_list,
        "{}": no_list,
        '{"data": [], "rows": []}': no_list,
        "3": "the answer is neither an object nor a list",
    }
    cases = [(body, f"https://a.example/: {problem}") for body, problem in problems.items()]
    audit = FieldAudit(CONFIG)
    assert wrong(lambda body: audit.items(answer(body, "https://a.example/"), "data", "rows"), cases) == []
    page = answer({"rows": [{"a": 1}]})
    (found,) = audit.items(page, "data", "rows")
    assert (found.raw, found.answer, audit.items(answer([]), "data")) == ({"a": 1}, page, [])


def test_an_item_that_cannot_be_read_is_a_reject_named_after_its_fields() -> None:
    def read(row: JsonObject) -> Any:
        yield row.listing(row.text("gpu"), 2, row.price("price"), region="x")

    rows = [item({"id": 1, "gpu": "H100", "price": 3}), item({"id": 2, "gpu": "L4"})]
    assert list(read_rows(rows, read, "id", "gpu")) == [
        CellPrice(Decimal(3), "USD").listing("H100", 2, PAGE, region="x"),
        Reject(
            RejectReason.NOT_OFFERED, "2, L4: price: no price is given: None", {"id": 2, "gpu": "L4"}, PAGE
        ),
    ]
    error = RowError(RejectReason.NOT_OFFERED, "sold out")
    assert rows[0].reject(error, "H100", ["raw"]) == Reject(error.reason, "H100: sold out", ["raw"], PAGE)
    euros = item({}, FieldAudit(source_config("ovh"))).listing("L4", 1, Decimal(1))
    assert isinstance(euros, Listing)
    assert euros.native_currency == "EUR"


# ------------------------------------------------------------------ columns of tables


def column_warnings(captions: list[list[str]], **facts: Any) -> list[str]:
    audit = FieldAudit(config(**facts))
    for each in captions:
        audit.columns(each)
    return texts(audit)


def test_the_columns_of_all_tables_together_are_compared_with_the_known_ones() -> None:
    known = ("GPU", "On-demand  price", "Spot")
    tables = [["GPU", "", "ON-DEMAND\nPRICE"], ["gpu", "Spot", " "]]
    assert column_warnings(tables, columns=("GPU", "On-demand price", "Spot")) == []
    assert column_warnings([["GPU", "Rate", "rate"]], columns=known[::2]) == [
        "new column 'rate'", "missing column 'Spot'",
    ]  # fmt: skip
    assert column_warnings([["GPU"]], columns=known[::2], optional_fields=("Spot",)) == []
    assert column_warnings([], columns=known) == []  # no table was read


def test_a_table_like_those_that_are_read_is_not_skipped_silently() -> None:
    """If one of two tables with the same columns has its first column renamed, the other still reads."""

    def skipping(*tables: list[str]) -> list[str]:
        audit = FieldAudit(config(columns=("GPU", "RAM", "Price"), ignored_fields=("CPU",)))
        audit.table(["GPU", "RAM", "Price"], is_read=True)
        for captions in tables:
            audit.table(captions, is_read=False)
        return texts(audit)

    text = "a table like those that are read was skipped; its columns are "
    assert skipping(["Card", "RAM", "Price"], ["Card", "RAM", "Price"]) == [f"{text}Card, RAM, Price"]
    assert skipping(["C" * 300, "ram", "PRICE"]) == [f"{text}{'C' * 200}"]
    for others in (["Card", "Memory", "Price"], ["CPU", "RAM", "Price"], ["GPU", "Price"], []):
        assert skipping(others) == []


# ------------------------------------------------------------------ text of JSON


def test_a_field_with_two_values_is_refused_with_both() -> None:
    """The last of them must not win silently."""
    cases = {
        '{"price": 1, "price": 2}': ("price", "'1' and '2'"),
        '{"data": [{"id": 1}, {"gpu": {"price": "1", "price": "2"}}]}': ("price", "'1' and '2'"),
        '[{"a": {"x": 1}, "a": {"x": 2}}]': ("a", "\"{'x': 1}\" and \"{'x': 2}\""),
        '{"price": null, "price": 2}': ("price", "'None' and '2'"),
        '{"price": 2, "price": 3, "price": 2}': ("price", "'3' and '2'"),
        f'{{"{"n" * 90}": "{"v" * 90}", "{"n" * 90}": 1}}': ("n" * 80, f"'{'v' * 80}' and '1'"),
    }
    for text, (name, values) in cases.items():
        problem = f"https://a.example/: the field {name!r} has several values in one object: {values}"
        assert outcome(answer(text, "https://a.example/").json) == problem
    assert answer('{"price": 1.50, "price": 1.5}').json() == {"price": Decimal("1.5")}


def test_text_that_is_not_json_is_a_value_error() -> None:
    def is_refused(text: str) -> bool:
        try:
            read_json(text, "x")
        except ValueError:
            return True
        return False

    texts = ["", "{", "[" * 100_000, "{} {}", "NaN", '{"a": NaN}', '{"a": "\n"}', "1e9999999999999999999"]
    assert wrong(is_refused, [(text, True) for text in texts]) == []
    assert read_json('{"a": "line\nbreak"} and more', "x", beginning=True) == {"a": "line\nbreak"}
