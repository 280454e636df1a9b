"""Dated prices from elsewhere have a table of their own; the rest is left out and named."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.offers import imported
from pipeline.offers.imported import ImportFileError, imported_files, keep, read_prices
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.imports import load_imports
from tests.conftest import gpufare

TODAY = date(2026, 11, 1)

FACTS = """\
day,gpu,provider,price_kind,usd_per_gpu_hour,gpu_count,country,source,evidence
2020-11-02,A100 SXM 40GB,AWS,on_demand,4.09625,8,US,https://aws.amazon.com/ec2/p4/,p4d.24xlarge at 32.77
2020-11-02,A100 SXM 40GB,AWS,reserved_1yr,2.4025,8,US,https://aws.amazon.com/ec2/p4/,19.22 effective
2023-07-26,H100 SXM,AWS,on_demand,12.29,8,US,https://aws.amazon.com/ec2/p5/,p5.48xlarge at 98.32
2025-06-05,H100 SXM,AWS,on_demand,6.88,8,US,https://aws.amazon.com/ec2/p5/,55.04 after a cut of 44 %
"""
"""Prices that were public on their day."""


def file_of(folder: Path, text: str, name: str = "facts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def row(**changes: str) -> str:
    cells = {
        "day": "2026-01-02",
        "gpu": "H100 SXM",
        "provider": "Acme",
        "price_kind": "on_demand",
        "usd_per_gpu_hour": "2.50",
        "source": "https://acme.example",
    } | changes
    return ",".join(cells) + "\n" + ",".join(f'"{cell}"' for cell in cells.values()) + "\n"


def loaded(home: Home, day: date = TODAY) -> tuple[list[Any], list[tuple[Any, ...]]]:
    with connect() as connection:
        create(connection, "imported_prices")
        damages = load_imports(connection, home, day)
        return damages, connection.execute("FROM main.imported_prices ORDER BY day, line").fetchall()


def test_prices_are_loaded_with_their_source_and_evidence(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    found = read_prices(file_of(tmp_path, FACTS), TODAY)
    assert found.rejects == []
    assert keep(home, found)
    damages, rows = loaded(home)
    assert damages == []
    assert [(each[0], each[1], each[5], each[6], each[8], each[10]) for each in rows] == [
        (date(2020, 11, 2), "a100-sxm-40gb", "on_demand", None, Decimal("4.09625"), "US"),
        (date(2020, 11, 2), "a100-sxm-40gb", "reserved", 365, Decimal("2.4025"), "US"),
        (date(2023, 7, 26), "h100-sxm-80gb", "on_demand", None, Decimal("12.29"), "US"),
        (date(2025, 6, 5), "h100-sxm-80gb", "on_demand", None, Decimal("6.88"), "US"),
    ]
    assert rows[2][11:] == ("https://aws.amazon.com/ec2/p5/", "p5.48xlarge at 98.32", "facts.csv", 4)
    assert len(loaded(home, date(2023, 8, 1))[1]) == 3  # a past day does not know what came after


def test_importing_a_file_again_changes_nothing(tmp_path: Path) -> None:
    home, path = Home(tmp_path / "home"), file_of(tmp_path, FACTS)
    assert keep(home, read_prices(path, TODAY))
    (kept,) = imported_files(home)
    before = kept.stat().st_mtime_ns
    assert not keep(home, read_prices(path, TODAY))
    assert not keep(home, read_prices(path.rename(tmp_path / "copy.csv"), TODAY))
    assert [(kept, before)] == [(each, each.stat().st_mtime_ns) for each in imported_files(home)]


def test_what_several_files_state_alike_counts_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    keep(home, read_prices(file_of(tmp_path, FACTS), TODAY))
    more = FACTS + "2024-01-01,L4,GCP,spot,0.21,1,,https://cloud.google.com/,list\n"
    keep(home, read_prices(file_of(tmp_path, more, "more.csv"), TODAY))
    assert len(imported_files(home)) == 2
    assert len(loaded(home)[1]) == 5


def test_a_damaged_file_stops_no_other(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    keep(home, read_prices(file_of(tmp_path, FACTS), TODAY))
    damaged = home.imported / "0000000000000000.parquet"
    damaged.write_bytes(b"PAR1")
    damages, rows = loaded(home)
    assert [damage.file.path for damage in damages] == [damaged]
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"day": "22.8.2026"}, "its day is not written"),
        ({"day": "2026-11-02"}, "its day is after today"),
        ({"day": "1999-01-01"}, "its day is after today or before 2010"),
        ({"gpu": "A100"}, "the GPU is ambiguous"),
        ({"gpu": "L4 (GPU part only)"}, "the price is of a part of a machine"),
        ({"gpu": "Banana 9"}, "the GPU is unknown"),
        ({"gpu_id": "h100-sxm-81gb"}, "gpu_id is not in the catalogue"),
        ({"provider": ""}, "a cell is empty: provider"),
        ({"source": " "}, "a cell is empty: source"),
        ({"source": "=HYPERLINK(1)"}, "a cell is a spreadsheet's formula: source"),
        ({"price_kind": "marketplace_median"}, "price_kind names no single price"),
        ({"price_kind": "on_demand_gpu_component_only"}, "price_kind names no single price"),
        ({"price_kind": "reserved_1yr", "term_days": "30"}, "price_kind and term_days contradict"),
        ({"term_days": "30"}, "price_kind and term_days contradict"),
        ({"usd_per_gpu_hour": "two"}, "its price is no number"),
        ({"usd_per_gpu_hour": "NaN"}, "its price is no number"),
        ({"usd_per_gpu_hour": "0"}, "no GPU is rented at such a price"),
        ({"usd_per_gpu_hour": "1e30"}, "no GPU is rented at such a price"),
        ({"unit": "per_instance_hour"}, "its unit is not"),
        ({"unit": "per_gpu_month"}, "its unit is not"),
        ({"gpu_count": "1.5"}, "gpu_count is not a whole number"),
        ({"gpu_count": "99999"}, "gpu_count is not a whole number"),
        ({"country": "XX"}, "its country is no code"),
        ({"evidence": "x" * 1001}, "a cell is longer than"),
    ],
)
def test_a_row_that_cannot_be_read_for_sure_is_left_out(
    tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    header, cells = row(**changes).splitlines()
    named = header.split(",")
    sound = {
        "day": "2026-01-01",
        "gpu": "L4",
        "provider": "Acme",
        "price_kind": "spot",
        "usd_per_gpu_hour": "0.3",
        "source": "s",
    }
    other = ",".join(sound.get(name, "") for name in named)
    found = read_prices(file_of(tmp_path, f"{header}\n{other}\n{cells}\n"), TODAY)
    assert [each["gpu_id"] for each in found.rows] == ["l4"]
    ((line, why),) = found.rejects
    assert line == 3
    assert why.startswith(reason)


def test_a_price_of_a_whole_machine_is_shared_by_its_gpus(tmp_path: Path) -> None:
    text = "as_of,gpu_label,provider,price_kind,price_usd_hr,unit,gpu_count,source\n"
    text += "2026-01-01,H200 SXM,Acme,spot_community,16,per_instance_hour,8,list\n"
    (found,) = read_prices(file_of(tmp_path, text), TODAY).rows
    assert (found["usd_per_gpu_hour"], found["price_kind"], found["tier"]) == (2, "spot", "community")


def test_a_file_that_is_none_of_prices_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, why in (
        ("", "lacks the columns day, provider, price_kind, usd_per_gpu_hour, source, gpu or gpu_id"),
        ("day,as_of\n", "more than one column for day: day, as_of"),
        (row(day="soon"), r"nothing of .* can be imported: its day is not written as YYYY-MM-DD \(1\)"),
        (row(gpu="L4\x00"), "nothing of|is not a CSV file"),
    ):
        with pytest.raises(ImportFileError, match=why):
            read_prices(file_of(tmp_path, text), TODAY)
    with pytest.raises(ImportFileError, match="does not exist"):
        read_prices(tmp_path / "none.csv", TODAY)
    (tmp_path / "latin.csv").write_bytes(row(provider="Z\xfcrich").encode("latin-1"))
    with pytest.raises(ImportFileError, match="is not a CSV file in UTF-8"):
        read_prices(tmp_path / "latin.csv", TODAY)
    monkeypatch.setattr(imported, "MAX_FILE_BYTES", 100)
    with pytest.raises(ImportFileError, match="is larger than"):
        read_prices(file_of(tmp_path, FACTS), TODAY)
    monkeypatch.undo()
    monkeypatch.setattr(imported, "MAX_ROWS", 2)
    with pytest.raises(ImportFileError, match="has more than 2 rows"):
        read_prices(file_of(tmp_path, FACTS), TODAY)


def test_the_command_says_what_it_left_out(tmp_path: Path) -> None:
    text = FACTS + "2026-01-01,A100,Acme,on_demand,2,1,,https://acme.example,list\n"
    answer = gpufare("import", str(file_of(tmp_path, text)), home=tmp_path / "home")
    assert answer.returncode == 0, answer.stderr
    assert "facts.csv: 4 prices imported, 1 rows left out" in answer.stdout
    assert "1 x the GPU is ambiguous" in answer.stdout
    assert "line 6: the GPU is ambiguous: A100" in answer.stderr
