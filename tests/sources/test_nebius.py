"""Nebius: columns move, and one is valid from a later day."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.gpus import identify
from tests.capture.site import Reply, Site

from .helpers import answer, page, read
from .loopback import visit

SEPTEMBER = [
    ["Item", "vCPUs", "RAM, GB", "On-demand, GPU-hour", "GPU-hour (Effective October 1, 2026)"],
    ["NVIDIA GB200 NVL72", "112", "800", "[Contact us](#f)", "[Contact us](#f)"],
    ["NVIDIA HGX B300", "24", "346", "$7.85", "$9.50"],
    ["NVIDIA HGX H100", "16", "200", "$3.85", "$4.50"],
]
SEPTEMBER_SPOT = [
    ["Item", "vCPUs", "RAM, GB", "Spot price, GPU-hour*"],
    ["NVIDIA HGX H100", "16", "200", "from $0.79"],
    ["NVIDIA L40S with AMD CPU", "16-192", "96-1152", "from $0.90**"],
]


def block(content, title="NVIDIA GPU Instances"):
    return {"type": "highlight-table-block", "title": title, "table": {"content": content}}


def prices(listings):
    return {(r.raw_label, r.price_kind, r.effective_from): r.native_price for r in listings}


def test_the_block_of_the_page_alone():
    """Rows of 2026-08-22."""
    rows = [
        ["Item", "vCPUs", "RAM, GB", "Preemptible, GPU-hour", "On-demand, GPU-hour"],
        ["NVIDIA GB200 NVL72", "112", "800", "––", "[Contact us](#ai-contact-form)"],
        ["NVIDIA HGX B300", "24", "346", "$4.30", "$7.85"],
        ["NVIDIA HGX H100", "16", "200", "$2.15", "$3.85"],
        ["NVIDIA L40S with Intel CPU", "16-192", "96-1152", "from $0.90", "from $1.82"],
        ["NVIDIA L40S with AMD CPU", "8-40", "32-160", "from $0.74", "from $1.55"],
    ]
    listings, rejects = read("nebius", answer(block(rows)))
    assert [r.reason for r in rejects] == ["not_offered"] * 2
    assert {key[:2]: str(price) for key, price in prices(listings).items()} == {
        ("NVIDIA HGX B300", "spot"): "4.30",
        ("NVIDIA HGX B300", "on_demand"): "7.85",
        ("NVIDIA HGX H100", "spot"): "2.15",
        ("NVIDIA HGX H100", "on_demand"): "3.85",
        ("NVIDIA L40S with Intel CPU", "spot"): "0.90",
        ("NVIDIA L40S with Intel CPU", "on_demand"): "1.82",
        ("NVIDIA L40S with AMD CPU", "spot"): "0.74",
        ("NVIDIA L40S with AMD CPU", "on_demand"): "1.55",
    }
    assert {r.effective_from for r in listings} == {None}


def test_the_script_of_the_page_is_enough_and_may_repeat_a_table():
    whole = page("nebius", "prices.html")
    script = whole[whole.index("<script>") :]
    for half in (script, script + script):
        listings, rejects = read("nebius", answer(half))
        assert (len(listings), len(rejects)) == (14, 4)
        assert prices(listings)["NVIDIA HGX H200", "on_demand", None] == Decimal("4.50")


def test_a_bare_escaped_piece_of_the_script_is_read():
    piece = json.dumps(json.dumps(block(SEPTEMBER), separators=(",", ":")))[1:-1]
    listings, _ = read("nebius", answer(r"{\"type\":\"divider\"}," + piece + r",{\"type\":\"footer\"}"))
    assert prices(listings)["NVIDIA HGX H100", "on_demand", None] == Decimal("3.85")
    twice = json.dumps(piece)[1:-1]
    assert prices(read("nebius", answer("x" + twice))[0]) == prices(listings)


def test_late_september_columns_and_block():
    blocks = [block(SEPTEMBER), block(SEPTEMBER_SPOT, "Preemptible NVIDIA GPU Instances")]
    listings, rejects = read("nebius", answer(blocks, observed_at=datetime(2026, 9, 29, tzinfo=UTC)))
    october = date(2026, 10, 1)
    assert prices(listings) == {
        ("NVIDIA HGX B300", "on_demand", None): Decimal("7.85"),
        ("NVIDIA HGX B300", "on_demand", october): Decimal("9.50"),
        ("NVIDIA HGX H100", "on_demand", None): Decimal("3.85"),
        ("NVIDIA HGX H100", "on_demand", october): Decimal("4.50"),
        ("NVIDIA HGX H100", "spot", None): Decimal("0.79"),
        ("NVIDIA L40S with AMD CPU", "spot", None): Decimal("0.90"),
    }
    assert {r.flag_reason for r in listings if r.price_kind == "spot"} == {"spot_price_floor"}
    assert {r.flag_reason for r in listings if r.price_kind == "on_demand"} == {None}
    assert [r.reason for r in rejects] == ["not_offered"] * 2


def test_a_reserved_column_has_the_term_in_its_heading():
    rows = [
        ["Item", "On-demand, GPU-hour", "Reserved 3 months, GPU-hour"],
        ["NVIDIA HGX H100", "$3.85", "$2.90"],
    ]
    listings, _ = read("nebius", answer(block(rows)))
    assert [(r.price_kind, r.term_days, str(r.native_price)) for r in listings] == [
        ("on_demand", None, "3.85"),
        ("reserved", 90, "2.90"),
    ]


def test_after_its_day_the_announced_price_replaces_the_old_one():
    listings, _ = read("nebius", answer(block(SEPTEMBER), observed_at=datetime(2026, 10, 2, tzinfo=UTC)))
    flags = {(r.raw_label, r.effective_from): r.flag_reason for r in listings}
    assert flags["NVIDIA HGX H100", None] == "superseded"
    assert flags["NVIDIA HGX H100", date(2026, 10, 1)] is None


def test_moved_and_renamed_columns():
    content = [
        ["On-demand, price per GPU hour", "GPU", "Spot price, GPU-hour*", "New column"],
        ["$4.50", "NVIDIA HGX\u00a0H100", "$\u00a02.15", "9.99"],
    ]
    listings, rejects = read("nebius", answer(block(content)))
    assert prices(listings) == {
        ("NVIDIA HGX H100", "on_demand", None): Decimal("4.50"),
        ("NVIDIA HGX H100", "spot", None): Decimal("2.15"),
    }
    assert rejects == []


def test_bare_list_of_rows_is_read():
    assert len(read("nebius", answer(SEPTEMBER))[0]) == 4
    assert len(read("nebius", answer(SEPTEMBER_SPOT))[0]) == 2


def test_euros_stay_euros_and_unreadable_rows_are_rejects():
    content = [SEPTEMBER[0], ["NVIDIA HGX H100", "16", "200", "€3.85", "4.50"]]
    listings, rejects = read("nebius", answer(block(content)))
    assert [(r.native_price, r.native_currency) for r in listings] == [(Decimal("3.85"), "EUR")]
    assert [r.reason for r in rejects] == ["unreadable_price"]


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(block(SEPTEMBER))[:200],
        '<html>{"type":"highlight-table-block","title":"NVIDIA GPU',
        json.dumps(block([["Item", "vCPUs", "Price per hour"], ["Intel", "2", "$0.05"]], "CPU-only")),
        json.dumps(block([["Item", "Price per hour"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "GPU-hour (Effective soon)"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "Preemptible, GPU-hour", "GPU-hour"], ["NVIDIA HGX H100", "$1", "$2"]])),
        json.dumps(block([["Item", "Preemptible, GPU-hour", "Rate"], ["NVIDIA HGX H100", "$1", "$2"]])),
        json.dumps(block([["Product", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "vCPUs", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "$3.85"]])),
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("nebius", answer(body))


@pytest.mark.parametrize("unit", ["GPU-hour", "GPU hour", "per GPU per hour", "$/GPU/hr"])
def test_spellings_of_a_gpu_hour(unit: str) -> None:
    rows = [["Item", f"Preemptible, {unit}", f"On-demand, {unit}"], ["NVIDIA HGX H100", "$2.15", "$3.85"]]
    listings, _ = read("nebius", answer(rows))
    assert [(row.price_kind, str(row.native_price)) for row in listings] == [
        ("spot", "2.15"),
        ("on_demand", "3.85"),
    ]


def test_a_table_of_machines_without_gpus_does_not_fail_the_page() -> None:
    rows = [["Item", "vCPU-hour", "RAM, price per GiB-hour"], ["AMD EPYC Genoa", "$0.015", "$0.0045"]]
    for title in ("Non-GPU instances", "Non GPU AMD EPYC Genoa", "non-GPU virtual machines"):
        listings, rejects = read("nebius", answer([block(SEPTEMBER), block(rows, title)]))
        assert (len(listings), len(rejects)) == (4, 2)
    for title in ("NVIDIA GPU Instances", "New GPU instances"):
        with pytest.raises(SourceChangedError, match="no GPU-hour column"):
            read("nebius", answer([block(SEPTEMBER), block(rows, title)]))


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
IN_SEPTEMBER, IN_OCTOBER = datetime(2026, 9, 29, tzinfo=UTC), datetime(2026, 10, 5, tzinfo=UTC)


def short(listings):
    return sorted(
        (r.price_kind, str(r.native_price), str(r.effective_from), str(r.flag_reason)) for r in listings
    )


def test_the_documentation_states_the_first_day_of_a_price() -> None:
    before, rejects = read("nebius", answer(DOCUMENTATION, observed_at=IN_SEPTEMBER))
    assert short(before) == [
        ("on_demand", "3.85", "None", "None"),
        ("on_demand", "4.50", "2026-10-01", "None"),
        ("spot", "2.15", "None", "None"),
        ("spot", "2.60", "2026-10-01", "None"),
    ]
    assert {r.region for r in before} == {"eu-north1"}
    assert rejects == []
    after, _ = read("nebius", answer(DOCUMENTATION, observed_at=IN_OCTOBER))
    assert [row for row in short(after) if row[3] == "None"] == [
        ("on_demand", "4.50", "2026-10-01", "None"),
        ("spot", "2.60", "2026-10-01", "None"),
    ]
    assert {flag for *_, flag in short(after)} == {"None", "superseded"}
    assert {identify(row.raw_label, provider="Nebius").gpu_id for row in after} == {"h100-sxm-80gb"}


@pytest.mark.parametrize("observed_at", [IN_SEPTEMBER, IN_OCTOBER])
def test_no_price_of_the_page_is_counted_again(observed_at) -> None:
    blocks = answer([block(SEPTEMBER), block(SEPTEMBER_SPOT, "Preemptible GPUs")], observed_at=observed_at)
    documentation = answer(DOCUMENTATION, observed_at=observed_at)
    for answers in ((blocks, documentation), (documentation, blocks)):
        listings, _ = read("nebius", *answers)
        h100 = [row for row in listings if "H100" in row.raw_label]
        assert {row.raw_label for row in h100} == {"NVIDIA® H100 NVLink, gpu-h100-sxm"}
        assert short(h100) == short(read("nebius", documentation)[0])
        assert {(row.vcpus, row.ram_gib) for row in h100} == {(16, 200)}
        of_page = {row.raw_label for row in listings} - {h100[0].raw_label}
        assert of_page == {"NVIDIA HGX B300", "NVIDIA L40S with AMD CPU"}


def test_prices_on_which_page_and_documentation_disagree_are_flagged_on_both_sides() -> None:
    other = DOCUMENTATION.replace("3.85", "3.58")
    listings, _ = read(
        "nebius",
        answer(block(SEPTEMBER), observed_at=IN_SEPTEMBER),
        answer(other, observed_at=IN_SEPTEMBER),
    )
    flags = {(str(r.native_price), r.price_kind): r.flag_reason for r in listings if "H100" in r.raw_label}
    assert flags["3.85", "on_demand"] == flags["3.58", "on_demand"] == "conflicting_prices"
    assert flags["2.15", "spot"] is None


@pytest.mark.parametrize(
    ("sentence", "regions"),
    [
        ("The platform is available in the `eu-north1` and `eu-west1` regions.", ["eu-north1", "eu-west1"]),
        ("It is available in all [regions](/r) except `me-west1`.", [None]),
        ("It is available in the private `us-north1` region.", [None]),
        ("Ask your manager.", [None]),
        ("In the `eu-north1` region. Preemptible in the `eu-west1` region.", [None]),
    ],
)
def test_regions_of_a_platform(sentence: str, regions: list[str | None]) -> None:
    text = DOCUMENTATION.replace(
        "The platform is only available in the `eu-north1` [region](/overview/regions).", sentence
    )
    listings, _ = read("nebius", answer(text, observed_at=IN_OCTOBER))
    assert [r.region for r in listings if str(r.native_price) == "4.50"] == regions


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (r"\$4.50 | 1 GPU hour", r"\$4.50 | 1 hour", "unreadable_row"),
        (r"\$4.50", "₪4.50", "unreadable_price"),
        ("| NVIDIA® H100 NVLink | \\$4.50", "| NVIDIA® H200 NVLink | \\$4.50", "unreadable_row"),
        ("October 1, 2026** | **Price", "next autumn 2026** | **Price", "unknown_terms"),
        ("**Item — from October 1, 2026** | **Price**", "**Item** | **Rate**", "unreadable_row"),
    ],
)
def test_documentation_that_is_not_understood_gives_no_price(old: str, new: str, reason: str) -> None:
    text = DOCUMENTATION.replace(old, new, 1)
    page_answer = answer(block(SEPTEMBER), observed_at=IN_OCTOBER)
    listings, rejects = read("nebius", page_answer, answer(text, observed_at=IN_OCTOBER))
    assert reason in {reject.reason for reject in rejects}
    assert not any("gpu-h100" in row.raw_label and str(row.native_price) == "4.50" for row in listings)
    assert "NVIDIA HGX B300" in {row.raw_label for row in listings}


def test_documentation_without_prices_fails_alone_and_is_a_reject_beside_the_page() -> None:
    empty = answer("# Pricing\n\n## Prices\n\nSee the console.\n")
    with pytest.raises(SourceChangedError, match="no platform with a price per GPU hour"):
        read("nebius", empty)
    listings, rejects = read("nebius", answer(block(SEPTEMBER)), empty)
    assert len(listings) == 4
    assert [reject.reason for reject in rejects][-1] == "unreadable_answer"


def test_a_price_of_the_gpu_without_its_cpus_is_flagged_and_replaces_nothing() -> None:
    parts = r"""
#### NVIDIA® L40S PCIe with AMD Epyc Genoa, gpu-l40s-d

<Tabs><Tab title="USD">
| **Item** | **Price** | **Per** |
| - | - | - |
| NVIDIA® L40S PCIe with AMD Epyc Genoa. GPU | \$1.35 | 1 GPU hour |
| NVIDIA® L40S PCIe with AMD Epyc Genoa. CPU | \$0.01 | 1 vCPU hour |
</Tab></Tabs>
"""
    listings, rejects = read("nebius", answer(block(SEPTEMBER_SPOT, "Spot GPUs")), answer(parts))
    found = {(r.raw_label, r.price_kind): r.flag_reason for r in listings if "L40S" in r.raw_label}
    assert found == {
        ("NVIDIA L40S with AMD CPU", "spot"): "spot_price_floor",
        ("NVIDIA® L40S PCIe with AMD Epyc Genoa, gpu-l40s-d", "on_demand"): "cpu_and_memory_charged_extra",
    }
    assert rejects == []


@pytest.mark.parametrize("status", [200, 403, 404, 500])
def test_the_documentation_is_asked_for_and_can_be_missing(status: int, tmp_path: Path) -> None:
    html, markdown = page("nebius", "prices.html"), page("nebius", "pricing.md")
    with Site() as site:
        site.say("nebius.com", "/prices", Reply(200, html.encode(), {"content-type": "text/html"}))
        reply = Reply(status, markdown.encode(), {"content-type": "text/markdown; charset=utf-8"})
        site.say("docs.nebius.com", "/compute/resources/pricing.md", reply)
        captured, answers = visit("nebius", site, tmp_path)
    assert captured.status == "captured"
    listings, _ = read("nebius", *answers)
    regions = {row.region for row in listings if row.region}
    assert regions == ({"uk-south1", "us-central1", "eu-north1", "eu-west1"} if status == 200 else set())
    assert {"NVIDIA RTX PRO 6000"} <= {row.raw_label for row in listings}
