"""Nosana: what a renter pays for a market, and how many GPUs that buys."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.refresh.ingest import read_answers
from tests.sources.helpers import answer, page, read


def market(**changes: Any) -> dict[str, Any]:
    """The market of the RTX 3060, which is an ordinary one."""
    return json.loads(page("nosana", "markets.json"))[1] | changes


def test_the_fee_is_added_to_the_hosts_reward() -> None:
    (row,), _ = read("nosana", answer([market(usd_reward_per_hour=0.2909, network_fee_percentage=10)]))
    assert row.native_price == Decimal("0.31999")
    (row,), _ = read("nosana", answer([market(usd_reward_per_hour="0.5", network_fee_percentage=0)]))
    assert row.native_price == Decimal("0.5")


@pytest.mark.parametrize("fee", [None, "", "ten", -1, 100, 1000])
def test_a_price_without_a_plausible_fee_is_incomplete(fee: Any) -> None:
    _, rejects = read("nosana", answer([market(), market(network_fee_percentage=fee)]))
    assert [reject.reason for reject in rejects] in (["incomplete_price"], ["missing_field"])


def test_a_market_that_lost_its_fee_has_no_price() -> None:
    without = market()
    del without["network_fee_percentage"]
    listings, rejects = read("nosana", answer([market(), without]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["incomplete_price"]


def test_the_price_in_tokens_does_not_stand_in_for_dollars() -> None:
    _, rejects = read("nosana", answer([market(), market(usd_reward_per_hour=None)]))
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"type": "PREMIUM"}, 1),
        ({"type": "COMMUNITY", "name": "NVIDIA 3060 Community"}, 1),
        ({"type": "OTHER", "name": "NVIDIA 8x H100"}, 8),
        ({"type": "PREMIUM", "name": "NVIDIA 8x A5000"}, 8),
        ({"type": "PREMIUM", "name": "NVIDIA A5000", "slug": "nvidia-4x-a5000"}, 4),
    ],
)
def test_how_many_gpus_a_market_s_host_has(changes: dict[str, Any], count: int) -> None:
    (row,), _ = read("nosana", answer([market(**changes)]))
    assert (row.gpu_count, row.native_unit) == (count, "instance_hour")


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "OTHER"},
        {"type": None},
        {"type": "SPECIAL"},
        {"name": "NVIDIA H100 x8"},
        {"name": "NVIDIA 2x 4x 3060"},
    ],
)
def test_a_market_that_may_have_more_than_one_gpu_is_rejected(changes: dict[str, Any]) -> None:
    listings, rejects = read("nosana", answer([market(), market(**changes)]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unknown_gpu_count"]


@pytest.mark.parametrize("slug", [5, ["alpha-4090"], {"name": "alpha-4090"}])
def test_the_market_must_be_readable(slug: Any) -> None:
    listings, rejects = read("nosana", answer([market(), market(slug=slug)]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["missing_field"]


@pytest.mark.parametrize("slug", source_config("nosana").settings["markets_of_partners"])
def test_a_partner_s_market_is_not_for_everybody(slug: str) -> None:
    listings, rejects = read("nosana", answer([market(), market(slug=slug)]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["other_product"]


@pytest.mark.parametrize(
    "changes",
    [
        {"slug": "nvidia-8x-a5000", "name": "NVIDIA 8x A5000"},
        {"slug": "nvidia-4090-laptop", "name": "NVIDIA 4090"},
        {"slug": "nvidia-4090-1", "name": "NVIDIA 4090 Laptop"},
        {"slug": "test-grid", "name": "Nosana Test Grid", "gpu_types": ["NVIDIA GeForce RTX 4090"]},
    ],
)
def test_a_market_that_sells_no_card_of_its_name_is_another_product(changes: dict[str, Any]) -> None:
    listings, rejects = read("nosana", answer([market(), market(**changes)]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["other_product"]


def test_a_job_runs_at_most_as_long_as_the_dashboard_allows() -> None:
    built = read_answers([answer([market()])], source_config("nosana"), {})
    assert [offer.max_run_hours for offer in built.offers] == [100]


@pytest.mark.parametrize(
    ("gpu_types", "context"),
    [
        (["NVIDIA GeForce RTX 3060"], {"gpu_name": "NVIDIA GeForce RTX 3060"}),
        (["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"], {}),
        ([], {}),
        (None, {}),
        ("NVIDIA GeForce RTX 3060", {}),
        ([3060], {}),
    ],
)
def test_a_market_of_one_kind_of_card_names_it(gpu_types: Any, context: dict[str, str]) -> None:
    (row,), _ = read("nosana", answer([market(gpu_types=gpu_types)]))
    assert row.context == context


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": None}, "missing_field"),
        ({"usd_reward_per_hour": 0}, "zero_price"),
        ({"usd_reward_per_hour": "cheap"}, "unreadable_price"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("nosana", answer([market(), market(**changes)]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize(
    "body",
    ["[]", '[{"name": "a", "name": "b"}]'],
)
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("nosana", answer(body))
