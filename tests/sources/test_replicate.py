"""Replicate's hardware: from the text where it is there, or a clear failure."""

from tests.sources.edited_pages import edited, outcome

NAME = "pricing.html"


def test_hardware_by_contract_is_reserved() -> None:
    found = outcome("replicate", edited("replicate", NAME), columns="instance_type price_kind tier context")
    assert found[8] == ("gpu-h100-8x", "reserved", "committed_spend", {"vram_total_gb": 640})
    wrong = edited("replicate", NAME, ("<code>gpu-h100-8x", "<code>gpu-h100-4x"))
    assert sorted(outcome("replicate", wrong, columns="instance_type native_price gpu_count")[8:]) == [
        "not_offered",
        "unknown_gpu_count",
    ]


def test_a_page_drawn_by_a_script_is_reported() -> None:
    filled = "a script that is not run here fills in the table in the browser"
    for body in ("<div id='root'></div><script src='/app.js'></script>", "<script>{broken</script>", "{}"):
        assert outcome("replicate", body) == [f"changed: no hardware with a price per second; {filled}"]
