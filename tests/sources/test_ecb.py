"""The ECB's rates: their day, units of each currency per euro, and files in doubt."""

from datetime import date
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.rates import ExchangeRates
from pipeline.sources.ecb import read, read_rates
from tests.sources.helpers import answer, page

CONFIG = source_config("ecb")
XML = page("ecb", "eurofxref-daily.xml")


def rates(*texts: str) -> ExchangeRates:
    return read_rates([answer(text) for text in texts], CONFIG)


def test_the_day_and_its_rates() -> None:
    usd = Decimal("1.1699")
    per_euro = {"USD": usd, "JPY": Decimal("171.25"), "GBP": Decimal("0.8641"), "INR": Decimal("102.448")}
    found = rates(XML.replace("0.86410", " 0.8641\n"))
    assert found.date == date(2026, 8, 21)
    assert found.usd_per_unit == {"EUR": usd} | {name: usd / rate for name, rate in per_euro.items()}


def test_the_latest_of_several_days_is_read() -> None:
    older = XML.replace("2026-08-21", "2026-08-20").replace("1.1699", "1.1600")
    assert rates(XML, older).usd_per_unit["EUR"] == rates(older, XML).usd_per_unit["EUR"] == Decimal("1.1699")
    day = "<Cube time='2026-08-19'><Cube currency='USD' rate='1.15'/></Cube>"
    assert rates(XML.replace("<Cube time=", f"{day}<Cube time=", 1)).date == date(2026, 8, 21)


def test_a_file_in_doubt_is_refused() -> None:
    bounds = " dollars per euro on 2026-08-21, expected between "
    changes = {
        "is not a rate": [
            *[("1.1699", rate) for rate in ("-1.1699", "1,1699", "1.1699²", "1.1699*", "N/A", "1234567890")],
            *[("102.4480", rate) for rate in ("102.4480e3", "１０２.4480", "", "1.", "102.4480123456")],
            ("rate='102.4480'", ""),
        ],
        "a currency is listed twice, or lacks a code or a rate above 0": [
            *[("1.1699", "0"), ("currency='USD'", "currency='JPY'"), ("currency='USD'", "code='USD'")],
            *[("currency='INR'", "currency='INRX'"), ("currency='INR'", "currency='inr'")],
        ],
        f"None{bounds}": [("currency='USD'", "currency='SEK'")],
        f"11699{bounds}": [("1.1699", "11699")],
        "a day or rate cannot be read": [("time='2026-08-21'", "time='21 August'")],
        "no Cube with a time": [("time='2026-08-21'", "")],
        "the answer is not XML": [("</gesmes:Envelope>", "")],
    }
    believed = []
    for problem, edits in changes.items():
        for old, new in edits:
            assert old in XML
            try:
                believed.append((old, new, rates(XML.replace(old, new)).date))
            except SourceChangedError as error:
                if problem not in str(error):
                    believed.append((old, new, str(error)))
    assert believed == []


def test_the_bounds_of_a_dollar_rate_belong_to_it() -> None:
    low, high = CONFIG.settings["usd_per_eur"]
    for bound in (low, high):
        assert rates(XML.replace("1.1699", str(bound))).usd_per_unit["EUR"] == Decimal(str(bound))
    for beyond in (Decimal(str(low)) - Decimal("0.0001"), Decimal(str(high)) + Decimal("0.0001")):
        with pytest.raises(SourceChangedError, match="dollars per euro"):
            rates(XML.replace("1.1699", str(beyond)))


def test_without_an_answer_or_as_offers_there_are_no_rates() -> None:
    with pytest.raises(SourceChangedError, match="gave no answer"):
        rates()
    with pytest.raises(SourceChangedError, match="exchange rates, not offers"):
        list(read([answer(XML)], CONFIG))


def test_an_entity_is_not_expanded() -> None:
    declared = """?><!DOCTYPE x [<!ENTITY rate "<Cube currency='SEK' rate='11'/>">]>"""
    hostile = XML.replace("?>", declared, 1).replace("<Cube currency='USD'", "&rate;<Cube currency='USD'", 1)
    assert "&rate;" in hostile
    assert rates(hostile).usd_per_unit == rates(XML).usd_per_unit
