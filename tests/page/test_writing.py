"""Writing the report: the command, the asset, numbers as they are shown, and what goes wrong."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from pipeline.contracts.amounts import amount_in
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.tables import report
from pipeline.page.facts import tokens_text
from pipeline.page.queries import cents, digits, dollars_per_hour, exact, outward, plain, tenths_of_percent
from pipeline.page.write import write_report
from tests.conftest import gpufare


def test_the_command_replaces_a_former_page(few_jobs: Home, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("the page of before")
    (folder / "notes.txt").write_text("mine")
    answer = gpufare("report", str(folder), home=few_jobs)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith(f"{folder / 'index.html'}: ")
    assert "published as of 2026-08-22" in answer.stderr
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<!-- data -->" not in page
    assert {path.name for path in folder.iterdir()} == {"index.html", "notes.txt"}


def test_without_a_published_file_it_names_the_command_to_run(tmp_path: Path) -> None:
    answer = gpufare("report", str(tmp_path / "report"), home=tmp_path / "home")
    assert answer.returncode == 1
    assert "run `gpufare refresh` first" in answer.stderr
    assert not (tmp_path / "report").exists()


def test_a_folder_that_is_a_file_is_named(few_jobs: Home, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    answer = gpufare("report", str(tmp_path / "report"), home=few_jobs)
    assert answer.returncode == 2
    assert "is a file" in answer.stderr


def test_the_asset_writes_into_the_home(few_jobs: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(few_jobs.root))
    result = dg.materialize([report], resources={"home": GpufareHome()})
    assert result.success
    assert (few_jobs.report / "index.html").stat().st_size > 50_000


def test_the_asset_fails_alone(few_jobs: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that an earlier version published has no such macros: the failure is seen, the file stays."""
    home = Home(tmp_path / "home")
    home.published.parent.mkdir(parents=True)
    with duckdb.connect(str(home.published)) as connection:
        connection.execute("CREATE TABLE publication AS SELECT DATE '2026-08-22' AS as_of_day")
    before = home.published.read_bytes()
    home.report.mkdir()
    (home.report / "index.html").write_text("the page of before")
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    with pytest.raises(GpufareError, match="run `gpufare refresh`"):
        write_report(home, tmp_path, datetime.now(UTC))
    result = dg.materialize([report], resources={"home": GpufareHome()}, raise_on_error=False)
    assert not result.success
    assert home.published.read_bytes() == before
    assert [path.read_text() for path in home.report.iterdir()] == ["the page of before"]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (1e8, "100M"),
        (1.5e6, "1.5M"),
        (1e11, "100B"),
        (160e9, "160B"),
        (123_456_789, "123456789"),
        (1_234_567, "1234567"),
        (1_234_567_000, "1234.567M"),
        (500, "500"),
    ],
)
def test_tokens_are_written_exactly(tokens: float, text: str) -> None:
    assert tokens_text(tokens) == text
    assert amount_in(text) == tokens
    assert exact(tokens) == plain(tokens) == tokens


@pytest.mark.parametrize(
    ("probability", "tenths"),
    [(1.0, 1000), (0.9996, 995), (0.99, 990), (0.8999, 890), (0.9, 900), (0.004, 5), (0.0, 0)],
)
def test_probabilities_are_rounded_down(probability: float, tenths: int) -> None:
    assert tenths_of_percent(probability) == tenths


def test_money_is_rounded_as_shown() -> None:
    assert [cents(Decimal(usd)) for usd in ("2.345", "999.994", "1234.5", "0.004")] == [235, 99999, 123500, 0]
    assert [dollars_per_hour(Decimal(usd)) for usd in ("0.3985", "1.005", "12")] == [0.399, 1.01, 12.0]
    assert digits(1234.5) == 1230
    assert digits(0.04567) == 0.0457


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        ("1.29", "1.91", (1.2, 2)),
        ("126", "133", (120, 140)),
        ("0.0791", "0.0896", (0.07, 0.09)),
        ("0", "1", (0, 1)),
    ],
)
def test_a_band_is_rounded_outward(low: str, high: str, shown: tuple[float, float]) -> None:
    assert outward(Decimal(low), Decimal(high)) == shown
