"""Replicate's hardware: from the text where it is there, or a clear failure."""

from pipeline.gpus import identify
from tests.sources.edited_pages import each, edited, misread, outcome

NAME = "pricing.html"
H100 = "<div>$ 0.001525<span>/sec</span></div><div>$ 5.49<span>/hr</span></div>"
ONE = [("gpu-h100", "0.001525", 1)]
COLUMNS = "instance_type native_price gpu_count"


def test_hardware_by_contract_is_reserved() -> None:
    found = outcome("replicate", edited("replicate", NAME), columns="instance_type price_kind tier context")
    assert found[8] == ("gpu-h100-8x", "reserved", "committed_spend", {"vram_total_gb": 640})
    wrong = edited("replicate", NAME, ("<code>gpu-h100-8x", "<code>gpu-h100-4x"))
    assert sorted(outcome("replicate", wrong, columns=COLUMNS)[8:]) == ["not_offered", "unknown_gpu_count"]


TABLE = [
    ("Nvidia A40 (Large) GPU", "gpu-a40-large", "0.000725", "2.61", 1),
    ("2x Nvidia A40 (Large) GPU", "gpu-a40-large-2x", "0.00145", "5.22", 2),
    ("2x Nvidia A100 (80GB) GPU", "gpu-a100-large-2x", "0.0028", "10.08", 2),
    ("Nvidia L40S GPU", "gpu-l40s", "0.000975", "3.51", 1),
    ("2x Nvidia L40S GPU", "gpu-2x-l40s", "0.00195", "7.02", 2),
    ("8x Nvidia L40S GPU", "gpu-8x-l40s", "0.0078", "28.08", 8),
]


def table(between: str) -> str:
    """The table of copies of the page that others stored, with ``between`` label and SKU."""
    rows = "".join(
        f"<tr><td>{label}{between}{sku}</td><td>${second}/sec<br>${hour}/hr</td><td>{count}x</td>"
        f"<td>{count}0x</td><td>{count * 48}GB</td><td>65GB</td></tr>"
        for label, sku, second, hour, count in TABLE
    )
    return f"<table><thead><tr><th>Hardware</th><th>Price</th></tr></thead><tbody>{rows}</tbody></table>"


def test_the_count_can_be_anywhere_in_the_sku_and_the_sku_beside_the_label() -> None:
    rows = [(label, sku, second, count) for label, sku, second, _, count in TABLE]
    cases = each(["<br>", " ", "\n", "</td><td>", "<br/><code>"], *rows)
    assert not misread("replicate", table, cases, "raw_label instance_type native_price gpu_count")
    for label, sku, _, _, count in TABLE:
        found = identify(sku, kind="instance_type")
        assert (found.gpu_id, found.gpu_count) == (identify(label).gpu_id, count)
    for between in ("<br>", " "):
        wrong = table(between).replace("gpu-2x-l40s", "gpu-8x-l40s")
        assert outcome("replicate", wrong, columns="gpu_count") == [1, 2, 2, 1, 8, "unknown_gpu_count"]


def test_a_page_drawn_by_a_script_is_reported() -> None:
    filled = "a script that is not run here fills in the table in the browser"
    for body in ("<div id='root'></div><script src='/app.js'></script>", "<script>{broken</script>", "{}"):
        assert outcome("replicate", body) == [f"changed: no hardware with a price per second; {filled}"]
