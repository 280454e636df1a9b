"""Vultr: slices of a card, bare metal known by its id, and pages."""

import json
from pathlib import Path
from typing import Any

from pipeline.gpus import identify
from tests.capture.site import Asked, Reply, Site
from tests.sources.edited_pages import outcome, sample_row
from tests.sources.helpers import answer, page, read
from tests.sources.loopback import json_reply, visit

B200 = {"id": "vcg-b200-248c-2826g-1536vram", "hourly_cost": 62.6, "locations": ["sea"]}


def identified(plan: dict[str, Any]) -> tuple[str | None, float | None]:
    """The GPU and the number of them in a plan."""
    (row,), _ = read("vultr", answer([plan]))
    found = identify(
        row.raw_label, provider="vultr", kind=row.label_kind, context=row.context, gpu_count=row.gpu_count
    )
    return found.gpu_id, found.gpu_count


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
