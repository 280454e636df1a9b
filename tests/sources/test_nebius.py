"""Nebius: tables in the page's data, whose columns move, and the documentation's exact prices."""

from datetime import date
from typing import Any

import pytest

from pipeline.contracts.listing import Answer
from pipeline.gpus import identify
from tests.sources.edited_pages import at_six, outcome
from tests.sources.helpers import answer

IN_SEPTEMBER, IN_OCTOBER = at_six(date(2026, 9, 29)), at_six(date(2026, 10, 5))
OCTOBER = date(2026, 10, 1)
H100 = "NVIDIA HGX H100"
SEPTEMBER = [
    ["Item", "vCPUs", "RAM, GB", "On-demand, GPU-hour", "GPU-hour (Effective October 1, 2026)"],
    ["NVIDIA GB200 NVL72", "112", "800", "[Contact us](#f)", "[Contact us](#f)"],
    ["NVIDIA HGX B300", "24", "346", "$7.85", "$9.50"],
    [H100, "16", "200", "$3.85", "$4.50"],
]
SEPTEMBER_SPOT = [
    ["Item", "vCPUs", "RAM, GB", "Spot price, GPU-hour*"],
    [H100, "16", "200", "from $0.79"],
    ["NVIDIA L40S with AMD CPU", "16-192", "96-1152", "from $0.90**"],
]
DATED = "raw_label price_kind native_price effective_from flag_reason"


def block(content: list[list[str]], title: str = "NVIDIA GPU Instances") -> dict[str, Any]:
    return {"type": "highlight-table-block", "title": title, "table": {"content": content}}


# --- the price page ---


def test_an_announced_price_stands_beside_todays_until_it_replaces_it() -> None:
    blocks = [block(SEPTEMBER), block(SEPTEMBER_SPOT, "Preemptible NVIDIA GPU Instances")]
    for observed_at, flag in ((IN_SEPTEMBER, None), (IN_OCTOBER, "superseded")):
        assert outcome("nebius", answer(blocks, observed_at=observed_at), columns=DATED) == [
            ("NVIDIA HGX B300", "on_demand", "7.85", None, flag),
            ("NVIDIA HGX B300", "on_demand", "9.5", OCTOBER, None),
            (H100, "on_demand", "3.85", None, flag),
            (H100, "on_demand", "4.5", OCTOBER, None),
            (H100, "spot", "0.79", None, "spot_price_floor"),
            ("NVIDIA L40S with AMD CPU", "spot", "0.9", None, "spot_price_floor"),
            *["not_offered"] * 2,
        ]


# --- the documentation ---

DOCUMENTATION = r"""
#### NVIDIA® H100 NVLink, gpu-h100-sxm

The platform is only available in the `eu-north1` [region](/overview/regions).

<Tabs>
  <Tab title="USD">
    | **Item — from October 1, 2026** | **Price** | **Per** |
    | - | - | - |
    | NVIDIA® H100 NVLink | \$4.50 | 1 GPU hour |
    | Preemptible NVIDIA® H100 NVLink | \$2.60 | 1 GPU hour |
    | **Item — before October 1, 2026** | **Price** | **Per** |
    | NVIDIA® H100 NVLink | \$3.85 | 1 GPU hour |
    | Preemptible NVIDIA® H100 NVLink | \$2.15 | 1 GPU hour |
  </Tab>
  <Tab title="ILS">
    | **Item — from October 1, 2026** | **Price** | **Per** |
    | - | - | - |
    | NVIDIA® H100 NVLink | ₪16.61 | 1 GPU hour |
  </Tab>
</Tabs>

#### NVIDIA® RTX PRO™ 6000, gpu-rtx6000
"""
PLATFORM = "NVIDIA® H100 NVLink, gpu-h100-sxm"


def documented(old: str = "", new: str = "", observed_at: Any = IN_OCTOBER) -> Answer:
    assert old in DOCUMENTATION
    return answer(DOCUMENTATION.replace(old, new, 1) if old else DOCUMENTATION, observed_at=observed_at)


def test_the_documentation_states_the_first_day_of_a_price() -> None:
    for observed_at, flag in ((IN_SEPTEMBER, None), (IN_OCTOBER, "superseded")):
        found = outcome("nebius", documented(observed_at=observed_at), columns=f"{DATED} region")
        assert found == [
            (PLATFORM, "on_demand", "4.5", OCTOBER, None, "eu-north1"),
            (PLATFORM, "spot", "2.6", OCTOBER, None, "eu-north1"),
            (PLATFORM, "on_demand", "3.85", None, flag, "eu-north1"),
            (PLATFORM, "spot", "2.15", None, flag, "eu-north1"),
        ]
    assert identify(PLATFORM, provider="Nebius").gpu_id == "h100-sxm-80gb"


@pytest.mark.parametrize("observed_at", [IN_SEPTEMBER, IN_OCTOBER])
def test_no_price_of_the_page_is_counted_again(observed_at: Any) -> None:
    blocks = answer([block(SEPTEMBER), block(SEPTEMBER_SPOT, "Preemptible GPUs")], observed_at=observed_at)
    documentation = documented(observed_at=observed_at)
    exact = outcome("nebius", documentation, columns=DATED)
    for answers in ((blocks, documentation), (documentation, blocks)):
        found = outcome("nebius", *answers, columns=f"{DATED} vcpus ram_gib")[:-2]
        h100 = [row for row in found if "H100" in row[0]]
        assert [row[:5] for row in h100] == exact
        assert {row[5:] for row in h100} == {(16, 200)}
        assert {row[0] for row in found} == {PLATFORM, "NVIDIA HGX B300", "NVIDIA L40S with AMD CPU"}


def test_prices_on_which_page_and_documentation_disagree_are_flagged_on_both_sides() -> None:
    blocks = answer([block(SEPTEMBER), block(SEPTEMBER_SPOT, "Spot GPUs")], observed_at=IN_SEPTEMBER)
    found = outcome("nebius", blocks, documented("3.85", "3.58", IN_SEPTEMBER), columns=DATED)
    flags = {row[1:3]: row[4] for row in found[:-2] if "H100" in row[0]}
    assert flags == {
        ("on_demand", "3.85"): "conflicting_prices",
        ("on_demand", "3.58"): "conflicting_prices",
        ("on_demand", "4.5"): "conflicting_prices",
        ("spot", "2.15"): None,
        ("spot", "2.6"): None,
    }


def test_documentation_that_is_not_understood_gives_no_price() -> None:
    row = "| NVIDIA® H100 NVLink | \\$4.50"
    cases = [
        ((r"\$4.50 | 1 GPU hour", r"\$4.50 | 1 hour"), 3, ["unreadable_row"]),
        ((r"\$4.50", "₪4.50"), 3, ["unreadable_price"]),
        ((row, row.replace("H100", "H200")), 3, ["unreadable_row"]),
        (("**Item — from October 1, 2026** | **Price**", "**Item** | **Rate**"), 2, ["unreadable_row"] * 3),
        (("October 1, 2026** | **", "next autumn 2026** | **"), 0, ["unknown_terms", "unreadable_answer"]),
        (('title="USD"', 'title="EUR"'), 0, ["unreadable_answer"]),
    ]
    blocks = answer(block([SEPTEMBER[0], SEPTEMBER[2]]), observed_at=IN_OCTOBER)
    of_page = [("NVIDIA HGX B300", "7.85"), ("NVIDIA HGX B300", "9.5")]
    for edit, left, reasons in cases:
        found = outcome("nebius", blocks, documented(*edit))
        assert (found[:2], found[2 + left :]) == (of_page, reasons), edit


def test_a_price_of_the_gpu_without_its_cpus_is_flagged_and_replaces_nothing() -> None:
    title = "NVIDIA® L40S PCIe with AMD Epyc Genoa"
    parts = rf"""
#### {title}, gpu-l40s-d

<Tabs><Tab title="USD">
| **Item** | **Price** | **Per** |
| - | - | - |
| {title}. GPU | \$1.35 | 1 GPU hour |
| {title}. CPU | \$0.01 | 1 vCPU hour |
</Tab></Tabs>
"""
    found = outcome(
        "nebius", block(SEPTEMBER_SPOT, "Spot GPUs"), parts, columns="raw_label price_kind flag_reason"
    )
    assert found[1:] == [
        ("NVIDIA L40S with AMD CPU", "spot", "spot_price_floor"),
        (f"{title}, gpu-l40s-d", "on_demand", "cpu_and_memory_charged_extra"),
    ]
