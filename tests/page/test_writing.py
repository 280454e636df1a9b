"""Writing the report: numbers as they are shown, and what goes wrong."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipeline.contracts.amounts import amount_in
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.page.facts import tokens_text
from pipeline.page.queries import cents, digits, dollars_per_hour, exact, outward, plain, tenths_of_percent
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


def test_tokens_are_written_exactly() -> None:
    texts = {
        1e8: "100M", 1.5e6: "1.5M", 1e11: "100B", 160e9: "160B", 123_456_789: "123456789",
        1_234_567: "1234567", 1_234_567_000: "1234.567M", 500: "500",
    }  # fmt: skip
    for tokens, text in texts.items():
        assert tokens_text(tokens) == text
        assert amount_in(text) == tokens
        assert exact(tokens) == plain(tokens) == tokens


def test_numbers_are_rounded_as_shown() -> None:
    """Probabilities down, money to the cent or, from a thousand on, to the dollar, bands outward."""
    tenths = {1.0: 1000, 0.9996: 995, 0.99: 990, 0.8999: 890, 0.9: 900, 0.01: 10, 0.004: 5, 0.0: 0}
    assert {probability: tenths_of_percent(probability) for probability in tenths} == tenths
    usd = ("2.345", "999.994", "1000.5", "1234.5", "0.004")
    assert [cents(Decimal(each)) for each in usd] == [235, 99999, 100100, 123500, 0]
    assert [dollars_per_hour(Decimal(usd)) for usd in ("0.3985", "1", "1.005", "12")] == [0.399, 1, 1.01, 12]
    assert [digits(1234.5), digits(0.04567), plain(Decimal("0.12345678"))] == [1230, 0.0457, 0.123457]
    bands = {
        ("1.29", "1.91"): (1.2, 2), ("126", "133"): (120, 140), ("0.0791", "0.0896"): (0.07, 0.09),
        ("0", "1"): (0, 1),
    }  # fmt: skip
    assert {(low, high): outward(Decimal(low), Decimal(high)) for low, high in bands} == bands
