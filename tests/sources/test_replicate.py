"""Replicate's hardware: from the text where it is there, or a clear failure."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.gpus import identify
from tests.sources.helpers import answer, page, read

PAGE = page("replicate", "pricing.html")
H100 = "<div>$ 0.001525<span>/sec</span></div><div>$ 5.49<span>/hr</span></div>"


def test_page_gives_sets_at_their_own_price_and_leaves_cpus_and_prose_out() -> None:
    listings, rejects = read("replicate", answer(PAGE))
    assert [(row.instance_type, row.gpu_count, row.price_kind, row.native_price) for row in listings] == [
        ("gpu-a100-large", 1, "serverless", Decimal("0.001400")),
        ("gpu-h100", 1, "serverless", Decimal("0.001525")),
        ("gpu-l40s", 1, "serverless", Decimal("0.000975")),
        ("gpu-2x-l40s", 2, "serverless", Decimal("0.001950")),
        ("gpu-4x-l40s", 4, "serverless", Decimal("0.003900")),
        ("gpu-8x-l40s", 8, "serverless", Decimal("0.007800")),
        ("gpu-t4", 1, "serverless", Decimal("0.000225")),
        ("gpu-h100-2x", 2, "reserved", Decimal("0.003050")),
        ("gpu-h100-8x", 8, "reserved", Decimal("0.012200")),
    ]
    assert listings[8].context == {"vram_total_gb": 640}
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
    assert len(listings) == 8
    assert [reject.reason for reject in rejects] == [reason, "not_offered"]


def test_label_and_sku_have_to_agree_on_the_count() -> None:
    _, rejects = read("replicate", answer(PAGE.replace("<code>gpu-h100-8x", "<code>gpu-h100-4x")))
    assert sorted(reject.reason for reject in rejects) == ["not_offered", "unknown_gpu_count"]


HEADERS = ["Hardware", "Price", "GPU", "CPU", "GPU RAM", "RAM"]
TABLE = [
    ("Nvidia A40 (Large) GPU", "gpu-a40-large", "0.000725", "2.61", 1),
    ("2x Nvidia A40 (Large) GPU", "gpu-a40-large-2x", "0.001450", "5.22", 2),
    ("2x Nvidia A100 (80GB) GPU", "gpu-a100-large-2x", "0.002800", "10.08", 2),
    ("Nvidia L40S GPU", "gpu-l40s", "0.000975", "3.51", 1),
    ("2x Nvidia L40S GPU", "gpu-2x-l40s", "0.001950", "7.02", 2),
    ("4x Nvidia L40S GPU", "gpu-4x-l40s", "0.003900", "14.04", 4),
    ("8x Nvidia L40S GPU", "gpu-8x-l40s", "0.007800", "28.08", 8),
]


def table(between: str) -> str:
    """The table of copies of the page that others stored, with ``between`` label and SKU."""
    head = "".join(f"<th>{header}</th>" for header in HEADERS)
    rows = "".join(
        f"<tr><td>{label}{between}{sku}</td><td>${second}/sec<br>${hour}/hr</td><td>{count}x</td>"
        f"<td>{count}0x</td><td>{count * 48}GB</td><td>65GB</td></tr>"
        for label, sku, second, hour, count in TABLE
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


@pytest.mark.parametrize("between", ["<br>", " ", "\n", "</td><td>", "<br/><code>"])
def test_the_count_can_be_anywhere_in_the_sku_and_the_sku_beside_the_label(between: str) -> None:
    listings, rejects = read("replicate", answer(table(between)))
    assert [(row.raw_label, row.instance_type, row.gpu_count) for row in listings] == [
        (label, sku, count) for label, sku, _, _, count in TABLE
    ]
    assert rejects == []
    found = [identify(row.instance_type or "", kind="instance_type") for row in listings]
    assert [(card.gpu_id, card.gpu_count) for card in found] == [
        (identify(label).gpu_id, count) for label, _, _, _, count in TABLE
    ]


@pytest.mark.parametrize("between", ["<br>", " "])
def test_a_sku_of_another_count_than_the_label_is_refused(between: str) -> None:
    wrong = table(between).replace("gpu-4x-l40s", "gpu-8x-l40s")
    listings, rejects = read("replicate", answer(wrong))
    assert (len(listings), [reject.reason for reject in rejects]) == (len(TABLE) - 1, ["unknown_gpu_count"])


@pytest.mark.parametrize(
    "body",
    [
        "<html><body><div id='root'></div><script src='/app.js'></script></body></html>",
        "<script>{broken</script>",
        "{}",
    ],
)
def test_page_drawn_by_a_script_is_reported(body: str) -> None:
    with pytest.raises(SourceChangedError, match="a script that is not run here"):
        read("replicate", answer(body))
