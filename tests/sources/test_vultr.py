"""Vultr: slices of a card, bare metal known by its id, and pages."""

from typing import Any

from pipeline.gpus import identify
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer, read

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
