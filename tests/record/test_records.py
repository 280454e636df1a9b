"""The record on disk: what is written is read again, byte for byte and by the day that is asked for."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipeline.contracts.offer import RejectedRow
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.months import SourceDay
from pipeline.record.records import Records
from pipeline.warehouse.database import prepare
from pipeline.warehouse.load_record import load_days
from tests.offers.builders import CAPTURED, config, listing, offer

DAY = date(2026, 8, 22)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(Home(tmp_path))


def test_offers_come_back_as_they_were(records: Records) -> None:
    kept = [
        offer("2.00"),
        offer("1.5", region="Zürich", term_days=30, effective_from=DAY, fx_rate=Decimal("1.17"), fx_date=DAY),
    ]
    records.write_accepted(DAY, "acme", kept)
    assert records.offers("acme", DAY) == kept
    records.write_accepted(DAY, "acme", kept[:1])
    assert records.offers("acme", DAY) == kept[:1]


def test_kept_rankings_load_as_far_as_they_are_published(tmp_path: Path) -> None:
    home = Home(tmp_path)
    row = (
        "x",
        "on_demand",
        "cost",
        1,
        "rtx-4090",
        1,
        1,
        "lambda",
        "Lambda",
        None,
        None,
        Decimal(2),
        Decimal(1),
    )
    kept = [("llama-3.1-8b-lora-100m", *row[1:3], rank, *row[4:]) for rank in range(1, 8)]
    Records(home).write_ranking(DAY, kept)
    with duckdb.connect() as connection:
        prepare(connection, "ranking_history", "workloads")
        for scenario, ranks in ((True, 5), (False, 1)):
            connection.execute("UPDATE main.workloads SET scenario = ?", [scenario])
            connection.execute("DELETE FROM main.ranking_history")
            assert load_days(connection, home, "rankings", [SourceDay("", DAY)]) == []
            loaded = connection.execute("SELECT day, rank FROM main.ranking_history").fetchall()
            assert loaded == [(DAY, rank) for rank in range(1, ranks + 1)]


def test_exchange_rates_come_back_as_they_were(records: Records) -> None:
    rows = [{"day": DAY, "currency": "EUR", "usd_per_unit": Decimal("1.17"), "rate_date": DAY}]
    records.write_exchange_rates(DAY, rows)
    assert records.exchange_rates(DAY) == [
        {"day": f"{DAY}", "currency": "EUR", "usd_per_unit": "1.17", "rate_date": f"{DAY}"}
    ]
    assert records.exchange_rates(DAY - timedelta(days=1)) == []
    assert (records.rate_days(), records.usd_rates(DAY)["EUR"].usd) == ([DAY], Decimal("1.17"))


def test_the_last_accepted_day_is_the_newest_before_the_day_asked_for(records: Records) -> None:
    assert records.last_accepted("acme", before=DAY) is None
    for age, price in ((0, "1.00"), (1, "2.00"), (5, "3.00"), (9, "4.00")):
        records.write_accepted(DAY - timedelta(days=age), "acme", [offer(price)])
    assert records.last_accepted("acme", before=DAY) == (DAY - timedelta(days=1), [offer("2.00")])
    assert records.last_accepted("acme", before=DAY - timedelta(days=1)) == (
        DAY - timedelta(days=5),
        [offer("3.00")],
    )
    assert records.last_accepted("acme", before=DAY - timedelta(days=9)) is None
    assert records.last_accepted("other", before=DAY) is None


def test_rejects_keep_their_row(records: Records) -> None:
    raw = {"label": "H100 für 2 €", "price": Decimal("0.5"), "day": DAY, "cells": [1, None]}
    rejects = [
        RejectedRow(
            source="acme",
            reason=RejectReason.ZERO_PRICE,
            detail="0 €",
            raw=raw,
            observed_at=CAPTURED.observed_at,
            source_url=CAPTURED.url,
            capture_sha256=CAPTURED.sha256,
        )
    ]
    records.write_rejects(DAY, "acme", rejects)
    (row,) = records.rejects("acme", DAY)
    assert row["raw"] == {"label": "H100 für 2 €", "price": "0.5", "day": "2026-08-22", "cells": [1, None]}
    assert (row["reason"], row["detail"], row["source"]) == ("zero_price", "0 €", "acme")
    assert records.rejected_days("acme") == [DAY]
    assert records.rejects("acme", DAY + timedelta(days=1)) == []


def test_an_outcome_keeps_its_warnings_in_one_text(records: Records) -> None:
    morning, noon = "20260822T060000.000000Z", "20260822T120000.000000Z"
    outcome = Outcome(
        day=DAY,
        source="acme",
        attempt=morning,
        status="captured",
        result=SourceResult.FRESH,
        accepted=True,
        reason=None,
        warnings=("one – ä", "two"),
    )
    records.write_outcome(outcome)
    (stored,) = records.outcomes("acme", DAY)
    assert (stored["warnings"], stored["day"], stored["accepted"]) == ("one – ä; two", "2026-08-22", True)
    later = replace(outcome, attempt=noon, status="failed", accepted=False, reason="none")
    records.write_outcome(later)
    assert [row["attempt"] for row in records.outcomes("acme", DAY)] == [morning, noon]
    assert (records.outcome("acme", DAY) or {})["attempt"] == noon
    assert records.outcome("acme", DAY + timedelta(days=1)) is None
    assert records.outcome_days("acme") == records.outcome_days() == [DAY]
    assert records.outcome_days("other") == []


def test_a_listing_that_becomes_no_offer_is_kept_with_its_price() -> None:
    (reject,) = build_offers([listing("2.00", gpu_count=0)], config()).rejects
    assert reject.raw["native_price"] == "2.00"
    assert reject.raw["native_currency"] == "USD"
    assert reject.raw["raw_label"] == "H100 SXM"
