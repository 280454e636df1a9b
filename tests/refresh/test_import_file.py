"""gpufare import: a file's prices are archived by day, and published as history only."""

import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.errors import GpufareError
from pipeline.gates.history import moves_at_other_sources
from pipeline.home.paths import Home
from pipeline.questions.job import JobError
from pipeline.questions.prices import _require_prices
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.refresh import import_file as importing
from pipeline.refresh.import_file import ImportReport, import_file
from pipeline.refresh.ingest import read_again
from tests.conftest import gpufare
from tests.scenario import MENDED, Scenario

TODAY = date(2026, 11, 1)
DAY = date(2025, 6, 5)

FACTS = """\
day,gpu,provider,price_kind,usd_per_gpu_hour,gpu_count,country,source,evidence
2020-11-02,A100 SXM 40GB,AWS,on_demand,4.09625,8,US,https://aws.amazon.com/ec2/p4/,p4d.24xlarge at 32.77
2023-07-26,H100 SXM,AWS,on_demand,12.29,8,US,https://aws.amazon.com/ec2/p5/,p5.48xlarge at 98.32
2025-06-05,H100 SXM,AWS,on_demand,6.88,8,US,https://aws.amazon.com/ec2/p5/,55.04 after a cut of 44 %
"""
"""Prices that were public on their day."""
HEADING = "day,gpu,provider,price_kind,usd_per_gpu_hour,source\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def line(price: str, day: date = DAY, provider: str = "Acme", gpu: str = "H100 SXM") -> str:
    return f"{day},{gpu},{provider},on_demand,{price},https://{provider.lower()}.example\n"


def imported(home: Home, text: str, name: str = "facts.csv") -> ImportReport:
    file = home.root.parent / name
    file.write_text(text, encoding="utf-8")
    return import_file(file, home, TODAY)


def prices(home: Home, day: date = DAY) -> list[tuple[str, Decimal | None]]:
    return sorted((each.provider, each.usd_per_gpu_hour) for each in Records(home).offers("imported", day))


def test_each_day_has_its_prices_and_none_can_be_ranked(home: Home) -> None:
    report = imported(home, FACTS)
    days = [date(2020, 11, 2), date(2023, 7, 26), DAY]
    assert [(each.day, each.accepted and each.replayed) for each in report.outcomes] == [
        (day, True) for day in days
    ]
    assert (report.rejects, report.skipped, report.refused, report.new_days) == ([], [], [], 3)
    (offer,) = Records(home).offers("imported", DAY)
    assert (offer.provider, offer.gpu_id, offer.gpu_count) == ("AWS", "h100-sxm-80gb", 8)
    assert (offer.flag_reason, offer.observed_at.date()) == ("imported", DAY)
    (capture,) = Archive(home.archive).captures("imported", DAY)
    (answer,) = Archive(home.archive).answers(capture)
    lines = FACTS.splitlines()
    assert answer.body.decode() == f"line in file,{lines[0]}\n4,{lines[3]}\n"
    assert (answer.url, answer.sha256) == ("file:///facts.csv", offer.capture_sha256)
    with pytest.raises(JobError, match=f"no prices were captured on {DAY}; no day has prices"):
        _require_prices(home, DAY, TODAY)


def test_a_file_imported_again_archives_nothing_and_its_days_are_read_again(home: Home) -> None:
    imported(home, FACTS)
    before, rows = sorted(home.archive.rglob("*")), prices(home)
    file_of(home, Month.of("offers", "imported", DAY)).unlink()
    for name in ("facts.csv", "copy.csv"):
        report = imported(home, FACTS, name)
        assert (report.new_days, len(report.outcomes)) == (0, 3)
    assert (sorted(home.archive.rglob("*")), prices(home)) == (before, rows)
    file_of(home, Month.of("offers", "imported", DAY)).unlink()
    assert (read_again("imported", DAY, home) is not None, prices(home)) == (True, rows)


def test_files_of_one_day_do_not_replace_each_other(home: Home) -> None:
    """Nor does one beside which the day's earlier prices would be lost."""
    imported(home, HEADING + line("2.50"))
    imported(home, HEADING + line("2.60", provider="Other"), "facts.csv")
    report = imported(home, HEADING + line("2.50") + line("2.70", provider="Third"), "third.csv")
    kept = [("Acme", Decimal("2.50")), ("Other", Decimal("2.60")), ("Third", Decimal("2.70"))]
    assert prices(home) == kept
    assert ["it repeats line" in reject for reject in report.rejects] == [True]
    *_, index = sorted(home.archive.rglob("index.json"))
    index.chmod(0o644)
    index.write_text("{")
    with pytest.raises(GpufareError, match=r"imported/2025-06-05/.* is damaged .*: restore it"):
        imported(home, HEADING + line("2.80", provider="Fourth"), "other.csv")
    assert prices(home) == kept


def test_imports_can_be_removed(home: Home) -> None:
    imported(home, HEADING + line("2.50"))
    assert gpufare("import", "--remove-all", home=home).returncode == 0
    records = Records(home)
    assert (records.accepted_days("imported"), records.outcome_days("imported")) == ([], [])
    assert Archive(home.archive).days("imported") == []


def test_rows_without_a_day_that_can_be_read_are_skipped_with_their_line(home: Home) -> None:
    text = HEADING + line("2.50") + "soon,a,b,c,1,d\n" + line("2", TODAY) + ',"\n' + ",,,,,\n"
    assert imported(home, text).skipped == [
        (3, "its day is not YYYY-MM-DD: soon"),
        (4, "its day is not over (UTC): 2026-11-01"),
        (5, "a quote is not closed"),
    ]
    assert prices(home) == [("Acme", Decimal("2.50"))]


def test_prices_are_compared_with_no_other_day_and_with_no_number_of_rows(home: Home) -> None:
    """A source whose prices or number of offers changed so was misread; a file was written so. Nor do they
    confirm the move of a source's price."""
    before = DAY - timedelta(days=1)
    many = "".join(line(f"2.{number:03}", provider=f"P{number}") for number in range(200))
    imported(home, HEADING + line("2.50", before) + line("11.00", before, "Other"))
    report = imported(home, HEADING + line("11.00") + line("0.02", provider="Other") + many, "next.csv")
    assert (report.rejects, len(prices(home, before)), len(prices(home))) == ([], 2, 202)
    moves = moves_at_other_sources(Records(home), "runpod", DAY)
    assert moves("h100-sxm-80gb", "on_demand", before) == []


def test_a_file_that_is_none_of_prices_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_ROWS", 2)
    assert len(imported(home, HEADING + line("2", TODAY) * 2).skipped) == 2
    for text, words in (
        ("", "lacks the columns day, provider"),
        ("day,as_of\n", "more than one column for day"),
        (HEADING + line("2") * 3, "has more than 2 rows: divide it"),
    ):
        with pytest.raises(GpufareError, match=words):
            imported(home, text)
    assert not home.archive.exists()


def test_command_reports_skipped_rows(home: Home) -> None:
    file = home.root.parent / "facts.csv"
    file.write_text(FACTS + "2026-01-01,A100,Acme,on_demand,two,1,,https://acme.example,list\n")
    answer = gpufare("import", str(file), home=home)
    assert "facts.csv: 4 days, 4 with new prices; 3 prices of these days are on record" in answer.stdout
    assert "line 5 of file:///facts.csv: its price: 'two' is not a number" in " ".join(answer.stderr.split())


def test_the_query_of_the_page_answers(scenario: Scenario) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "import.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    imported, *captured = scenario.rows(MENDED, query)
    assert imported == (DAY, "imported", "AWS", None, Decimal("6.88000000"))
    assert len(captured) > 10
