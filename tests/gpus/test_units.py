"""Memory columns in every unit, shares of a GPU, and defects that were seen in published data."""

import pytest

from pipeline.gpus import identify


@pytest.mark.parametrize(
    ("label", "reported_mib", "gpu_id"),
    [
        ("H100 SXM", 81559, "h100-sxm-80gb"),
        ("H100 NVL", 95830, "h100-nvl-94gb"),
        ("H200", 143771, "h200-141gb"),
        ("L40S", 46068, "l40s"),
        ("T4", 15360, "t4"),
        ("Tesla T4", 15109, "t4"),
        ("A100 SXM4", 40536, "a100-sxm-40gb"),
        ("A100 SXM4", 39936, "a100-sxm-40gb"),
        ("A100 PCIE", 81920, "a100-pcie-80gb"),
        ("A10G", 22731, "a10g"),
        ("A10G", 23028, "a10g"),
        ("RTX 4090", 24564, "rtx-4090"),
        ("RTX 4090", 49140, "rtx-4090-48gb"),
        ("RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
        ("RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("B200", 183359, "b200-sxm-180gb"),
        ("B300", 268288, "b300-sxm-288gb"),
        ("B300", 275040, "b300-sxm-288gb"),
        ("GH200", 97871, "gh200-96gb"),
        ("Tesla V100", 16160, "v100-16gb"),
        ("Tesla V100", 32510, "v100-32gb"),
        ("MI300X", 196592, "mi300x"),
    ],
)
def test_a_memory_as_the_driver_reports_it(label: str, reported_mib: int, gpu_id: str) -> None:
    assert identify(label, context={"gpu_ram_mib": reported_mib}).gpu_id == gpu_id


@pytest.mark.parametrize(
    "context",
    [
        {"vram_gb": 80},
        {"VRAM": "80"},
        {"VRAM": "80 GB"},
        {"GPU RAM": "80GB"},
        {"gpu_memory_gib": 80},
        {"gpu_ram_mib": 81920},
        {"gpu_total_ram_mib": 655360},
        {"vram_total_gb": 640},
        {"gpuMemoryTotalGb": 640},
        {"vram_gb": 640},  # per GPU by its name, of all eight by its size
        {"gpu_memory_bytes": 85899345920},
        {"SizeInMiB": 81920},
        "vram_gb=80",
        "note=seen in May; vram_gb=80",
    ],
)
def test_a_memory_column_decides_in_any_unit(context: dict[str, str | float] | str) -> None:
    assert identify("A100 SXM4", context=context, gpu_count=8).gpu_id == "a100-sxm-80gb"


@pytest.mark.parametrize(
    "remark",
    [
        "80GB stated in table",
        "no memory in the text means 40GB",
        "peer table says vram_gb=180 (wrong)",
        "upstream n3-A100x8-NVLink, 81920 MiB",
        "480GB = CPU LPDDR5X",
    ],
)
def test_a_remark_is_not_a_column(remark: str) -> None:
    assert identify("A100 SXM4", context=remark).status == "ambiguous"


@pytest.mark.parametrize(
    ("context", "gpu_id"),
    [
        ({"socket": "SXM5"}, "h100-sxm-80gb"),
        ({"form_factor": "PCIe"}, "h100-pcie-80gb"),
        ({"gpu_name": "NVIDIA H100 80GB HBM3"}, "h100-sxm-80gb"),
        ({"interconnect": "none"}, "h100-80gb"),
        ("GpuInfo.Name=H100 PCIe", "h100-pcie-80gb"),
    ],
)
def test_a_column_decides_the_form_factor(context: dict[str, str | float] | str, gpu_id: str) -> None:
    assert identify("H100_80GB", context=context).gpu_id == gpu_id


def test_a_column_that_names_another_card_makes_it_ambiguous() -> None:
    found = identify("L40S", context={"gpu_name": "NVIDIA L40"})
    assert (found.status, found.rule) == ("ambiguous", "name_column_contradicts")


def test_slices_and_shares_are_fractions_of_a_gpu() -> None:
    mig = identify("NVIDIA A100-SXM4-80GB MIG 3g.40gb")
    assert (mig.gpu_id, mig.gpu_fraction, mig.memory_gb) == ("a100-sxm-80gb", 0.5, 40)
    smaller = identify("A100-SXM4-40GB MIG 1g.5gb", gpu_count=2)
    assert (smaller.gpu_fraction, smaller.gpu_count) == (0.125, 0.25)
    assert smaller.memory_gb == 5
    shared = identify("Standard_NV6ads_A10_v5", kind="instance_type")
    assert (shared.gpu_id, shared.gpu_count, shared.memory_gb) == ("a10", pytest.approx(1 / 6), 24)
    vram = identify("vcg-a100-1c-6g-4vram", provider="vultr", kind="instance_type")
    assert (vram.gpu_id, vram.gpu_count) == ("a100-80gb", 0.05)


def test_an_ambiguous_answer_has_what_its_candidates_share() -> None:
    found = identify("8x NVIDIA A100 SXM4")
    assert (found.status, found.vendor, found.model, found.memory_gb) == ("ambiguous", "nvidia", "A100", None)
    assert {"a100-sxm-40gb", "a100-sxm-80gb"} <= set(found.candidates)
    assert found.gpu_count == 8


def test_a_usual_memory_is_assumed_but_not_certain() -> None:
    assert (identify("H100").gpu_id, identify("H100").confidence) == ("h100-80gb", "usual")
    assert (identify("H100 80GB").gpu_id, identify("H100 80GB").confidence) == ("h100-80gb", "certain")


class TestDefectsSeenInPublishedData:
    """Each was published by a price tracker."""

    def test_a_total_in_a_per_gpu_column(self) -> None:
        assert identify("H100 SXM", context={"vram_gb": 640}, gpu_count=8).gpu_id == "h100-sxm-80gb"

    def test_a_memory_times_the_count_squared(self) -> None:
        # 8 GPUs of 80 GB, multiplied by 8 twice.
        found = identify("A100", context={"total_gpu_memory_mib": 5242880}, gpu_count=8)
        assert found.status == "ambiguous"

    def test_gigabytes_in_a_mebibyte_column(self) -> None:
        assert identify("A100 SXM4", context={"gpu_ram_mib": 80}).gpu_id is None

    def test_an_80_gb_card_is_not_a_40_gb_card(self) -> None:
        assert identify("A100-80GB").gpu_id == "a100-80gb"
        assert identify("A100-80GB", context={"vram_gb": 40}).status == "ambiguous"

    @pytest.mark.parametrize(
        ("label", "is_not", "gpu_id"),
        [
            ("NVIDIA L40S", "l40", "l40s"),
            ("NVIDIA L40", "l4", "l40"),
            ("RTX PRO 6000", "rtx-6000-ada", "rtx-pro-6000"),
            ("NVIDIA RTX 6000 Pro 96GB", "rtx-6000-ada", "rtx-pro-6000"),
            ("GH200 96GB", "h200-141gb", "gh200-96gb"),
            ("GB200 NVL72", "b200-sxm-180gb", "gb200"),
            ("GB300", "b300-sxm-288gb", "gb300"),
            ("RTX A4000", "a40", "rtx-a4000"),
            ("A4000", "a40", "rtx-a4000"),
            ("A100X", "a100-80gb", "a100x"),
            ("H200 NVL", "h200-sxm-141gb", "h200-nvl-141gb"),
            ("RTX 6000 Ada", "rtx-a6000", "rtx-6000-ada"),
            ("Quadro RTX 6000", "rtx-6000-ada", "quadro-rtx-6000"),
            ("A10G", "a10", "a10g"),
            ("A100 80GB", "a10", "a100-80gb"),
        ],
    )
    def test_a_card_is_not_taken_for_one_with_a_similar_name(
        self, label: str, is_not: str, gpu_id: str
    ) -> None:
        assert identify(label).gpu_id == gpu_id != is_not

    @pytest.mark.parametrize(
        "label", ["H100T", "H200x", "L40x", "A1000X2000", "L400", "B2000", "RTX 9999", "A100Z 80GB"]
    )
    def test_a_name_that_only_begins_like_a_card_is_unknown(self, label: str) -> None:
        assert identify(label).status == "unknown"

    def test_twelve_gpus_in_a_machine_of_eight(self) -> None:
        found = identify("p5.48xlarge", kind="instance_type", gpu_count=12)
        assert (found.status, found.rule) == ("ambiguous", "count_contradicts")

    def test_a_processor_or_accelerator_is_not_a_gpu(self) -> None:
        assert identify("Intel Xeon Platinum 8480+").status == "not_a_gpu"
        assert identify("inf2.48xlarge", kind="instance_type").model == "Inferentia2"
