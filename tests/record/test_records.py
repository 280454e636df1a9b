"""The record on disk: what is written is read again, byte for byte and by the day that is asked for."""

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.rates import Rate
from pipeline.home.paths import Home
from pipeline.record.damage import RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import SourceDay
from pipeline.record.records import MAX_RATE_AGE_DAYS, Records, outcome_row, rate_rows
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.load_record import load_days
from tests.offers.builders import offer
from tests.record.builders import outcome, recorded, reject

DAY = date(2026, 8, 22)
BEFORE, AFTER = DAY - timedelta(days=1), DAY + timedelta(days=1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def records(home: Home) -> Records:
    return Records(home)


def test_offers_come_back_as_they_were(records: Records) -> None:
    kept = [
        offer("2.00", gpu_counts=(1, 2, 4)),
        offer("1.5", region="Zürich", term_days=30, effective_from=DAY, fx_rate=Decimal("1.17"), fx_date=DAY),
    ]
    for each in (kept, kept[:1]):
        records.write_accepted(DAY, "acme", each)
        assert records.offers("acme", DAY) == each
    assert (records.is_accepted("acme", DAY), records.is_accepted("acme", AFTER)) == (True, False)
    with pytest.raises(FileNotFoundError, match=r"offers/acme/2026-08\.parquet has no 2026-08-23"):
        records.offers("acme", AFTER)


def test_the_days_with_anything_but_incidents(home: Home, records: Records) -> None:
    for source, day in (("acme", BEFORE), ("other", DAY), ("ecb", AFTER)):
        recorded(home, source, day)
    Journal(home).write("incident", "", date(2026, 1, 1), "x", "{}")
    assert records.recorded_days() == {BEFORE, DAY, AFTER}
    assert (records.outcome_days(), records.rate_days()) == ([BEFORE, DAY, AFTER], [AFTER])
    assert (records.days_with_offers(), records.days_with_offers("acme")) == ({BEFORE, DAY}, {BEFORE})
    (home.record / "offers" / "other" / "2026-08.parquet").write_bytes(b"")
    assert records.days_with_offers() == {BEFORE}
    records.remove("acme")
    gone = [records.accepted_days("acme"), records.rejected_days("acme"), records.outcomes("acme")]
    assert gone == [[], [], []]
    assert records.outcome_days("other") == [DAY]


def test_rejects_keep_their_row(records: Records) -> None:
    raw = {"label": "H100 für 2 €", "price": Decimal("0.5"), "day": DAY, "cells": [1, None]}
    row = reject(raw=raw)
    records.write_rejects(DAY, "acme", [row])
    kept = raw | {"price": "0.5", "day": "2026-08-22"}
    assert records.rejects("acme", DAY) == [row.model_dump() | {"raw": kept}]
    assert (records.rejected_days("acme"), records.rejects("acme", AFTER)) == ([DAY], [])


def test_an_outcome_keeps_its_warnings_in_one_text(home: Home, records: Records) -> None:
    first = outcome(DAY, rows=3, warnings=("one – ä", "two"))
    later = replace(outcome(DAY, hour=12, accepted=False), error="none")
    for each in (first, later):
        records.write_outcome(each)
    stored, newest = records.outcomes("acme", DAY)
    facts = {name: getattr(first, name) for name in stored}
    assert stored == facts | {"day": "2026-08-22", "warnings": "one – ä; two"}
    assert (newest["attempt"], newest["warnings"]) == (later.attempt, None)
    assert records.outcome("acme", DAY) == newest
    assert records.outcome("acme", AFTER) is None
    assert records.outcomes("acme") == [stored, newest]
    assert (records.outcome_days("acme"), records.outcome_days("other")) == ([DAY], [])


def test_an_outcome_or_rates_of_another_entry_are_refused(home: Home, records: Records) -> None:
    records.write_outcome(outcome(DAY))
    records.write_exchange_rates(DAY, [rate()])
    (entry,), (rates,) = Journal(home).entries("outcome"), Journal(home).entries("exchange_rates")
    for change in ({"source": "other"}, {"day": AFTER}, {"name": "later"}):
        with pytest.raises(ValueError, match=r"^the outcome of .* is another attempt's$"):
            outcome_row(entry._replace(**change))
    with pytest.raises(ValueError, match="the exchange rates of 2026-08-23 are of 2026-08-22"):
        rate_rows(rates._replace(day=AFTER))
    with pytest.raises(ValueError, match="the exchange rates of 2026-08-22 give a currency two rates"):
        rate_rows(rates._replace(content=json.dumps(json.loads(rates.content) * 2)))
    Journal(home).write_all([entry._replace(name="later"), rates._replace(day=AFTER)])
    for read in (lambda: records.outcomes("acme"), lambda: records.exchange_rates(AFTER)):
        with pytest.raises(RecordError, match=r"journal\.sqlite is damaged \(the ") as raised:
            read()
        assert (raised.value.damage.table, raised.value.damage.source) == ("journal", "")


def rate(currency: str = "EUR", usd: str = "1.17") -> dict[str, Any]:
    return {"day": DAY, "currency": currency, "usd_per_unit": Decimal(usd), "rate_date": BEFORE}


def test_exchange_rates_come_back_as_they_were_and_are_used_for_a_week(records: Records) -> None:
    assert records.usd_rates(DAY) == {}
    records.write_exchange_rates(DAY, [rate(), rate("GBP", "1.3")])
    stored = {"day": f"{DAY}", "currency": "EUR", "usd_per_unit": "1.17", "rate_date": f"{BEFORE}"}
    assert records.exchange_rates(DAY)[0] == stored
    assert records.exchange_rates(BEFORE) == []
    rates = {"EUR": Rate(Decimal("1.17"), BEFORE), "GBP": Rate(Decimal("1.3"), BEFORE)}
    used = {-1: {}, 0: rates, 7: rates, 8: {}}
    assert {age: records.usd_rates(DAY + timedelta(days=age)) for age in used} == used
    assert MAX_RATE_AGE_DAYS == 7
    records.write_exchange_rates(AFTER, [rate() | {"day": AFTER, "usd_per_unit": "1.2"}])
    assert records.usd_rates(AFTER) == {"EUR": Rate(Decimal("1.2"), BEFORE)}


def test_kept_rankings_load_as_far_as_they_are_published(home: Home) -> None:
    row = ("on_demand", "cost", 1, "rtx-4090", 1, 1, "lambda", "Lambda", None, None, Decimal(2), Decimal(1))
    kept = [("llama-3.1-8b-lora-100m", *row[:2], rank, *row[3:]) for rank in range(1, 8)]
    Records(home).write_ranking(DAY, kept)
    with in_memory("ranking_history", "workloads") as connection:
        for scenario, ranks in ((True, 5), (False, 1)):
            connection.execute("UPDATE main.workloads SET scenario = ?", [scenario])
            connection.execute("DELETE FROM main.ranking_history")
            assert load_days(connection, home, "rankings", [SourceDay("", DAY)]) == []
            loaded = connection.execute("SELECT day, rank FROM main.ranking_history").fetchall()
            assert loaded == [(DAY, rank) for rank in range(1, ranks + 1)]
