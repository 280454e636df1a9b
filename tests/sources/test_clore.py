"""Clore.ai: prices per day, in several coins, of servers that are rented whole or in part."""

import json
from typing import Any

from pipeline.contracts.listing import Listing
from tests.sources.helpers import answer, page, read, read_sample

SERVERS = json.loads(page("clore", "marketplace.json"))["servers"]


def read_servers(*servers: dict[str, Any]) -> tuple[list[Listing], list[str]]:
    listings, rejects = read("clore", answer({"servers": list(servers), "my_servers": [], "code": 0}))
    return listings, [reject.reason for reject in rejects]


def with_specs(server: dict[str, Any], **specs: Any) -> dict[str, Any]:
    return server | {"specs": server["specs"] | specs}


def test_prices_without_the_renters_fees_cannot_win_a_ranking() -> None:
    assert {offer.flag_reason for offer in read_sample("clore").offers} == {"parts_priced_apart"}


def test_no_other_coin_or_kind_stands_in_for_dollars() -> None:
    for on_demand, reason in (
        ({"bitcoin": 0.00001}, "not_offered"),
        ({"CLORE-Blockchain": 900.0}, "not_offered"),
        (None, "not_offered"),
        ({"USD-Blockchain": "cheap"}, "unreadable_price"),
    ):
        usd = {"on_demand_usd": 9.0}
        price = {"on_demand": on_demand, "usd": usd, "spot": {"USD-Blockchain": 0.1}}
        listings, rejects = read_servers(SERVERS[0], SERVERS[0] | {"price": price})
        assert (len(listings), rejects) == (1, [reason])


def test_the_label_states_the_number_of_gpus_and_the_list_confirms_it() -> None:
    for label, listed, count in (
        ("2x NVIDIA GeForce RTX 3090", ["RTX 3090", "RTX 3090"], 2),
        ("2x NVIDIA GeForce RTX 3090", [["RTX 3090", "RTX 3090"]], 2),
        ("2x NVIDIA GeForce RTX 3090", [], 2),
        ("8x Tesla V100SXM232GB", None, 8),
        ("2x Mixed GPUs", ["GTX 1080 Ti", "RTX 3070"], 2),
        ("2x NVIDIA GeForce RTX 3090", ["RTX 3090"], None),
        ("NVIDIA GeForce RTX 3090", ["RTX 3090"], None),
        ("RTX 3090 x2", None, None),
    ):
        listings, rejects = read_servers(with_specs(SERVERS[0], gpu=label) | {"gpu_array": listed})
        if count is None:
            assert (listings, rejects) == ([], ["unknown_gpu_count"])
        else:
            assert [(row.raw_label, row.gpu_count) for row in listings] == [(label, count)]


def test_a_server_that_is_partly_rented_is_not_free() -> None:
    for changes, available in (
        ({"rented": False}, True),
        ({"rented": True}, False),
        ({"rented": None}, None),
        ({"rented": "no"}, None),
        ({"partial_gpu_rental": {"total_gpus": 8, "available_gpus": 8}}, True),
        ({"partial_gpu_rental": {"total_gpus": 8, "available_gpus": 7}}, False),
        ({"partial_gpu_rental": True}, True),
    ):
        ((row,), _) = read_servers(SERVERS[6] | {"partial_gpu_rental": None} | changes)
        assert row.available is available


def test_a_processor_s_threads_are_its_vcpus() -> None:
    for cpus, vcpus in (("8/16", 16), ("16", None), (16, None), (None, None), ("a/b", None)):
        ((row,), _) = read_servers(with_specs(SERVERS[0], cpus=cpus))
        assert row.vcpus == vcpus
