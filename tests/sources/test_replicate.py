"""Replicate's hardware: from the text where it is there, from embedded data, or a clear failure."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read

PAGE = page("replicate", "pricing.html")
H100 = "<div>$ 0.001525<span>/sec</span></div><div>$ 5.49<span>/hr</span></div>"


def test_page_gives_sets_at_their_own_price_and_leaves_cpus_and_prose_out() -> None:
    listings, rejects = read("replicate", answer(PAGE))
    assert [(row.instance_type, row.gpu_count, row.price_kind, row.native_price) for row in listings] == [
        ("gpu-a100-large", 1, "serverless", Decimal("0.001400")),
        ("gpu-h100", 1, "serverless", Decimal("0.001525")),
        ("gpu-l40s", 1, "serverless", Decimal("0.000975")),
        ("gpu-t4", 1, "serverless", Decimal("0.000225")),
        ("gpu-h100-2x", 2, "reserved", Decimal("0.003050")),
        ("gpu-h100-8x", 8, "reserved", Decimal("0.012200")),
    ]
    assert listings[5].context == {"vram_total_gb": 640}
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("<div>$0.001525/sec</div><div>$54.90/hr</div>", "conflicting_prices"),
        ("<div>€0.001525/sec</div>", "unreadable_price"),
        ("<div>$0.000000/sec</div>", "zero_price"),
        ("<div>Contact sales</div>", "not_offered"),
        ("<div>$5.49/hr</div>", "unreadable_price"),
    ],
)
def test_row_without_one_clear_price_is_a_reject(cells: str, reason: str) -> None:
    listings, rejects = read("replicate", answer(PAGE.replace(H100, cells)))
    assert "gpu-h100" not in {row.instance_type for row in listings}
    assert len(listings) == 5
    assert [reject.reason for reject in rejects] == [reason, "not_offered"]


def test_label_and_sku_have_to_agree_on_the_count() -> None:
    _, rejects = read("replicate", answer(PAGE.replace("<code>gpu-h100-8x", "<code>gpu-h100-4x")))
    assert sorted(reject.reason for reject in rejects) == ["not_offered", "unknown_gpu_count"]


def embedded(*hardware: dict[str, Any]) -> str:
    data = json.dumps({"props": {"page": {"hardware": list(hardware)}}})
    return f'<html><body><div id="root"></div><script type="application/json">{data}</script></body></html>'


def test_embedded_hardware_is_read_where_the_text_has_none() -> None:
    html = embedded(
        {"sku": "gpu-h100", "name": "Nvidia H100 GPU", "price_per_second": "0.001525"},
        {"sku": "gpu-l40s-2x", "name": "2x Nvidia L40S GPU", "price_per_second": 0.00195},
        {"sku": "cpu", "name": "CPU", "price_per_second": 0.0001},
        {"sku": "gpu-t4", "name": "Nvidia T4 GPU", "price_per_second": 0},
    )
    listings, rejects = read("replicate", answer(html))
    assert [(row.instance_type, row.gpu_count, row.native_price) for row in listings] == [
        ("gpu-h100", 1, Decimal("0.001525")),
        ("gpu-l40s-2x", 2, Decimal("0.00195")),
    ]
    assert [reject.reason for reject in rejects] == ["zero_price"]


@pytest.mark.parametrize(
    "body",
    [
        "<html><body><div id='root'></div><script src='/app.js'></script></body></html>",
        embedded({"sku": "gpu-h100", "name": "Nvidia H100 GPU"}),
        "<script>{broken</script>",
        "{}",
    ],
)
def test_page_drawn_by_a_script_fails_and_says_so(body: str) -> None:
    with pytest.raises(SourceChangedError, match="drawn by a script"):
        read("replicate", answer(body))
