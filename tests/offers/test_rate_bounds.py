"""The bounds of a jump and of the age of exchange rates, through the daily job."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.refresh import refresh

DAY = date(2026, 8, 22)

PAGE = """<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
 xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref"><Cube><Cube time="{day}">
<Cube currency="USD" rate="{usd}"/></Cube></Cube></gesmes:Envelope>"""


def read_rates(tmp_path: Path, day: date, usd: str, rate_date: date | None = None) -> dict[str, Any]:
    """Let the daily job read one page of the ECB and return the outcome."""
    pages = tmp_path / f"pages-{day}"
    (pages / "ecb").mkdir(parents=True)
    (pages / "ecb" / "eurofxref-daily.xml").write_text(PAGE.format(day=rate_date or day, usd=usd))
    home = Home(tmp_path / "home")
    refresh(home, day=day, sources=["ecb"], pages=str(pages), environment={})
    return Records(home).outcome("ecb", day) or {}


@pytest.mark.parametrize(
    ("now", "accepted"), [("1.5", True), ("1.5001", False), ("0.9", True), ("0.8999", False)]
)
def test_a_rate_may_move_by_exactly_a_quarter(tmp_path: Path, now: str, accepted: bool) -> None:
    assert read_rates(tmp_path, DAY, "1.2")["accepted"]
    tomorrow = DAY + timedelta(days=1)
    assert read_rates(tmp_path, tomorrow, now)["accepted"] is accepted
    euro = Records(Home(tmp_path / "home")).usd_rates(tomorrow)["EUR"]
    assert euro.usd == Decimal(now if accepted else "1.2")


@pytest.mark.parametrize(("days_later", "accepted"), [(8, False), (9, True)])
def test_rates_older_than_a_week_are_not_compared(tmp_path: Path, days_later: int, accepted: bool) -> None:
    read_rates(tmp_path, DAY, "0.9")
    assert read_rates(tmp_path, DAY + timedelta(days=days_later), "1.5")["accepted"] is accepted


@pytest.mark.parametrize(("age_days", "warned"), [(7, False), (8, True)])
def test_rates_published_more_than_a_week_ago_are_read_with_a_warning(
    tmp_path: Path, age_days: int, warned: bool
) -> None:
    outcome = read_rates(tmp_path, DAY, "1.2", rate_date=DAY - timedelta(days=age_days))
    assert outcome["accepted"]
    assert bool(outcome["warnings"]) is warned
