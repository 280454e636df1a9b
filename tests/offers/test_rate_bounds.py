"""The bounds of exchange rates, through a refresh."""

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


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def read_rates(home: Home, usd: str, day: date = DAY, rate_date: date | None = None) -> dict[str, Any]:
    """Refresh one page of the ECB and return the outcome."""
    page = home.root.parent / f"pages-{day}" / "ecb" / "eurofxref-daily.xml"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(PAGE.format(day=rate_date or day, usd=usd))
    refresh(home, day=day, sources=["ecb"], pages=str(page.parents[1]), environment={})
    return Records(home).outcome("ecb", day) or {}


def test_a_rate_may_move_by_exactly_a_quarter(home: Home) -> None:
    """Up and down, within a week."""
    read_rates(home, "1.2")
    moves = {"1.5001": False, "0.8999": False, "1.5": True}
    found = {}
    for number, now in enumerate(moves, start=1):
        day = DAY + timedelta(days=number)
        found[now] = read_rates(home, now, day)["accepted"]
        assert Records(home).usd_rates(day)["EUR"].usd == Decimal(now if found[now] else "1.2")
    assert found == moves
    assert read_rates(home, "0.9", DAY + timedelta(days=11))["accepted"] is False
    assert read_rates(home, "0.9", DAY + timedelta(days=12))["accepted"] is True


def test_rates_published_more_than_a_week_ago_are_read_with_a_warning(home: Home) -> None:
    for number, (age_days, warned) in enumerate(((7, False), (8, True))):
        day = DAY + timedelta(days=number)
        outcome = read_rates(home, "1.2", day, rate_date=day - timedelta(days=age_days))
        assert (outcome["accepted"], bool(outcome["warnings"])) == (True, warned)
