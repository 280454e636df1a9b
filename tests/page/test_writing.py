"""Writing the report: the numbers of its arrays, and what goes wrong."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.page.plans import speed_number
from pipeline.page.queries import exact, plain, tenths_of_percent
from pipeline.page.write import write_report


def test_a_file_of_an_earlier_version_is_named_and_the_former_page_stays(tmp_path: Path) -> None:
    """It has no such macros."""
    home = Home(tmp_path / "home")
    home.published.parent.mkdir(parents=True)
    with duckdb.connect(str(home.published)) as connection:
        connection.execute("CREATE TABLE publication AS SELECT DATE '2026-08-22' AS as_of_day")
    before = home.published.read_bytes()
    home.report.mkdir()
    (home.report / "index.html").write_text("the page of before")
    with pytest.raises(GpufareError, match="is of another version of gpufare: run `gpufare refresh`"):
        write_report(home, home.report, datetime.now(UTC))
    assert home.published.read_bytes() == before
    assert [path.read_text() for path in home.report.iterdir()] == ["the page of before"]


def test_numbers_are_rounded_as_shown() -> None:
    """Probabilities down; what is computed with, not at all."""
    tenths = {1.0: 1000, 0.9996: 995, 0.99: 990, 0.8999: 890, 0.9: 900, 0.01: 10, 0.004: 5, 0.0: 0}
    assert {probability: tenths_of_percent(probability) for probability in tenths} == tenths
    assert [exact(Decimal("0.12345678")), plain(Decimal("0.12345678"))] == [0.12345678, 0.123457]


def test_speeds_of_five_digits_are_numbered_without_gaps() -> None:
    rising = ("1.0000", "1.0001", "9.9999", "10.000", "10.001", "99999", "100000", "100010", "1234500")
    numbers = [speed_number(float(speed)) for speed in rising]
    assert [b - a for a, b in pairwise(numbers)][:4] == [1, 89998, 1, 1]
    assert numbers == sorted(set(numbers))
    assert speed_number(99999.6) == speed_number(100000)
    with pytest.raises(GpufareError, match="too low for the page"):
        speed_number(9e-7)
