"""Clore.ai: prices per day, in several coins, of servers that are rented whole or in part."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read
from tests.sources.test_sources import read_sample


def server(at: int = 0, **changes: Any) -> dict[str, Any]:
    return json.loads(page("clore", "marketplace.json"))["servers"][at] | changes


def priced(on_demand: Any) -> dict[str, Any]:
    return server(
        price={"on_demand": on_demand, "usd": {"on_demand_usd": 9.0}, "spot": {"USD-Blockchain": 0.1}}
    )


def gpus(label: str, listed: Any) -> dict[str, Any]:
    found = server()
    return found | {"gpu_array": listed, "specs": found["specs"] | {"gpu": label}}


def marketplace(*servers: dict[str, Any]) -> Any:
    return answer({"servers": list(servers), "my_servers": [], "code": 0})


def test_the_price_is_per_day_of_the_whole_server() -> None:
    (row,), _ = read("clore", marketplace(priced({"USD-Blockchain": 5.24})))
    assert (row.native_price, row.native_unit) == (Decimal("0.218333"), "instance_hour")


def test_prices_without_the_renters_fees_cannot_win_a_ranking() -> None:
    assert {offer.flag_reason for offer in read_sample("clore").offers} == {"parts_priced_apart"}


@pytest.mark.parametrize("on_demand", [{"bitcoin": 0.00001}, {"CLORE-Blockchain": 900.0}, {}, None])
def test_no_other_coin_or_kind_stands_in_for_dollars(on_demand: Any) -> None:
    listings, rejects = read("clore", marketplace(server(), priced(on_demand)))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("label", "listed", "count"),
    [
        ("2x NVIDIA GeForce RTX 3090", ["RTX 3090", "RTX 3090"], 2),
        ("2x NVIDIA GeForce RTX 3090", [["RTX 3090", "RTX 3090"]], 2),
        ("2x NVIDIA GeForce RTX 3090", [], 2),
        ("8x Tesla V100SXM232GB", None, 8),
    ],
)
def test_the_label_states_the_number_of_gpus(label: str, listed: Any, count: int) -> None:
    (row,), _ = read("clore", marketplace(gpus(label, listed)))
    assert row.gpu_count == count


@pytest.mark.parametrize(
    ("label", "listed"),
    [
        ("2x NVIDIA GeForce RTX 3090", ["RTX 3090"]),
        ("NVIDIA GeForce RTX 3090", ["RTX 3090"]),
        ("0x NVIDIA GeForce RTX 3090", None),
        ("RTX 3090 x2", None),
    ],
)
def test_a_number_of_gpus_that_is_not_certain_is_rejected(label: str, listed: Any) -> None:
    listings, rejects = read("clore", marketplace(server(), gpus(label, listed)))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unknown_gpu_count"]


@pytest.mark.parametrize(
    ("changes", "available"),
    [
        ({"rented": False}, True),
        ({"rented": True}, False),
        ({"rented": None}, None),
        ({"rented": "no"}, None),
        ({"partial_gpu_rental": {"total_gpus": 8, "available_gpus": 8}}, True),
        ({"partial_gpu_rental": {"total_gpus": 8, "available_gpus": 7}}, False),
        ({"partial_gpu_rental": True}, True),
    ],
)
def test_a_server_that_is_partly_rented_is_not_free(changes: dict[str, Any], available: bool | None) -> None:
    (row,), _ = read("clore", marketplace(server(6, **{"partial_gpu_rental": None} | changes)))
    assert row.available is available


@pytest.mark.parametrize(
    ("cpus", "vcpus"), [("8/16", 16), ("16", None), (16, None), (None, None), ("a/b", None)]
)
def test_a_processor_s_threads_are_its_vcpus(cpus: Any, vcpus: int | None) -> None:
    found = server()
    (row,), _ = read("clore", marketplace(found | {"specs": found["specs"] | {"cpus": cpus}}))
    assert row.vcpus == vcpus


def test_a_server_of_mixed_gpus_is_of_no_model() -> None:
    (row,), _ = read("clore", marketplace(gpus("2x Mixed GPUs", ["GTX 1080 Ti", "RTX 3070"])))
    assert row.raw_label == "2x Mixed GPUs"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"specs": None}, "missing_field"),
        ({"specs": {"gpu": ""}}, "missing_field"),
        ({"price": None}, "not_offered"),
        ({"price": {"on_demand": {"USD-Blockchain": 0}}}, "zero_price"),
        ({"price": {"on_demand": {"USD-Blockchain": "cheap"}}}, "unreadable_price"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("clore", marketplace(server(), server(**changes)))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize(
    "body",
    [
        {"code": 5},
        {"code": 6, "error": "unavailable"},
        {"servers": []},
        {"servers": {}},
        '{"servers": [], "servers": []}',
    ],
)
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("clore", answer(body))
