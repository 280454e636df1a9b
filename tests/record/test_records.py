"""The record on disk: what is written is read again, byte for byte and by the day that is asked for."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipeline.contracts.listing import PriceKind
from pipeline.contracts.offer import RejectedRow
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.contracts.tiers import TierClass
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.record_files import record_files
from pipeline.record.records import RecordError, Records
from pipeline.warehouse.database import create, prepare
from pipeline.warehouse.load import load_newest
from pipeline.warehouse.rankings import insert_rankings
from tests.offers.builders import CAPTURED, config, listing, offer

DAY = date(2026, 8, 22)
MOMENT = datetime(2026, 8, 22, 6, tzinfo=UTC)


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


@pytest.mark.parametrize(
    ("source", "tier", "kind", "expected"),
    [
        ("aws", None, "on_demand", "dedicated"),
        ("runpod", "secure", "spot", "dedicated"),
        ("runpod", "community", "spot", "community"),
        ("vast", "marketplace_verified", "on_demand", "marketplace"),
        ("vast", None, "on_demand", "marketplace"),
        ("salad", "batch", "spot", "community"),
        ("modal", "any_region", "serverless", "serverless"),
        ("verda", "serverless", "spot", "serverless"),
        ("replicate", "committed_spend", "reserved", "serverless"),
    ],
)
def test_records_of_earlier_versions_have_a_tier_class_and_no_country(
    tmp_path: Path, source: str, tier: str | None, kind: PriceKind, expected: TierClass
) -> None:
    """Read again in Python and loaded by SQL, which has the rule a second time."""
    home = Home(tmp_path)
    records = Records(home)
    records.write_accepted(
        DAY, source, [offer(source=source, tier=tier, price_kind=kind, tier_class=expected)]
    )
    (file,) = record_files(home, "offers")
    pl.read_parquet(file.path).drop("tier_class", "country", "continent").write_parquet(file.path)

    (again,) = records.offers(source, DAY)
    with duckdb.connect() as connection:
        create(connection, "offers", "capture_outcomes", "exchange_rates")
        assert load_newest(connection, home, DAY) == []
        loaded = connection.execute("SELECT tier_class, country, continent FROM main.offers").fetchall()

    assert loaded == [(again.tier_class, again.country, again.continent)] == [(expected, None, None)]


def test_whole_rankings_of_earlier_versions_load_as_far_as_they_are_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.rankings.mkdir(parents=True)
    with duckdb.connect() as connection:
        prepare(connection, "cheapest_gpu_per_workload", "ranking_history", "workloads")
        columns = connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns()"
            " WHERE table_name = 'cheapest_gpu_per_workload' AND column_name <> 'price_age_days'"
        ).fetchall()
        row = {name: {"VARCHAR": "x", "DATE": DAY}.get(data_type, 1) for name, data_type in columns}
        row |= {"objective": "cost", "price_kind": "on_demand", "workload": "llama-3.1-8b-lora-100m"}
        ranked = [row | {"rank": rank} for rank in range(1, 8)]
        pl.DataFrame(ranked).write_parquet(home.rankings / f"{DAY}.parquet")
        for scenario, kept in ((True, 5), (False, 1)):
            connection.execute("UPDATE main.workloads SET scenario = ?", [scenario])
            connection.execute("DELETE FROM main.ranking_history")
            insert_rankings(connection, record_files(home, "rankings"))
            loaded = connection.execute("SELECT day, rank FROM main.ranking_history").fetchall()
            assert loaded == [(DAY, rank) for rank in range(1, kept + 1)]


def test_serverless_spot_of_earlier_versions_is_spot(tmp_path: Path) -> None:
    """By both readers of records, so that the day after is compared with the same offer."""
    home = Home(tmp_path)
    records = Records(home)
    old = offer(source="verda", tier="spot", price_kind="serverless", tier_class="serverless")
    records.write_accepted(DAY, "verda", [old])
    (again,) = records.offers("verda", DAY)
    with duckdb.connect() as connection:
        create(connection, "offers", "capture_outcomes", "exchange_rates")
        assert load_newest(connection, home, DAY) == []
        loaded = connection.execute("SELECT price_kind, tier, tier_class FROM main.offers").fetchall()
    assert (
        loaded == [(again.price_kind, again.tier, again.tier_class)] == [("spot", "serverless", "serverless")]
    )


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


def test_an_outcome_keeps_its_warnings_in_one_text(records: Records, tmp_path: Path) -> None:
    morning, noon = "20260822T060000.000000Z", "20260822T120000.000000Z"
    outcome = Outcome(
        day=DAY,
        source="acme",
        attempt=morning,
        status="captured",
        accepted=True,
        reason=None,
        warnings=("one – ä", "two"),
    )
    records.write_outcome(outcome)
    (stored,) = records.outcomes("acme", DAY)
    assert (stored["warnings"], stored["day"], stored["accepted"]) == ("one – ä; two", "2026-08-22", True)
    records.write_outcome(
        Outcome(day=DAY, source="acme", attempt=noon, status="failed", accepted=False, reason="none")
    )
    assert [row["attempt"] for row in records.outcomes("acme", DAY)] == [morning, noon]
    assert (records.outcome("acme", DAY) or {})["attempt"] == noon
    assert records.outcome("acme", DAY + timedelta(days=1)) is None
    files = sorted((tmp_path / "outcomes" / "acme" / "2026-08-22").iterdir())
    assert [file.name for file in files] == [f"{morning}.json", f"{noon}.json"]  # nothing temporary is left
    assert json.loads(files[0].read_text(encoding="utf-8"))["source"] == "acme"


def test_an_outcome_of_an_earlier_version_is_an_attempt_without_a_name(
    records: Records, tmp_path: Path
) -> None:
    records.write_outcome(Outcome(day=DAY, source="acme", status="captured", accepted=True, reason=None))
    file = tmp_path / "outcomes" / "acme" / "2026-08-22.json"
    row = json.loads(file.read_text(encoding="utf-8"))
    del row["attempt"]
    file.write_text(json.dumps(row))
    assert records.outcomes("acme", DAY) == [{"attempt": "", **row}]


def test_a_damaged_file_names_itself_and_the_way_out(records: Records, tmp_path: Path) -> None:
    file = tmp_path / "offers" / "acme" / "2026-08-22.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not parquet")
    remedy = (
        "remove it and read that day again: gpufare refresh --day 2026-08-22 --pages archive --source acme"
    )
    with pytest.raises(RecordError, match=rf"{file.name} is damaged or of an older version; {remedy}"):
        records.offers("acme", DAY)


def test_a_listing_that_becomes_no_offer_is_kept_with_its_price() -> None:
    (reject,) = build_offers([listing("2.00", gpu_count=0)], config()).rejects
    assert reject.raw["native_price"] == "2.00"
    assert reject.raw["native_currency"] == "USD"
    assert reject.raw["raw_label"] == "H100 SXM"
