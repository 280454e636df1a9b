"""Vultr: slices of a card, bare metal known by its id, and pages."""

import json
from pathlib import Path
from typing import Any

from pipeline.gpus import identify
from tests.capture.site import Asked, Reply, Site
from tests.sources.edited_pages import GONE, alone, each, misread, outcome, sample_row
from tests.sources.helpers import answer, page, read
from tests.sources.loopback import json_reply, visit

A100 = sample_row("vultr", "plans_vcg.json", "plans", 4)
METAL = sample_row("vultr", "plans_metal.json", "plans_metal", 1)
B200 = {"id": "vcg-b200-248c-2826g-1536vram", "hourly_cost": 62.6, "locations": ["sea"]}


def identified(plan: dict[str, Any]) -> tuple[str | None, float | None]:
    """The GPU and the number of them in a plan."""
    (row,), _ = read("vultr", answer([plan]))
    found = identify(
        row.raw_label, provider="vultr", kind=row.label_kind, context=row.context, gpu_count=row.gpu_count
    )
    return found.gpu_id, found.gpu_count


def test_the_number_of_cards_agrees_with_the_memory() -> None:
    sxm = {"gpu_type": "NVIDIA_A100_SXM"}
    cases = [
        ({}, [(1, {"vram_gb": 80})]),
        *each([{"gpu_count": "1"}, {"gpu_count": 1}], (1, {"vram_gb": 80})),
        ({"gpu_vram_gb": "160"}, [(2, {"vram_gb": 80})]),
        ({"gpu_count": "1/4", "gpu_vram_gb": 20}, [(0.25, {"vram_gb": 80})]),
        ({"gpu_type": "NVIDIA_A40", "gpu_vram_gb": 16}, [(1 / 3, {"vram_gb": 48})]),
        (sxm | {"gpu_count": "8", "gpu_vram_gb": 640}, [(8, {"vram_gb": 80})]),
        *each([sxm | {"gpu_count": "1/2", "gpu_vram_gb": 40}, sxm], "unknown_gpu_count"),
        *each([{"gpu_count": "2"}, {"gpu_count": "1/4", "gpu_vram_gb": 40}], "unknown_gpu_count"),
        *each([{"gpu_count": count} for count in ("1/0", "one", -1, "2/2/2")], "unknown_gpu_count"),
        # A part of a card is one of equal parts: neither three quarters nor one and a half.
        *each([{"gpu_vram_gb": gb} for gb in (60, 120, 0, None)], "unknown_gpu_count"),
        ({"gpu_count": "3/4", "gpu_vram_gb": 60}, ["unknown_gpu_count"]),
    ]
    assert not misread("vultr", alone(A100), cases, "gpu_count context")


def test_a_plan_has_a_price_on_demand_and_by_preemption() -> None:
    on_demand, spot = ("on_demand", "2.397"), ("spot", "1.2")
    preemptible = {"hourly_cost_preemptible": 1.2}
    cases = [
        (preemptible, [on_demand, spot]),
        (preemptible | {"deploy_preemptible": False}, [on_demand, "not_offered"]),
        (preemptible | {"deploy_ondemand": False}, [spot, "not_offered"]),
        ({"hourly_cost_preemptible": 0}, [on_demand, "zero_price"]),
        ({"hourly_cost": "free"}, ["unreadable_price"]),
        ({"id": None}, ["missing_field"]),
    ]
    assert not misread("vultr", alone(A100), cases, "price_kind native_price")


def test_a_plan_is_listed_once_per_location() -> None:
    cases = [
        ({"locations": ["ewr", "ord", "ewr"]}, [("ewr", True), ("ord", True)]),
        ({"locations": [{"a": 1}, "blr", 7, ""]}, [("blr", True)]),
        ({"locations": []}, [(None, False)]),
        ({"locations": GONE}, [(None, None)]),
    ]
    assert not misread("vultr", alone(A100), cases, "region available")


def test_plans_that_name_their_gpus_in_the_id_only() -> None:
    by_id = ("vbm-112c-2048gb-8-h100-gpu", "instance_type", None, 1920)
    cases = [
        ({}, [by_id] * 2),
        ({"gpu_count": 8, "gpu_vram_gb": 2048}, [(*by_id[:2], 8, 1920)] * 2),
        ({"disk_count": GONE}, [(*by_id[:3], 960)] * 2),
        (
            {"id": "vcg-a40-24c-120g-48vram", "disk": GONE},
            [("vcg-a40-24c-120g-48vram", *by_id[1:3], None)] * 2,
        ),
        ({"id": "x1", "gpu_brand": "NVIDIA"}, [("x1", *by_id[1:])] * 2),
        *each(
            [{"id": "vx1-g-2c-8g", "gpu_brand": brand} for brand in ("none", "", None)],
            "changed: no plan with a GPU",
        ),
    ]
    assert not misread("vultr", alone(METAL), cases, "raw_label label_kind gpu_count local_disk_gb")


def test_eight_b200_are_eight_however_the_plan_says_so() -> None:
    listed = {"type": "vcg", "gpu_type": "NVIDIA_B200", "gpu_vram_gb": 1536}
    for fields in ({"type": "vdm", "gpu_brand": "NVIDIA"}, listed, listed | {"gpu_count": "8"}):
        assert identified(B200 | fields) == ("b200-sxm-180gb", 8)
    assert outcome("vultr", [B200 | listed | {"gpu_vram_gb": 1440}]) == ["unknown_gpu_count"]
    mi325x = {"id": "vcg-mi325x-252c-2872g-1536vram", "type": "vdm", "gpu_brand": "AMD"}
    assert identified(B200 | mi325x)[1] is None
    assert identified(B200 | {"id": "vbm-256c-3072gb-8-mi325x-gpu", "gpu_count": 8}) == ("mi325x", 8)


def test_all_plans_are_asked_for_page_by_page(tmp_path: Path) -> None:
    """type=vcg lacks the whole cards, which are of type vdm; an empty cursor ends the list."""
    whole = sample_row("vultr", "plans_vcg.json", "plans")
    first = {"plans": whole[:3], "meta": {"links": {"next": "bmV4dA==", "prev": ""}}}
    second = {"plans": whole[3:], "meta": {"links": {"next": "", "prev": "cHJldg=="}}}
    url = "/v2/plans?type=all&per_page=500"

    def plans(asked: Asked) -> Reply:
        pages = {url: first, f"{url}&cursor=bmV4dA%3D%3D": second}
        return json_reply(json.dumps(pages[asked.target]))

    with Site() as site:
        site.route("api.vultr.com", "/v2/plans", plans)
        site.say("api.vultr.com", "/v2/plans-metal", json_reply(page("vultr", "plans_metal.json")))
        captured, answers = visit("vultr", site, tmp_path)
        assert len(site.pages_asked()) == 3
    assert captured.status == "captured"
    samples = [page("vultr", name) for name in ("plans_vcg.json", "plans_metal.json")]
    assert sorted(map(str, outcome("vultr", *answers))) == sorted(map(str, outcome("vultr", *samples)))
