"""Machine names: the rules of catalog/instance_types.csv, and where in a label a name is found."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_table
from pipeline.gpus import identify
from pipeline.gpus.catalogue import provider_key
from pipeline.gpus.instance_types import Family, InstanceType, find_instance_type
from pipeline.home import paths


@pytest.mark.parametrize(
    ("rule", "sizes", "name", "gpu_count"),
    [
        ("", "", "m-4", None),
        ("2", "", "m-4", 2),
        ("n", "", "m-4", 4),
        ("n/24", "", "m-48", 2),
        ("n/24", "", "m-60", None),  # 2.5 GPUs
        ("n/24", "", "m-8", 1 / 3),
        ("n/24", "", "m-16", None),  # two thirds of one
        ("n/24", "", "m-12", 0.5),
        ("n/1", "", "m-4", 4),
        ("n", "", "m", 1),
        ("size", "4:2 8:1/8", "m-4", 2),
        ("size", "4:2 8:1/8", "m-8", 0.125),
        ("size", "4:2 8:1/8", "m-16", None),
    ],
)
def test_the_count_of_a_family(rule: str, sizes: str, name: str, gpu_count: float | None) -> None:
    pattern = r"m(?:-(?P<size>\d+))?" if rule == "size" else r"m(?:-(?P<n>\d+))?"
    row = {"pattern": pattern, "gpu": "L4", "gpu_count": rule, "sizes": sizes}
    family = TypeAdapter(Family).validate_python(row)
    match = family.pattern.fullmatch(name)
    assert match is not None
    assert family.read(match) == InstanceType("L4", gpu_count, None)


@pytest.mark.parametrize(
    ("column", "value"),
    [("pattern", "a("), ("sizes", "xlarge"), ("sizes", "xlarge:two"), ("sizes", "a:1:2")],
)
def test_a_malformed_row_is_reported(
    column: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"provider": "", "pattern": "a", "gpu": "L4", "gpu_count": "", "sizes": ""} | {column: value}
    (tmp_path / "instance_types.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    with pytest.raises(CatalogError, match=rf"instance_types\.csv, line 2: {column}"):
        catalog_table("instance_types.csv", Family)


@pytest.mark.parametrize(
    ("name", "label", "gpu_count"),
    [
        ("p5.48xlarge", "H100 SXM 80GB", 8),
        ("P5.48XLARGE", "H100 SXM 80GB", 8),
        ("ml.p5.48xlarge", "H100 SXM 80GB", 8),
        ("p5.96xlarge", "H100 SXM 80GB", None),
        ("a2-highgpu-4g", "A100 SXM 40GB", 4),
        ("a2_highgpu_4g", "A100 SXM 40GB", 4),
        ("a2 highgpu 4g", "A100 SXM 40GB", 4),
        ("a2/highgpu/4g", "A100 SXM 40GB", 4),
        ("a2--highgpu-4g", "A100 SXM 40GB", 4),
        ("Standard_NC24ads_A100_v4", "A100 PCIe 80GB", 1),
        ("StandardNC24ads_A100_v4", "A100 PCIe 80GB", 1),
        ("Standard_D4s_v5", "cpu", None),
        ("v4-8", "tpu v4", 4),
        ("BM.GPU.L40S.4", "l40s", 4),
    ],
)
def test_a_name_in_any_spelling(name: str, label: str, gpu_count: float | None) -> None:
    assert find_instance_type(name, "") == InstanceType(label, gpu_count, None)


@pytest.mark.parametrize("name", ["", "-", "h100", "p5.48xlarge-large-and-more", "xp5.48xlarge", "é"])
def test_a_name_of_no_family(name: str) -> None:
    assert find_instance_type(name, "") is None


def test_a_family_of_one_provider() -> None:
    assert find_instance_type("gpu_8x_a100", "lambda") == InstanceType("A100 SXM 40GB", 8, None)
    assert find_instance_type("gpu_4x_a100", "lambda") == InstanceType("A100 PCIe 40GB", 4, None)
    assert find_instance_type("p5.48xlarge", "lambda") == InstanceType("H100 SXM 80GB", 8, None)
    assert find_instance_type("p5.48xlarge", "nobody") == InstanceType("H100 SXM 80GB", 8, None)
    for provider in ("", "aws", "nobody"):
        assert find_instance_type("gpu_8x_a100", provider) is None


def test_the_memory_of_the_machine_in_its_name() -> None:
    found = find_instance_type("vcg-a100-1c-6g-4vram", "vultr")
    assert found is not None
    assert found.total_memory_gb == 4
    assert identify("vcg-a100-1c-6g-4vram", provider="vultr").rule.endswith("total_memory_in_name")


@pytest.mark.parametrize(
    ("label", "gpu_id", "gpu_count"),
    [
        ("A100 80GB (a2-highgpu-1g)", "a100-sxm-40gb", 1),  # the name of the machine decides
        ("node of type p5.48xlarge in Ohio", "h100-sxm-80gb", 8),
        ("A100 (unknown-name-1g) p4d.24xlarge", "a100-sxm-40gb", 8),
        ("NVIDIA A100 vcg-a100-6c-60g-40vram", "a100-80gb", 0.5),  # 60 GB are the host's
        ("H100 (unknown-name)", "h100-80gb", None),
        ("A100_PCIe_80GB cluster", "a100-pcie-80gb", None),
        ("see p5.48xlarge,", "h100-sxm-80gb", 8),
    ],
)
def test_a_machine_name_among_other_words(label: str, gpu_id: str, gpu_count: float | None) -> None:
    found = identify(label)
    assert (found.gpu_id, found.gpu_count) == (gpu_id, gpu_count)


@pytest.mark.parametrize(
    ("label", "provider", "gpu_id", "gpu_count"),
    [
        ("1x T4 (n1-standard-4)", "", "t4", 1),
        ("1x T4 (n1-standard-4)", "gcp", "t4", 1),
        ("4x V100 (n1-highmem-16)", "gcp", "v100-sxm-16gb", 4),
        ("2x P100 (n1-highcpu-16)", "gcp", "p100-pcie-16gb", 2),
        ("4x P4 (n1-custom-8-16384)", "gcp", "p4", 4),
        ("n1-standard-4 (1x T4)", "gcp", "t4", 1),
        ("NVIDIA T4, 2x, Standard_D4s_v5", "azure", "t4", 2),
        ("1x V100 16GB (n1-standard-8, 30 GB)", "", "v100-16gb", 1),  # 30 GB are the host's
    ],
)
def test_a_machine_without_a_gpu_is_the_host_of_the_gpu_beside_it(
    label: str, provider: str, gpu_id: str, gpu_count: float
) -> None:
    found = identify(label, provider=provider)
    assert (found.gpu_id, found.gpu_count) == (gpu_id, gpu_count)


@pytest.mark.parametrize(
    "label", ["Xeon (n1-standard-4)", "TPU v4 (n1-standard-4)", "M4 (m4.xlarge)", "see n1-standard-4"]
)
def test_a_machine_without_a_gpu_beside_no_gpu_is_none(label: str) -> None:
    assert identify(label).status == "not_a_gpu"


@pytest.mark.parametrize(
    ("label", "status", "gpu_count"),
    [
        ("8x H100 (p5.48xlarge)", "matched", 8),
        ("4x H100 (p5.48xlarge)", "matched", None),
        ("2x p5.48xlarge", "matched", 8),  # two machines, each of eight
        ("1x A10 (Standard_NV6ads_A10_v5)", "matched", 1 / 6),  # one share
        ("2x A10 (Standard_NV6ads_A10_v5)", "matched", None),
        ("1x A100 (vcg-a100-6c-60g-40vram)", "matched", 0.5),
        ("1x T4 (g2-standard-4)", "ambiguous", None),  # a machine with one L4
    ],
)
def test_what_a_machine_name_and_the_words_around_it_disagree_on_is_open(
    label: str, status: str, gpu_count: float | None
) -> None:
    found = identify(label)
    assert (found.status, found.gpu_count) == (status, pytest.approx(gpu_count))


@pytest.mark.parametrize(
    ("name", "gpu_count"),
    [
        ("BM.GPU.GB200.4", 4),
        ("BM.GPU.GB200.41", 4),  # as its price page prints a footnote mark
        ("4x GB200 (BM.GPU.GB200.41)", 4),
        ("BM.GPU.GB300.42", 4),
        ("BM.GPU.B200.81", 8),
        ("BM.GPU.GB200-v2.4", 4),
        ("VM.GPU.A10.2", 2),
        ("VM.GPU.A10.21", None),
        ("BM.GPU.L40S.16", 16),
        ("BM.GPU.H100.41", 4),
        ("BM.GPU.H100.64", None),
    ],
)
def test_the_gpus_of_an_oracle_shape(name: str, gpu_count: float | None) -> None:
    assert identify(name, provider="oci", kind="instance_type").gpu_count == gpu_count


@pytest.mark.parametrize(
    ("name", "gpu_id", "gpu_count"),
    [
        ("vcg-a100-6c-60g-40vram", "a100-80gb", 0.5),
        ("VCG_A100_6C_60G_40VRAM", "a100-80gb", 0.5),
        ("vcg-a40-1c-5g-2vram", "a40", 1 / 24),
        ("vcg-b200-248c-2826g-1536vram", "b200-sxm-180gb", 8),
        ("vcg-h100-216c-1914gb-640vram", "h100-sxm-80gb", 8),
        ("vcg-mi355x-252c-2872g-2304vram", "mi355x", 8),
        # 1536 GB are six MI325X or eight of 192 GB; 120 GB are one and a half A100.
        ("vcg-mi325x-252c-2872g-1536vram", "mi325x", None),
        ("vcg-a100-18c-180g-120vram", "a100-80gb", None),
        ("vcg-b200-31c-353g-180vram", "b200-sxm-180gb", None),
    ],
)
def test_the_gpus_of_a_vultr_plan(name: str, gpu_id: str, gpu_count: float | None) -> None:
    found = identify(name, provider="vultr", kind="instance_type")
    assert found.gpu_id == gpu_id
    assert found.gpu_count == pytest.approx(gpu_count)


def test_the_rule_tells_a_machine_name_from_a_label() -> None:
    assert identify("p5.48xlarge").rule == "instance_type+label+form_factor+memory"
    assert identify("H100 SXM 80GB").rule == "label+form_factor+memory"
    assert identify("c5.large").rule == "instance_type+not_a_gpu"
    assert identify("Xeon").rule == "not_a_gpu"


def test_an_instance_type_can_state_the_memory_of_the_host() -> None:
    # In a GPU's name, 64 GB contradicts the 48 GB of an L40S.
    assert identify("L40S-foo-64GB").rule == "memory_contradicts"
    assert identify("L40S-foo-64GB", kind="instance_type").gpu_id == "l40s"
    assert identify("L40S-64GB", kind="instance_type").rule == "memory_contradicts"
    assert identify("L40S-48GB-64GB", kind="instance_type").gpu_id == "l40s"
    # It is not shared among the GPUs where another memory is the GPU's.
    assert identify("2x A100 160GB 40GB", kind="instance_type").gpu_id == "a100-40gb"


def test_provider_names_are_compared_by_letters_and_digits() -> None:
    assert provider_key("Lambda Labs") == provider_key("lambda-labs") == "lambdalabs"
    assert identify("gpu_8x_a100", provider="Lambda Labs").gpu_id == "a100-sxm-40gb"
