"""Vultr: slices of a card, bare metal known by its id, and pages."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.gpus import identify
from tests.capture.site import Asked, Reply, Site

from .helpers import answer, following, page, read
from .loopback import json_reply, visit


def plan(**changes):
    return {
        "id": "vcg-a100-12c-120g-80vram",
        "vcpu_count": 12,
        "ram": 122880,
        "disk": 1400,
        "hourly_cost": 2.397,
        "type": "vcg",
        "locations": ["ewr"],
        "gpu_vram_gb": 80,
        "gpu_type": "NVIDIA_A100",
    } | changes


def metal(**changes):
    return {
        "id": "vbm-112c-2048gb-8-h100-gpu",
        "hourly_cost": 23.92,
        "hourly_cost_preemptible": 18.4,
        "locations": ["sea"],
    } | changes


def test_slices_of_a_card():
    listings, rejects = read("vultr", answer(page("vultr", "plans_vcg.json")))
    found = {
        r.instance_type: (r.gpu_count, r.native_price, r.region)
        for r in listings
        if r.raw_label == "NVIDIA_A100"
    }
    assert found == {
        "vcg-a100-1c-6g-4vram": (0.05, Decimal("0.123"), "ewr"),
        "vcg-a100-6c-60g-40vram": (0.5, Decimal("1.397"), "ewr"),
        "vcg-a100-12c-120g-80vram": (1, Decimal("2.397"), "ewr"),
    }
    assert not any("a100" in str(reject.raw) for reject in rejects)


def test_bare_metal():
    listings, rejects = read("vultr", answer(page("vultr", "plans_metal.json")))
    found = {(r.raw_label, r.price_kind): (r.native_price, r.region) for r in listings}
    assert found == {
        ("vbm-256c-2048gb-8-mi300x-gpu", "on_demand"): (Decimal("17.52"), "ord"),
        ("vbm-256c-2048gb-8-mi300x-gpu", "spot"): (Decimal("14.72"), "ord"),
        ("vbm-112c-2048gb-8-h100-gpu", "on_demand"): (Decimal("23.92"), "sea"),
        ("vbm-112c-2048gb-8-h100-gpu", "spot"): (Decimal("18.4"), "sea"),
        ("vbm-72c-480gb-gh200-gpu", "on_demand"): (Decimal("1.99"), "atl"),
        ("vbm-96c-1024gb-8-zz9-gpu", "on_demand"): (Decimal("9.99"), "ewr"),
    }
    assert {(r.label_kind, r.gpu_count) for r in listings} == {("instance_type", None)}
    assert rejects == []


def test_plans_without_gpu_are_not_ours():
    cpu = {"id": "vc2-1c-1gb", "type": "vc2", "hourly_cost": 0.007, "locations": ["ewr"]}
    listings, rejects = read("vultr", answer({"plans": [cpu, plan()]}))
    assert [r.instance_type for r in listings] == ["vcg-a100-12c-120g-80vram"]
    assert rejects == []


def test_bare_lists_of_both_kinds_are_told_apart_by_content():
    listings, _ = read("vultr", answer([plan()]), answer([metal()]))
    assert [(r.label_kind, r.price_kind) for r in listings] == [
        ("gpu_name", "on_demand"),
        ("instance_type", "on_demand"),
        ("instance_type", "spot"),
    ]


def test_one_listing_per_location():
    listings, _ = read("vultr", answer([plan(locations=["ewr", "ord", "ewr"])]))
    assert [(r.region, r.available) for r in listings] == [("ewr", True), ("ord", True)]
    listings, _ = read("vultr", answer([plan(locations=[])]))
    assert [(r.region, r.available) for r in listings] == [(None, False)]
    bare = plan()
    del bare["locations"]
    listings, _ = read("vultr", answer([bare]))
    assert [(r.region, r.available) for r in listings] == [(None, None)]


@pytest.mark.parametrize(
    ("changes", "offers", "reasons"),
    [
        ({"hourly_cost": "2.397", "gpu_vram_gb": "160"}, 1, []),
        ({"hourly_cost": 0}, 0, ["zero_price"]),
        ({"hourly_cost": None}, 0, ["not_offered"]),
        ({"hourly_cost": "free"}, 0, ["unreadable_price"]),
        ({"hourly_cost_preemptible": 1.2}, 2, []),
        ({"hourly_cost_preemptible": 0}, 1, ["zero_price"]),
        ({"hourly_cost_preemptible": 1.2, "deploy_preemptible": False}, 1, ["not_offered"]),
        ({"hourly_cost_preemptible": 1.2, "deploy_ondemand": False}, 1, ["not_offered"]),
        ({"gpu_type": "NVIDIA_X9000"}, 0, ["unknown_gpu_count"]),
        ({"gpu_type": None}, 0, ["missing_field"]),
        ({"gpu_vram_gb": 0}, 0, ["unknown_gpu_count"]),
        ({"gpu_vram_gb": None}, 0, ["unknown_gpu_count"]),
        ({"gpu_vram_gb": 120}, 0, ["unknown_gpu_count"]),
        ({"gpu_vram_gb": 60}, 0, ["unknown_gpu_count"]),  # three quarters of a card
        ({"gpu_type": "NVIDIA_A40", "gpu_vram_gb": 16}, 1, []),  # a third
        ({"gpu_count": "1"}, 1, []),
        ({"gpu_count": 1}, 1, []),
        ({"gpu_count": "2"}, 0, ["unknown_gpu_count"]),  # 80 GB are one
        ({"gpu_count": "1/4", "gpu_vram_gb": 20}, 1, []),
        ({"gpu_count": "1/4", "gpu_vram_gb": 40}, 0, ["unknown_gpu_count"]),
        ({"gpu_count": "3/4", "gpu_vram_gb": 60}, 0, ["unknown_gpu_count"]),
        ({"gpu_count": "1/0"}, 0, ["unknown_gpu_count"]),
        ({"gpu_count": "one"}, 0, ["unknown_gpu_count"]),
        ({"gpu_count": -1}, 0, ["unknown_gpu_count"]),
        ({"gpu_type": "NVIDIA_A100_SXM", "gpu_count": "8", "gpu_vram_gb": 640}, 1, []),
        ({"gpu_type": "NVIDIA_A100_SXM", "gpu_count": "1/2", "gpu_vram_gb": 40}, 0, ["unknown_gpu_count"]),
        ({"id": None}, 0, ["missing_field"]),
    ],
)
def test_variants_of_a_plan(changes, offers, reasons):
    listings, rejects = read("vultr", answer({"plans": [plan(**changes)], "extra": 1}))
    assert len(listings) == offers
    assert [r.reason for r in rejects] == reasons


def test_next_page_keeps_the_query():
    body = {"plans": [plan()], "meta": {"links": {"next": "bmV4dA==", "prev": ""}}}
    first = answer(body, url="https://api.vultr.com/v2/plans?type=all&per_page=500")
    url = following("vultr", first)
    assert url == "https://api.vultr.com/v2/plans?type=all&per_page=500&cursor=bmV4dA%3D%3D"
    assert following("vultr", answer(body, url=url)) == url
    assert following("vultr", answer(page("vultr", "plans_vcg.json"))) is None
    assert following("vultr", answer([plan()])) is None


@pytest.mark.parametrize(
    "body",
    [
        '{"plans": []}',
        json.dumps({"plans": [plan()]})[:-10],
        '{"plans": [1]}',
        "[]",
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("vultr", answer(body))


def test_a_plan_without_a_price_does_not_take_the_others_along():
    plan = {"id": "vcg-l40s-16c-180g-48vram", "type": "vcg", "gpu_type": "NVIDIA_L40S", "gpu_vram_gb": 48}
    listings, rejects = read("vultr", answer({"plans": [plan, plan | {"hourly_cost": 1.671}]}))
    assert [str(row.native_price) for row in listings] == ["1.671"]
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_plans_that_name_their_gpus_in_the_id_only() -> None:
    vdm = {"id": "vcg-a40-24c-120g-48vram", "type": "vdm", "hourly_cost": 1.712, "gpu_brand": "NVIDIA"}
    cpu = {"id": "vc2-2c-4gb", "type": "vc2", "hourly_cost": 0.027}
    listings, rejects = read("vultr", answer({"plans": [vdm | {"locations": ["blr", ""]}, cpu]}))
    assert [(row.raw_label, row.label_kind, row.gpu_count, row.region) for row in listings] == [
        ("vcg-a40-24c-120g-48vram", "instance_type", None, "blr")
    ]
    assert rejects == []


B200 = {"id": "vcg-b200-248c-2826g-1536vram", "hourly_cost": 62.6, "locations": ["sea"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "vdm", "gpu_brand": "NVIDIA"},
        {"type": "vcg", "gpu_type": "NVIDIA_B200", "gpu_vram_gb": 1536},
        {"type": "vcg", "gpu_type": "NVIDIA_B200", "gpu_vram_gb": 1536, "gpu_count": "8"},
    ],
)
def test_eight_b200_are_eight(fields) -> None:
    listings, rejects = read("vultr", answer({"plans": [B200 | fields]}))
    ((row,), found) = listings, identify_listing(listings[0])
    assert (found.gpu_id, found.gpu_count, rejects) == ("b200-sxm-180gb", 8, [])
    assert row.gpu_count in (8, None)


def identify_listing(row):
    return identify(
        row.raw_label, provider="vultr", kind=row.label_kind, context=row.context, gpu_count=row.gpu_count
    )


def test_a_plan_whose_memory_fits_no_whole_number_of_cards_has_no_count() -> None:
    plan = B200 | {"id": "vcg-mi325x-252c-2872g-1536vram", "type": "vdm", "gpu_brand": "AMD"}
    (row,), _ = read("vultr", answer({"plans": [plan]}))
    assert identify_listing(row).gpu_count is None
    _, (reject,) = read("vultr", answer({"plans": [B200 | {"gpu_type": "NVIDIA_B200", "gpu_vram_gb": 1440}]}))
    assert reject.reason == "unknown_gpu_count"


def test_a_brand_of_none_is_not_a_gpu() -> None:
    cpu = {"id": "vx1-g-2c-8g", "type": "vx1", "gpu_brand": "none", "hourly_cost": 0.06}
    listings, rejects = read("vultr", answer({"plans": [cpu, plan()]}))
    assert ([row.instance_type for row in listings], rejects) == (["vcg-a100-12c-120g-80vram"], [])


def test_bare_metal_that_states_its_count() -> None:
    plan = metal(id="vbm-256c-3072gb-8-mi325x-gpu", gpu_count=8, gpu_vram_gb=2048)
    listings, rejects = read("vultr", answer({"plans_metal": [plan]}))
    assert ([row.gpu_count for row in listings], rejects) == ([8, 8], [])
    assert {identify_listing(row).gpu_id for row in listings} == {"mi325x"}
    assert {row.label_kind for row in listings} == {"instance_type"}


def test_invalid_locations_are_skipped() -> None:
    plan = {"id": "vcg-l40s-16c-180g-48vram", "type": "vcg", "gpu_type": "NVIDIA_L40S", "gpu_vram_gb": 48}
    priced = plan | {"hourly_cost": 1.671, "locations": [{"a": 1}, "blr", 7]}
    listings, rejects = read("vultr", answer({"plans": [priced]}))
    assert ([row.region for row in listings], rejects) == (["blr"], [])


def test_all_plans_are_asked_for_page_by_page(tmp_path: Path) -> None:
    """type=vcg lacks the whole cards, which are of type vdm; an empty cursor ends the list."""
    whole = json.loads(page("vultr", "plans_vcg.json"))
    first = {"plans": whole["plans"][:3], "meta": {"links": {"next": "bmV4dA==", "prev": ""}}}
    second = {"plans": whole["plans"][3:], "meta": {"links": {"next": "", "prev": "cHJldg=="}}}

    def plans(asked: Asked) -> Reply:
        if "type=all" not in asked.target:
            return json_reply(json.dumps({"plans": [], "meta": {"links": {"next": ""}}}))
        return json_reply(json.dumps(second if "cursor=bmV4dA" in asked.target else first))

    with Site() as site:
        site.route("api.vultr.com", "/v2/plans", plans)
        site.say("api.vultr.com", "/v2/plans-metal", json_reply(page("vultr", "plans_metal.json")))
        captured, answers = visit("vultr", site, tmp_path)
        asked = [request.target for request in site.pages_asked()]
    assert captured.status == "captured"
    assert asked.count("/v2/plans?type=all&per_page=500") == 1
    assert len(asked) == 3
    listings, _ = read("vultr", *answers)
    assert {"vcg-a40-24c-120g-48vram", "vcg-l40s-16c-180g-48vram"} <= {r.instance_type for r in listings}
