"""Nosana: what a renter pays for a market, and how many GPUs that buys."""

from pipeline.catalog.source_config import source_config
from tests.sources.edited_pages import GONE, alone, each, misread, sample_row

MARKET = sample_row("nosana", "markets.json", 1)
"""The market of the RTX 3060, which is an ordinary one."""


def test_the_fee_is_added_to_the_hosts_reward() -> None:
    cases = [
        ({"usd_reward_per_hour": 0.2909, "network_fee_percentage": 10}, ["0.31999"]),
        ({"usd_reward_per_hour": "0.5", "network_fee_percentage": 0}, ["0.5"]),
        ({"usd_reward_per_hour": 1, "network_fee_percentage": 99.9}, ["1.999"]),
        *each(
            [{"network_fee_percentage": fee} for fee in (None, "", "ten", -1, 100, GONE)], "incomplete_price"
        ),
        ({"usd_reward_per_hour": None}, ["not_offered"]),  # the price in tokens is none in dollars
    ]
    assert not misread("nosana", alone(MARKET), cases, "native_price")


def test_how_many_gpus_a_markets_host_has() -> None:
    cases = [
        ({"type": "PREMIUM"}, [(1, "premium")]),
        ({"type": "COMMUNITY", "name": "NVIDIA 3060 Community"}, [(1, "community")]),
        ({"type": "OTHER", "name": "NVIDIA 8x H100"}, [(8, "other")]),
        ({"type": "PREMIUM", "name": "NVIDIA 8x A5000"}, [(8, "premium")]),
        ({"type": None, "name": "NVIDIA A5000", "slug": "nvidia-4x-a5000"}, [(4, None)]),
        *each([{"type": "OTHER"}, {"type": None}, {"type": "SPECIAL"}], "unknown_gpu_count"),
        *each([{"name": "NVIDIA H100 x8"}, {"name": "NVIDIA 2x 4x 3060"}], "unknown_gpu_count"),
    ]
    assert not misread("nosana", alone(MARKET), cases, "gpu_count tier")


def test_a_market_that_sells_no_card_of_its_name_to_everybody_is_another_product() -> None:
    settings = source_config("nosana").settings
    slugs = [*settings["markets_of_partners"], *settings["markets_left_out"], "nvidia-4090-laptop"]
    names = ["NVIDIA 4090 Laptop", "Nosana Test Grid"]
    cases = [
        *each([{"slug": slug} for slug in slugs], "other_product"),
        *each([{"name": name} for name in names], "other_product"),
        *each([{"slug": slug} for slug in (5, ["alpha-4090"], {"name": "alpha-4090"})], "missing_field"),
        ({"name": None}, ["missing_field"]),
        ({"slug": None}, [("NVIDIA 3060", "0.04796")]),
    ]
    assert not misread("nosana", alone(MARKET), cases)


def test_a_market_of_one_kind_of_card_names_it() -> None:
    rtx_3060 = "NVIDIA GeForce RTX 3060"
    others = [["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"], [], None, rtx_3060, [3060]]
    cases = [({}, [{"gpu_name": rtx_3060}]), *each([{"gpu_types": types} for types in others], {})]
    assert not misread("nosana", alone(MARKET), cases, "context")
