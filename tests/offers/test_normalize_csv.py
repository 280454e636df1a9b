"""Each row of a table of labels is in the output, in order, with the answer columns."""

import csv
import io
from pathlib import Path

import pytest

from pipeline.home.csv_rows import CsvError
from pipeline.offers.normalize_csv import ANSWER_COLUMNS, normalize_csv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def normalized(path: Path, separator: str = ",") -> list[dict[str, str]]:
    out = io.StringIO()
    normalize_csv(path, out)
    return list(csv.DictReader(io.StringIO(out.getvalue()), delimiter=separator))


def test_rows_keep_their_order_and_columns_and_gain_the_answers(path: Path) -> None:
    path.write_text(
        "provider,raw_label,kind,context,gpu_count,my_note\n"
        'vastai,A100 SXM4,gpu_name,gpu_ram_mib=40960,,"keep, me"\n'
        "aws,p5.48xlarge,instance_type,,,\n"
        "x,RTX A2000,gpu_name,,2,\n"
        "x,CPU only,gpu_name,,,\n"
        "x,Mystery 9000,gpu_name,,,\n"
    )
    out = io.StringIO()
    normalize_csv(path, out)
    given = ("provider", "raw_label", "kind", "context", "gpu_count", "my_note")
    answers = [name for name in ANSWER_COLUMNS if name != "gpu_count"]
    a100 = "label+form_factor+memory_column"
    assert out.getvalue().split("\n") == [
        ",".join([*given, *answers]),
        'vastai,A100 SXM4,gpu_name,gpu_ram_mib=40960,,"keep, me",matched,a100-sxm-40gb,nvidia,A100,SXM,40,'
        f"{a100},certain,",
        "aws,p5.48xlarge,instance_type,,8,,matched,h100-sxm-80gb,nvidia,H100,SXM,80,"
        "instance_type+label+form_factor+memory,certain,",
        "x,RTX A2000,gpu_name,,2,,ambiguous,,nvidia,RTX A2000,,,label+memory_open,none,"
        "rtx-a2000-6gb rtx-a2000-12gb",
        "x,CPU only,gpu_name,,,,not_a_gpu,,,,,,not_a_gpu,certain,",
        "x,Mystery 9000,gpu_name,,,,unknown,,,,,,no_known_model,none,",
        "",
    ]


def test_every_optional_column_has_an_effect(path: Path) -> None:
    path.write_bytes(
        b"\xef\xbb\xbfprovider,raw_label,kind,context,gpu_count\n"
        b",A100 SXM4,,,\n"
        b"lambda,A100 SXM4,,,\n"
        b",A100 SXM4,,vram_gb=80,\n"
        b",A100 SXM4 40GB 1g.5gb, gpu_name ,, 2 \n"
        b",L40S-kube-64GB,gpu_name,,\n"
        b",L40S-kube-64GB,instance_type,,\n"
    )
    rows = normalized(path)
    ids = ["", "a100-sxm-40gb", "a100-sxm-80gb", "a100-sxm-40gb", "", "l40s"]
    assert [row["gpu_id"] for row in rows] == ids
    assert (rows[3]["memory_gb"], rows[3]["gpu_count"]) == ("5", "0.25")
    path.write_text("raw_label\nL40S\n")
    assert [(row["gpu_id"], row["rule"]) for row in normalized(path)] == [("l40s", "label")]


def test_a_file_of_a_spreadsheet_is_read_and_answered_as_it_is_written(path: Path) -> None:
    text = 'provider;raw_label ;note\r\nlambda;A100 SXM4;"a, b; c"\r\n'
    for separator in (";", "\t"):
        path.write_bytes(b"\xef\xbb\xbf" + text.replace(";", separator).encode())
        (row,) = normalized(path, separator)
        assert (row["gpu_id"], row["note"]) == ("a100-sxm-40gb", f"a, b{separator} c")


def test_a_malformed_file_is_reported_with_its_line(path: Path) -> None:
    more = "; provider, kind, context and gpu_count are read if given"
    problems = {
        b"label,no\x07te\nL4,\n": f": no column is called raw_label; its columns are label, no\ufffdte{more}",
        b"raw_label,kind\nL4,gpu\n": ", line 2: kind: Input should be 'gpu_name' or 'instance_type'",
        b"raw_label,gpu_count\nL4,two\n": ", line 2: gpu_count: Input should be a valid number, unable to "
        "parse string as a number",
        b"raw_label,kind\nL4,\nT4\n": ", line 3: it has 1 values for 2 columns",
    }
    found = {}
    for content in problems:
        path.write_bytes(content)
        with pytest.raises(CsvError) as raised:
            normalized(path)
        found[content] = str(raised.value).removeprefix(f"{path}")
    assert found == problems
    with pytest.raises(CsvError, match="cannot be read: No such file"):
        normalized(path.with_name("none.csv"))
