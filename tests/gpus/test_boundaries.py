"""Every tolerance and limit of the matcher: on it, and on each side of it."""

import pytest

from pipeline.gpus import identify


@pytest.mark.parametrize(
    ("label", "gigabytes", "gpu_id"),
    [
        # A T4 has 16 GB: from 0.87 of it (13.92) to 8% more (16 / 0.92 = 17.391).
        ("T4", 13.91, None),
        ("T4", 13.92, "t4"),
        ("T4", 16, "t4"),
        ("T4", 17.39, "t4"),
        ("T4", 17.40, None),
        # A K80 board has two GPUs of 12 GB: also 24 GB, 8% less (22.08) or more (26.087).
        ("K80", 10.43, None),
        ("K80", 10.44, "k80"),
        ("K80", 13.04, "k80"),
        ("K80", 13.05, None),
        ("K80", 22.07, None),
        ("K80", 22.09, "k80"),
        ("K80", 24, "k80"),
        ("K80", 26.08, "k80"),
        ("K80", 26.09, None),
        # Of several memories in reach, the nearest: 94 GB and 96 GB exist.
        ("H100", 94.9, "h100-nvl-94gb"),
        ("H100", 95.1, "h100-sxm-96gb"),
        ("H100 SXM", 86.9, "h100-sxm-80gb"),
        ("H100 SXM", 87.0, "h100-sxm-96gb"),
        # The memory of GH200's CPU is part of its name; 141 GB is how its 144 GB are advertised.
        ("GH200", 480, "gh200-96gb"),
        ("GH200", 576, "gh200-96gb"),
        ("GH200", 624, "gh200-144gb"),
        ("GH200", 141, "gh200-144gb"),
        ("GH200", 481, None),
    ],
)
def test_how_far_a_memory_can_be_from_the_nominal_one(
    label: str, gigabytes: float, gpu_id: str | None
) -> None:
    assert identify(label, context={"vram_gb": gigabytes}).gpu_id == gpu_id
    assert identify(f"{label} {gigabytes}GB").gpu_id == gpu_id


@pytest.mark.parametrize(
    ("context", "gpu_count", "gpu_id"),
    [
        # Half of an A10 of 24 GB: 12 GB, from 0.87 of it (10.44) to 8% more (13.043).
        ({"vram_gb": 10.43}, 0.5, None),
        ({"vram_gb": 10.44}, 0.5, "a10"),
        ({"vram_gb": 13.04}, 0.5, "a10"),
        ({"vram_gb": 13.05}, 0.5, None),
        ({"vram_gb": 12}, 1, None),
        ({"vram_gb": 12}, 2, None),
        ({"vram_gb": 48}, 2, "a10"),
        ({"vram_gb": 41.76}, 2, "a10"),
        ({"vram_gb": 41.74}, 2, None),
        ({"vram_total_gb": 48}, 2, "a10"),
        ({"vram_total_gb": 48}, 1, None),
        ({"vram_total_gb": 48}, None, "a10"),  # without a count, a total says nothing
        ({"vram_total_gb": 41.74}, 2, None),
        ({"vram_total_gb": 0}, 2, None),
    ],
)
def test_a_memory_column_of_a_share_or_of_several_gpus(
    context: dict[str, float], gpu_count: float | None, gpu_id: str | None
) -> None:
    found = identify("A10", context=context, gpu_count=gpu_count)
    assert found.gpu_id == gpu_id
    assert (found.status == "matched") == (gpu_id is not None)


def test_a_share_that_fits_two_memories_stays_open() -> None:
    found = identify("H100", context={"vram_gb": 24}, gpu_count=0.25)
    assert (found.status, found.candidates) == ("ambiguous", ("h100-nvl-94gb", "h100-sxm-96gb"))


@pytest.mark.parametrize(
    ("stated", "given", "agrees"),
    [(20, 20, True), (20, 17, True), (20, 16.99, False), (20, 23, True), (20, 24, False), (17, 20, True)],
)
def test_how_far_a_given_count_can_be_from_the_stated_one(stated: int, given: float, agrees: bool) -> None:
    found = identify(f"{stated}x L40S", gpu_count=given)
    assert found.status == ("matched" if agrees else "ambiguous")
    assert found.rule == ("label" if agrees else "count_contradicts")
    assert found.gpu_count == given


def test_a_share_that_is_given_as_several_gpus_is_a_contradiction() -> None:
    assert identify("g6f.2xlarge", gpu_count=2).rule == "count_contradicts"


@pytest.mark.parametrize(
    ("label", "gpu_count"),
    [
        ("128 gpus L40S", 128),
        ("129 gpus L40S", None),
        ("128 gpu L40S", 128),
        ("gpu128 x L40S", 128),
        ("gpu129 x L40S", None),
        ("999x L40S", 999),
        ("1000x L40S", None),
        ("999 x L40S", 999),
        ("1000 x L40S", None),
        ("L40S x999", 999),
        ("L40S x1000", None),
        ("999gpus L40S", 999),
        ("1000gpus L40S", None),
        ("0x L40S", None),
        ("L40S 8 x", None),
        ("4x L40S 8x", None),
        ("4x L40S 4x", 4),
        ("1/2 L40S", 0.5),
        ("1/16 L40S", 0.0625),
        ("1/17 L40S", None),
        ("1/1 L40S", None),
        ("1/20 L40S", None),
        ("11/2 L40S", None),
    ],
)
def test_which_numbers_of_a_label_are_counts(label: str, gpu_count: float | None) -> None:
    found = identify(label)
    assert (found.gpu_id, found.gpu_count) == ("l40s", gpu_count)


@pytest.mark.parametrize(
    ("label", "given", "gpu_count", "fraction"),
    [
        ("1/2 L40S", 1, 0.5, 0.5),  # one share, listed as one
        ("1/2 L40S", 0.5, 0.5, 0.5),
        ("1/2 L40S", 2, 2, None),
        ("L40S", 0.99, 0.99, 0.99),
        ("L40S", 1, 1, None),
        ("L40S", 0, 0, None),
        ("8x L40S", 0, 0, None),
        ("g6f.2xlarge", 1, 0.25, 0.25),
        ("g6f.2xlarge", 0.25, 0.25, 0.25),
    ],
)
def test_shares_and_given_counts(label: str, given: float, gpu_count: float, fraction: float | None) -> None:
    found = identify(label, gpu_count=given)
    assert (found.status, found.gpu_count, found.gpu_fraction) == ("matched", gpu_count, fraction)


@pytest.mark.parametrize(
    ("label", "gpu_id"),
    [
        # An eighth of 40 GB is 5 GB, of 80 GB 10 GB; at most 1.5 GB off.
        ("A100 1g.3gb", None),
        ("A100 1g.4gb", "a100-40gb"),
        ("A100 1g.6gb", "a100-40gb"),
        ("A100 PCIe 1g.8gb", None),
        ("A100 PCIe 1g.9gb", "a100-pcie-80gb"),
        ("A100 PCIe 1g.11gb", "a100-pcie-80gb"),
        ("A100 PCIe 1g.12gb", None),
        ("A100 SXM4 80GB 2g.20gb", "a100-sxm-80gb"),
        ("A100 SXM4 80GB 3g.40gb", "a100-sxm-80gb"),
        ("A100 SXM4 80GB 4g.40gb", "a100-sxm-80gb"),
        ("A100 SXM4 80GB 7g.80gb", "a100-sxm-80gb"),
        ("A100 SXM4 80GB 5g.40gb", None),
        # A quarter of 94 GB is 23.5 GB: 22 and 25 are exactly 1.5 off.
        ("H100 NVL 2g.21gb", None),
        ("H100 NVL 2g.22gb", "h100-nvl-94gb"),
        ("H100 NVL 2g.25gb", "h100-nvl-94gb"),
        ("H100 NVL 2g.26gb", None),
        # An eighth of 141 GB is 17.625 GB.
        ("H200 SXM 1g.16gb", None),
        ("H200 SXM 1g.17gb", "h200-sxm-141gb"),
        ("H200 SXM 1g.19gb", "h200-sxm-141gb"),
        # Cards of four slices.
        ("A30 1g.6gb", "a30"),
        ("A30 1g.3gb", None),
        ("A30 2g.12gb", "a30"),
        ("A30 4g.24gb", "a30"),
        ("RTX PRO 6000 Server 1g.24gb", "rtx-pro-6000-server"),
        ("RTX PRO 6000 Server 1g.12gb", None),
    ],
)
def test_how_far_a_mig_profile_can_be_from_the_share_of_the_memory(label: str, gpu_id: str | None) -> None:
    found = identify(label)
    assert found.gpu_id == gpu_id
    assert found.rule.startswith("label" if gpu_id else "slice_fits_no_card")


@pytest.mark.parametrize(
    ("label", "context", "memory_gb", "fraction"),
    [
        ("A100 SXM4 80GB MIG 7g.80gb", "", 80, 1),
        ("A100 SXM4 80GB MIG 63GB", "", 63, 0.7875),
        ("A100 SXM4 80GB MIG 20GB", "", 20, 0.25),
        ("A100 SXM4 80GB MIG", "vram_gb=20", 20, 0.25),
        ("A100 SXM4 80GB", "", 80, None),
        ("A100 SXM4 80GB 3g.40gb", "", 40, 0.5),
        ("A100 SXM4 80GB 7g.81gb", "", 81, 1),
        ("A10-12Q", "", 12, 0.5),
    ],
)
def test_the_memory_and_the_fraction_of_a_slice(
    label: str, context: str, memory_gb: float, fraction: float | None
) -> None:
    found = identify(label, context=context)
    assert (found.status, found.memory_gb, found.gpu_fraction) == ("matched", memory_gb, fraction)


@pytest.mark.parametrize(
    ("label", "context", "status"),
    [
        ("A100 80GB MIG", "vram_gb=79", "ambiguous"),
        ("A100 SXM4 80GB MIG 63GB", "", "matched"),
        ("A100 SXM4 80GB MIG 64GB", "", "ambiguous"),  # 0.8 of the card and more is the card's own size
        ("H100 SXM5 80GB MIG", "vram_gb=64", "ambiguous"),
        ("A100 80GB", "vram_gb=20", "ambiguous"),
        ("L40S 24GB", "", "ambiguous"),
        ("L40S MIG 24GB", "", "matched"),
        ("L40S MIG 60GB", "", "ambiguous"),
    ],
)
def test_a_smaller_memory_needs_a_slice(label: str, context: str, status: str) -> None:
    assert identify(label, context=context).status == status


@pytest.mark.parametrize(
    ("label", "gpu_count", "status", "rule"),
    [
        ("8x H100 SXM 640GB", None, "matched", "label+form_factor+memory"),
        ("1x H100 SXM 640GB", None, "ambiguous", "memory_contradicts"),
        ("H100 SXM 640GB", 8, "matched", "label+form_factor+memory"),
        ("H100 SXM 640GB", 6, "ambiguous", "memory_contradicts"),
        ("2x RTX 4090 48GB", None, "ambiguous", "memory_of_one_or_of_all"),
        ("1x RTX 4090 48GB", None, "matched", "label+memory"),
        ("2x RTX 4090 24GB", None, "matched", "label+memory"),
    ],
)
def test_a_memory_of_all_gpus(label: str, gpu_count: float | None, status: str, rule: str) -> None:
    found = identify(label, gpu_count=gpu_count)
    assert (found.status, found.rule) == (status, rule)
