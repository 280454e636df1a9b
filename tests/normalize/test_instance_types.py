"""Machine names: the rules of catalog/instance_types.csv, and where in a label a name is found."""

import pytest

from pipeline.catalog.source_config import CatalogError
from pipeline.offers.gpu_matching import identify
from pipeline.offers.gpu_matching.catalogue import provider_key
from pipeline.offers.gpu_matching.instance_types import InstanceType, find_instance_type, read_family


@pytest.mark.parametrize(
    ("rule", "sizes", "name", "gpu_count"),
    [
        ("", "", "m-4", None),
        ("2", "", "m-4", 2),
        ("n", "", "m-4", 4),
        ("n/24", "", "m-48", 2),
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
    row = {"provider": "", "pattern": pattern, "gpu": "L4", "gpu_count": rule, "sizes": sizes}
    family = read_family(row)
    match = family.pattern.fullmatch(name)
    assert match is not None
    assert family.read(match) == InstanceType("L4", gpu_count, None)


@pytest.mark.parametrize(
    ("column", "value"),
    [("pattern", "a("), ("sizes", "xlarge"), ("sizes", "xlarge:two"), ("sizes", "a:1:2")],
)
def test_a_malformed_row_is_reported(column: str, value: str) -> None:
    row = {"provider": "", "pattern": "a", "gpu": "L4", "gpu_count": "", "sizes": ""}
    with pytest.raises(CatalogError, match=r"instance_types\.csv, pattern"):
        read_family(row | {column: value})


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
        ("H100 (unknown-name-1g) p4d.24xlarge", "a100-sxm-40gb", 8),
        ("H100 (unknown-name)", "h100-80gb", None),
        ("A100_PCIe_80GB cluster", "a100-pcie-80gb", None),
        ("see p5.48xlarge,", "h100-sxm-80gb", 8),
    ],
)
def test_a_machine_name_among_other_words(label: str, gpu_id: str, gpu_count: float | None) -> None:
    found = identify(label)
    assert (found.gpu_id, found.gpu_count) == (gpu_id, gpu_count)


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
