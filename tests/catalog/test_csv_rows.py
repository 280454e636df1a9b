"""CSV files that people write: each slip is named with its line and costs no other row."""

from pathlib import Path

import pytest

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows
from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, append_row, read_csv


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def test_each_slip_is_named_with_its_line_and_the_other_rows_are_read(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbf\r\nname , note\r\n"
        b'a,"two\r\nlines"\r\n'
        b'b,"open\r\n'
        b"\r\n"
        b"c,1,2\r\n"
        b"d\r\n"
        b"e,\xff\r\n"
        b'f,"x"y\r\n'
        b'g,"last"'
    )
    table = read_csv(file)
    assert table.columns == ["name", "note"]
    assert [(row.line, row.values["name"], row.problem) for row in table.rows] == [
        (3, "a", ""),
        (5, "b", "a quote is not closed"),
        (7, "c", "it has 3 values for 2 columns"),
        (8, "d", "it has 1 values for 2 columns"),
        (9, "e", "it has bytes that are not UTF-8"),
        (10, "f", "not CSV (',' expected after '\"')"),
        (11, "g", ""),
    ]
    assert table.rows[0].values["note"] == "two\r\nlines"
    assert table.rows[0].text == 'a,"two\r\nlines"\r\n'


def test_the_separator_is_the_one_that_divides_the_heading(file: Path) -> None:
    for separator in (",", ";", "\t", "|"):
        file.write_text("Name;Note\na;b\n".replace(";", separator))
        table = read_csv(file, lower_case=True)
        assert (table.separator, table.rows[0].values) == (separator, {"name": "a", "note": "b"})


def test_a_file_that_is_not_a_table_is_refused(file: Path) -> None:
    with pytest.raises(CsvError, match="cannot be read: No such file"):
        read_csv(file)
    refused = {
        b"a,b,a\n": "has the column 'a' more than once: keep one",
        "a,b\n".encode("utf-16"): "is UTF-16: save it as CSV in UTF-8",
        "a,b\n".encode("utf-16-le"): "is UTF-16",
        b'"a,b\n1,2\n': "line 1: a quote is not closed",
        b"a,b\n" + b"1,2\n" * 10: "is larger than 4e-05 MB: divide it",
    }
    for content, words in refused.items():
        file.write_bytes(content)
        with pytest.raises(CsvError, match=words):
            read_csv(file, max_bytes=40)


def test_the_time_for_a_hostile_file_grows_only_with_its_size(file: Path) -> None:
    """A quote that is never closed reads on to the limit of a cell, once for each such line."""
    file.write_text("a,b\n" + '"x\n' * 20_000)
    rows = read_csv(file).rows
    assert len(rows) == 20_000
    assert all(row.problem for row in rows)


def test_a_damaged_file_of_the_catalogue_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    (tmp_path / "gpus.csv").write_text("gpu_id,vendor\na,nvidia\nb\n")
    with pytest.raises(CatalogError, match=r"catalog/gpus.csv, line 3: it has 1 values for 2 columns"):
        catalog_rows("gpus.csv")
    with pytest.raises(CatalogError, match=r"models.csv cannot be read.*: reinstall gpufare or restore"):
        catalog_rows("models.csv")


def test_a_row_is_not_appended_to_a_file_without_a_heading(file: Path) -> None:
    for content in (b"", b"\n\n"):
        file.write_bytes(content)
        with pytest.raises(CsvError, match="no heading"):
            append_row(file, {"a": 1}, ["a"])
        assert file.read_bytes() == content
