"""Replicate's hardware: from the text where it is there, or a clear failure."""

from pipeline.gpus import identify
from tests.sources.edited_pages import edited, outcome

NAME = "pricing.html"
COLUMNS = "instance_type native_price gpu_count"


def test_hardware_by_contract_is_reserved() -> None:
    found = outcome("replicate", edited("replicate", NAME), columns="instance_type price_kind tier context")
    assert found[8] == ("gpu-h100-8x", "reserved", "committed_spend", {"vram_total_gb": 640})
    wrong = edited("replicate", NAME, ("<code>gpu-h100-8x", "<code>gpu-h100-4x"))
    assert sorted(outcome("replicate", wrong, columns=COLUMNS)[8:]) == ["not_offered", "unknown_gpu_count"]


def test_a_sku_says_the_card_and_the_count_as_its_label_does() -> None:
    skus = {
        "Nvidia A40 (Large) GPU": ("gpu-a40-large", 1),
        "2x Nvidia A40 (Large) GPU": ("gpu-a40-large-2x", 2),
        "2x Nvidia A100 (80GB) GPU": ("gpu-a100-large-2x", 2),
        "8x Nvidia L40S GPU": ("gpu-8x-l40s", 8),
    }
    for label, (sku, count) in skus.items():
        found = identify(sku, kind="instance_type")
        assert (found.gpu_id, found.gpu_count) == (identify(label).gpu_id, count)


def test_a_page_drawn_by_a_script_is_reported() -> None:
    filled = "a script that is not run here fills in the table in the browser"
    for body in ("<div id='root'></div><script src='/app.js'></script>", "<script>{broken</script>", "{}"):
        assert outcome("replicate", body) == [f"changed: no hardware with a price per second; {filled}"]
