"""Salad's rows without priorities: every price is interruptible."""

from tests.sources.edited_pages import outcome
from tests.sources.helpers import sample


def test_rows_without_priorities_have_the_lowest() -> None:
    rows, columns = (
        sample("salad_rows_2026-05-24.html"),
        "raw_label tier native_price price_kind context ram_gib vcpus",
    )
    found = outcome("salad", rows, columns=columns)
    assert found[0] == ("GTX 1650", None, "0.02", "spot", {"vram_gb": 4}, 8, 4)
    assert (len(found), found[-1]) == (16, "not_offered")
