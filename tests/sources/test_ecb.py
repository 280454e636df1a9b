from datetime import date
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.sources.ecb import read, read_rates
from tests.sources.helpers import answer, page


@pytest.fixture
def config():
    return source_config("ecb")


@pytest.fixture
def xml():
    return page("ecb", "eurofxref-daily.xml")


def test_the_day_and_its_rates(xml, config):
    rates = read_rates([answer(xml)], config)
    assert rates.date == date(2026, 8, 21)
    assert rates.usd_per_unit == {
        "EUR": Decimal("1.1699"),
        "USD": 1,
        "JPY": Decimal("1.1699") / Decimal("171.25"),
        "GBP": Decimal("1.1699") / Decimal("0.8641"),
        "INR": Decimal("1.1699") / Decimal("102.448"),
    }


def test_space_around_a_rate_is_not_part_of_it(xml, config):
    spaced = read_rates([answer(xml.replace("0.86410", " 0.8641\n"))], config)
    assert spaced.usd_per_unit["GBP"] == Decimal("1.1699") / Decimal("0.8641")


def test_the_latest_of_several_days_is_read(xml, config):
    older = xml.replace("2026-08-21", "2026-08-20").replace("1.1699", "1.1600")
    assert read_rates([answer(xml), answer(older)], config).usd_per_unit["EUR"] == Decimal("1.1699")
    history = xml.replace(
        "<Cube time=", "<Cube time='2026-08-19'><Cube currency='USD' rate='1.15'/></Cube><Cube time=", 1
    )
    assert read_rates([answer(history)], config).date == date(2026, 8, 21)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.1699", "0"),
        ("1.1699", "-1.1699"),
        ("1.1699", "1,1699"),
        ("1.1699", "1.1699²"),
        ("1.1699", "1.1699*"),
        ("102.4480", "102.4480e3"),
        ("102.4480", "１０２.4480"),
        ("102.4480", ""),
        ("rate='102.4480'", ""),
        ("1.1699", "11699"),
        ("1.1699", "N/A"),
        ("currency='USD'", "currency='JPY'"),
        ("currency='USD'", "code='USD'"),
        ("time='2026-08-21'", "time='21 August'"),
        ("time='2026-08-21'", ""),
        ("</gesmes:Envelope>", ""),
    ],
)
def test_uncertain_rates_fail(xml, config, old, new):
    with pytest.raises(SourceChangedError):
        read_rates([answer(xml.replace(old, new))], config)


@pytest.mark.parametrize("body", ["", "{}", "<html><body>moved</body></html>"])
def test_another_file_fails(config, body):
    with pytest.raises(SourceChangedError):
        read_rates([answer(body)], config)


def test_no_answer_fails(config):
    with pytest.raises(SourceChangedError):
        read_rates([], config)


def test_an_entity_is_not_expanded(xml, config):
    hostile = xml.replace("?>", '?><!DOCTYPE x [<!ENTITY rate SYSTEM "file:///etc/hostname">]>', 1)
    hostile = hostile.replace("<gesmes:subject>Reference rates", "<gesmes:subject>&rate;")
    assert read_rates([answer(hostile)], config).usd_per_unit["EUR"] == Decimal("1.1699")


def test_it_reports_having_no_offers(xml, config):
    with pytest.raises(SourceChangedError, match="exchange rates, not offers"):
        list(read([answer(xml)], config))
