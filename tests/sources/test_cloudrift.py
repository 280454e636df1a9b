"""CloudRift: a POST, cents, memory of one GPU, and types without a machine at present."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.capture.site import Asked, Reply, Site
from tests.sources.helpers import answer, page, read
from tests.sources.loopback import json_reply, visit

HOST = "api.cloudrift.ai"
PATH = "/api/v1/instance-types/list"


def types(**variant: Any) -> dict[str, Any]:
    body = json.loads(page("cloudrift", "instance_types.json"))
    kind = body["data"]["instance_types"][0]
    body["data"]["instance_types"] = [kind | {"variants": [kind["variants"][1] | variant]}]
    return body


def test_the_list_is_asked_for_by_a_post_without_a_key(tmp_path: Path) -> None:
    def list_types(asked: Asked) -> Reply:
        wanted = json.loads(asked.body)
        selector = wanted["data"]["selector"]
        if asked.method != "POST" or "version" not in wanted or "ByServiceAndLocation" not in selector:
            return Reply(400, b'"request must be {version, data}"', {"content-type": "application/json"})
        return json_reply(page("cloudrift", "instance_types.json"))

    with Site() as site:
        site.route(HOST, PATH, list_types)
        captured, answers = visit("cloudrift", site, tmp_path)
        (asked,) = site.pages_asked()
    assert captured.status == "captured"
    assert asked.headers["content-type"] == "application/json"
    assert not {"authorization", "x-api-key"} & asked.headers.keys()
    listings, _ = read("cloudrift", *answers)
    assert len(listings) == 5


def test_the_price_is_of_the_whole_machine_in_cents() -> None:
    (row,), _ = read("cloudrift", answer(types()))
    assert (row.gpu_count, row.native_price, row.native_unit) == (2, Decimal("2.7872"), "instance_hour")


def test_the_memory_is_that_of_one_gpu() -> None:
    (row,), _ = read("cloudrift", answer(types()))
    assert row.context == {"vram_gb": 96}


def test_a_type_without_machines_keeps_its_price_and_is_not_available() -> None:
    nowhere: dict[str, Any] = {"nodes_per_dc": {}, "available_nodes_per_dc": {}, "available_nodes": 0}
    (row,), _ = read("cloudrift", answer(types(**nowhere)))
    assert (row.region, row.available) == (None, False)


@pytest.mark.parametrize("count", [None, "", "some"])
def test_without_a_place_and_a_number_of_machines_nothing_is_offered(count: Any) -> None:
    unsaid: dict[str, Any] = {"nodes_per_dc": None, "available_nodes_per_dc": None, "available_nodes": count}
    listings, rejects = read("cloudrift", answer(types(**unsaid)))
    assert listings == []
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_on_the_sample_page_only_the_old_card_is_free() -> None:
    listings, _ = read("cloudrift", answer(page("cloudrift", "instance_types.json")))
    assert {row.raw_label for row in listings if row.available} == {"V100 SXM2"}


def test_availability_is_null_if_the_list_does_not_state_it() -> None:
    (row,), _ = read("cloudrift", answer(types(available_nodes_per_dc=None)))
    assert (row.region, row.available) == ("usny01_a01", None)


def test_a_machine_without_gpus_is_not_ours() -> None:
    body = types(gpu_count=0)
    body["data"]["instance_types"] += types()["data"]["instance_types"]
    listings, rejects = read("cloudrift", answer(body))
    assert (len(listings), rejects) == (1, [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cost_per_hour": 0}, "zero_price"),
        ({"cost_per_hour": "1.39$"}, "unreadable_price"),
        ({"gpu_count": None}, "unknown_gpu_count"),
        ({"gpu_count": 1.5}, "unknown_gpu_count"),
        ({"name": None}, "missing_field"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("cloudrift", answer(types(**changes)))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


def test_a_type_without_a_name_of_its_gpu_is_rejected() -> None:
    body = types()
    body["data"]["instance_types"][0]["brand_short"] = None
    listings, rejects = read("cloudrift", answer(body))
    assert not listings
    assert [reject.reason for reject in rejects] == ["missing_field"]


@pytest.mark.parametrize(
    "body",
    [
        '"User cannot be authenticated from the request"',
        {"version": "x", "data": {"instance_types": []}},
        {"version": "x", "data": []},
        {"version": "x"},
    ],
)
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("cloudrift", answer(body))
