"""Each row of the input is in the output, in order, with the answer columns."""

import csv
import io
from pathlib import Path

import pytest

from pipeline.home.csv_rows import CsvError
from pipeline.offers.normalize_csv import normalize_csv


def _normalized(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    out = io.StringIO()
    normalize_csv(path, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    return list(rows[0]), rows


def test_rows_keep_their_order_and_columns_and_gain_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "provider,raw_label,kind,context,gpu_count,my_note\n"
        'vastai,A100 SXM4,gpu_name,gpu_ram_mib=40960,,"keep, me"\n'
        "aws,p5.48xlarge,instance_type,,,\n"
        "x,A100,gpu_name,,2,\n"
        "x,CPU only,gpu_name,,,\n"
        "x,Mystery 9000,gpu_name,,,\n"
    )
    columns, rows = _normalized(path)
    given = ["provider", "raw_label", "kind", "context", "gpu_count", "my_note"]
    answers = [
        "status",
        "gpu_id",
        "vendor",
        "model",
        "form_factor",
        "memory_gb",
        "rule",
        "confidence",
        "candidates",
    ]
    assert columns == given + answers
    assert [row["status"] for row in rows] == ["matched", "matched", "ambiguous", "not_a_gpu", "unknown"]
    assert [row["gpu_id"] for row in rows] == ["a100-sxm-40gb", "h100-sxm-80gb", "", "", ""]
    assert [row["gpu_count"] for row in rows] == ["", "8", "2", "", ""]
    assert rows[0]["my_note"] == "keep, me"
    assert rows[1]["vendor"] == "nvidia"
    assert (rows[1]["model"], rows[1]["form_factor"], rows[1]["memory_gb"]) == ("H100", "SXM", "80")
    assert "a100-sxm-80gb" in rows[2]["candidates"].split()


def test_only_the_label_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("raw_label\nL40S\n")
    _, rows = _normalized(path)
    assert (rows[0]["gpu_id"], rows[0]["rule"]) == ("l40s", "label")


def test_every_optional_column_has_an_effect(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(
        b"\xef\xbb\xbfprovider,raw_label,kind,context,gpu_count\n"
        b",A100 SXM4,,,\n"
        b"lambda,A100 SXM4,,,\n"
        b",A100 SXM4,,vram_gb=80,\n"
        b",A100 SXM4 40GB 1g.5gb, gpu_name ,, 2 \n"
        b",L40S-foo-64GB,gpu_name,,\n"
        b",L40S-foo-64GB,instance_type,,\n"
    )
    _, rows = _normalized(path)
    assert [row["gpu_id"] for row in rows] == [
        "",
        "a100-sxm-40gb",
        "a100-sxm-80gb",
        "a100-sxm-40gb",
        "",
        "l40s",
    ]
    assert [row["confidence"] for row in rows[:2]] == ["none", "certain"]
    assert (rows[3]["memory_gb"], rows[3]["gpu_count"], rows[3]["candidates"]) == ("5", "0.25", "")
    assert rows[4]["rule"] == "memory_contradicts"


def test_an_input_column_named_like_an_answer_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("status,raw_label\nmine,L4\n")
    columns, rows = _normalized(path)
    assert columns[:2] == ["status", "raw_label"]
    assert columns.count("status") == 1
    assert rows[0]["status"] == "matched"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_file_of_a_spreadsheet_is_read_and_answered_as_it_is_written(
    tmp_path: Path, separator: str
) -> None:
    path = tmp_path / "labels.csv"
    text = 'provider;raw_label ;note\r\nlambda;A100 SXM4;"a, b; c"\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace(";", separator).encode())
    out = io.StringIO()
    normalize_csv(path, out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue()), delimiter=separator)
    assert row["gpu_id"] == "a100-sxm-40gb"
    assert row["note"] == f"a, b{separator} c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,note\nL4,\n", "no column is called raw_label; its columns are label, note; provider,"),
        ("", "no column is called raw_label; its columns are none"),
        ("raw_label,kind\nL4,gpu\n", "line 2: kind: Input should be 'gpu_name' or 'instance_type'"),
        ("raw_label,gpu_count\nL4,two\n", "line 2: gpu_count: Input should be a valid number"),
        ("raw_label\nL4,L4\n", "line 2: it has 2 values for 1 columns"),
        ("raw_label,kind\nL4,\nT4,gpu\n", "line 3: kind: Input should be"),
        ("raw_label,kind\nL4\n", "line 2: it has 1 values for 2 columns"),
    ],
)
def test_a_malformed_file_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(CsvError, match=message):
        normalize_csv(path, io.StringIO())


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CsvError, match="cannot be read: No such file"):
        normalize_csv(tmp_path / "none.csv", io.StringIO())


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(b"raw_label\n\xff\xfe\n")
    with pytest.raises(CsvError, match="UTF-8"):
        normalize_csv(path, io.StringIO())
