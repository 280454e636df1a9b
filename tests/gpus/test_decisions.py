"""Weighing of statements about one GPU: form factors, providers, other columns that name it."""

import pytest

from pipeline.gpus import catalogue, identify
from pipeline.gpus.candidates import by_form_factor


@pytest.mark.parametrize(
    ("label", "answer", "rule"),
    [
        ("H100 SXM", "h100-sxm-80gb", "label+form_factor+usual_memory"),
        ("H100 SXM 80GB", "h100-sxm-80gb", "label+form_factor+memory"),
        ("H100 HBM3 80GB", "h100-sxm-80gb", "label+memory_type+memory"),
        ("H100 80GB", "h100-80gb", "label+memory"),
        ("H100 NVL", "h100-nvl-94gb", "label+form_factor"),
        ("H100 PCIe NVL", "h100-nvl-94gb", "label+form_factor"),
        ("H100 NVL NVLink", "h100-nvl-94gb", "label+form_factor"),
        ("H100_nvlx8_NVLINK", "h100-nvl-94gb", "label+form_factor"),
        ("H100 PCIe NVL NVLink", "h100-nvl-94gb", "label+form_factor"),
        ("H200 NVL (141GB) NVLink", "h200-nvl-141gb", "label+form_factor+memory"),
        ("H100 NVLink", "h100-pcie-nvlink-80gb", "label+form_factor"),
        ("H100 NVL NVLink 80GB", "ambiguous", "memory_contradicts"),
        ("A100 NVL NVLink 80GB", "a100-pcie-nvlink-80gb", "label+form_factor+memory"),
        ("H100MIG", "ambiguous", "slice_open"),
        ("H100 MIG 40GB", "h100-80gb", "label+usual_memory"),
        ("1/2 H100 MIG", "h100-80gb", "label+usual_memory"),
        ("H100_40GB", "ambiguous", "memory_contradicts"),
        ("H100 NVLink 80GB", "h100-pcie-nvlink-80gb", "label+form_factor+memory"),
        ("H100 SXM NVLink 80GB", "h100-sxm-80gb", "label+form_factor+memory"),
        ("H200 NVLink", "h200-sxm-141gb", "label+form_factor"),
        ("H200 PCIe", "h200-nvl-141gb", "label+form_factor"),
        ("A100 NVL 80GB", "a100-pcie-nvlink-80gb", "label+form_factor+memory"),
        ("A40 NVLink PCIe", "a40", "label+form_factor"),
        ("MI300X NVLink OAM", "mi300x", "label+form_factor"),
        ("V100 NVL 32GB", "ambiguous", "form_factor_contradicts"),
        ("H100 OAM", "ambiguous", "form_factor_contradicts"),
        ("H100 Laptop", "ambiguous", "form_factor_contradicts"),
        ("RTX 4090 PCIe", "rtx-4090", "label+usual_memory"),
        ("RTX 4090 Laptop", "rtx-4090-laptop", "label+form_factor"),
        ("RTX 4090 Max-Q", "rtx-4090-laptop", "label+form_factor"),
        ("RTX PRO 6000 Max-Q Workstation", "rtx-pro-6000-max-q", "label+form_factor"),
        ("RTX PRO 6000 Server", "rtx-pro-6000-server", "label+form_factor"),
        ("RTX PRO 6000 WS", "rtx-pro-6000-workstation", "label+form_factor"),
        ("RTX 6000 Server", "ambiguous", "label+model_open"),
        ("RTX 6000 Server 96GB", "rtx-pro-6000-server", "label+form_factor+memory"),
        ("RTX 6000 Blackwell", "rtx-pro-6000", "label"),
        ("RTX 6000 Ada Blackwell", "rtx-6000-ada", "label"),
        ("A100 SXM", "ambiguous", "label+form_factor+memory_open"),
        ("A100 SXM-80", "a100-sxm-80gb", "label+form_factor+bare_size"),
        ("A100 SXM-81", "ambiguous", "label+form_factor+memory_open"),
        ("RTX 3060-8", "rtx-3060-12gb", "label+usual_memory"),
        ("H100 A100", "ambiguous", "several_models"),
        ("Foo 9000", "unknown", "no_known_model"),
        ("Xeon", "not_a_gpu", "not_a_gpu"),
    ],
)
def test_what_decides(label: str, answer: str, rule: str) -> None:
    found = identify(label)
    assert (found.gpu_id or found.status, found.rule) == (answer, rule)


@pytest.mark.parametrize(
    ("model", "stated", "form_factors", "has_decided"),
    [
        ("RTX PRO 4500", set(), {""}, False),
        ("RTX PRO 4500", {"Server"}, {"Server"}, True),
        ("RTX PRO 4500", {"PCIe"}, {""}, False),
        ("RTX 4000 Ada", set(), {""}, False),
        ("RTX 3070", {"Laptop"}, {"Laptop"}, True),
        ("RTX 3070", set(), {""}, False),
        ("H100", set(), {"SXM", "PCIe", "NVL"}, False),
        ("H100", {"OAM"}, set(), False),
        ("L40S", {"OAM"}, {"PCIe"}, False),
    ],
)
def test_the_cards_of_a_stated_form_factor(
    model: str, stated: set[str], form_factors: set[str], has_decided: bool
) -> None:
    cards, decided = by_form_factor(list(catalogue.cards_of_model()[model]), stated)
    assert ({card.form_factor for card in cards}, decided) == (form_factors, has_decided)


@pytest.mark.parametrize(
    ("label", "context", "answer", "rule"),
    [
        ("A100 SXM", "memory=80", "a100-sxm-80gb", "label+form_factor+bare_size"),
        ("A100 SXM", "memory=0", "ambiguous", "label+form_factor+memory_open"),
        ("H100 SXM", "memory=96", "h100-sxm-80gb", "label+form_factor+usual_memory"),
        ("A100", "vram_gb=80; socket=SXM4", "a100-sxm-80gb", "label+form_factor+memory_column"),
        ("A100 80GB", "vram_gb=40", "ambiguous", "memory_contradicts"),
        ("A100 40GB", "vram_gb=55", "ambiguous", "memory_column_contradicts"),
        ("A100 PCIe", "vram_gb=64", "ambiguous", "memory_column_contradicts"),
        ("A100", "vram_total_gb=640; count=8", "a100-80gb", "label+total_memory_column"),
        ("A100", "vram_total_gb=440; count=8", "ambiguous", "total_memory_column_contradicts"),
        ("A100 80GB", "vram_total_gb=640; vram_gb=80; count=8", "a100-80gb", "label+total_memory_column"),
    ],
)
def test_what_decides_with_other_columns(label: str, context: str, answer: str, rule: str) -> None:
    found = identify(label, context=context)
    assert (found.gpu_id or found.status, found.rule) == (answer, rule)


@pytest.mark.parametrize(
    ("label", "candidates"),
    [
        # What contradicts decides which cards stay possible.
        ("A100 PCIe 64GB", {"a100-sxm-64gb"}),
        ("A100 PCIe 55GB", {card.gpu_id for card in catalogue.cards_of_model()["A100"]}),
        ("H100 Laptop", {card.gpu_id for card in catalogue.cards_of_model()["H100"]}),
    ],
)
def test_the_candidates_of_a_contradiction(label: str, candidates: set[str]) -> None:
    assert set(identify(label).candidates) == candidates


@pytest.mark.parametrize(
    ("label", "provider", "gpu_id"),
    [
        ("A100 SXM4", "lambda", "a100-sxm-40gb"),
        ("lambda_A100 SXM4", "lambda", "a100-sxm-40gb"),
        ("lambda_A100 SXM4", "", "a100-sxm-80gb"),  # of a reseller: only what Lambda offers counts
        ("lambda A100 SXM4", "", None),
        ("A100", "lambda", "a100-sxm-80gb"),
        ("A100 80GB", "lambda", "a100-sxm-80gb"),
        ("V100", "verda", "v100-16gb"),
        ("V100 SXM", "verda", "v100-sxm-16gb"),
        ("V100 32GB", "verda", "v100-32gb"),
        ("A100 NVLink 80GB", "coreweave", "a100-sxm-80gb"),
        ("A100 NVLink 80GB", "", "a100-pcie-nvlink-80gb"),
        ("A100 PCIe", "hyperstack", "a100-pcie-80gb"),
        ("hyperstack_A100 SXM", "hyperstack", "a100-sxm-80gb"),
        ("L40S", "lambda", "l40s"),
        ("H100_NVL NVLink", "spheron", "h100-pcie-nvlink-80gb"),
    ],
)
def test_what_a_provider_means(label: str, provider: str, gpu_id: str | None) -> None:
    found = identify(label, provider=provider)
    assert found.gpu_id == gpu_id
    if gpu_id:
        assert found.confidence == "certain"


@pytest.mark.parametrize(
    ("label", "provider", "context", "answer", "rule"),
    [
        ("H100", "", "gpu_name=NVIDIA H100 SXM5 80GB", "h100-sxm-80gb", "label+usual_memory+name_column"),
        ("H100 SXM", "", "gpu_name=NVIDIA H100", "h100-sxm-80gb", "label+form_factor+usual_memory"),
        ("A100", "", "gpu_name=A100 80GB", "a100-80gb", "label+memory_open+name_column"),
        ("A100 80GB", "", "name=A100 SXM4; model=A100", "a100-sxm-80gb", "label+memory+name_column"),
        ("A100", "", "name=A100 PCIe", "ambiguous", "label+memory_open"),
        ("Flavor 7", "", "gpu_name=L40S", "l40s", "name_column+label"),
        ("Flavor 7", "", "gpu_name=A100", "ambiguous", "name_column+label+memory_open"),
        ("Flavor 7", "", "gpu_name=Flavor 8", "unknown", "no_known_model"),
        ("L40S", "", "gpu_name=Flavor 8", "l40s", "label"),
        ("L40S", "", "gpu_name=Xeon", "l40s", "label"),
        ("Xeon", "", "gpu_name=L40S", "not_a_gpu", "not_a_gpu"),
        ("L40S", "", "gpu_name=L40", "ambiguous", "name_column_contradicts"),
        ("A100 80GB", "", "gpu_name=A100 40GB", "ambiguous", "name_column_contradicts"),
        # What Lambda means by a bare A100 is no contradiction of a settled label, but settles an open one.
        ("A100 PCIe 40GB", "lambda", "gpu_name=A100", "a100-pcie-40gb", "label+form_factor+memory"),
        ("Flavor 7", "lambda", "gpu_name=A100", "a100-sxm-80gb", "name_column+label+provider"),
    ],
)
def test_other_columns_that_name_the_gpu(
    label: str, provider: str, context: str, answer: str, rule: str
) -> None:
    found = identify(label, provider=provider, context=context)
    assert (found.gpu_id or found.status, found.rule) == (answer, rule)


def test_all_of_an_answer() -> None:
    card = catalogue.card_by_id()["a100-sxm-80gb"]
    for label, context in [("2x A100 SXM4 80GB", ""), ("2x A100", "gpu_name=A100 SXM4 80GB")]:
        found = identify(label, context=context)
        assert (found.status, found.gpu_id, found.vendor) == ("matched", card.gpu_id, card.vendor)
        assert (found.model, found.form_factor, found.memory_gb) == ("A100", "SXM", 80)
        assert (found.gpu_count, found.gpu_fraction, found.confidence) == (2, None, "certain")
        assert found.candidates == (card.gpu_id,)


def test_all_of_an_answer_that_is_not_a_gpu() -> None:
    found = identify("inf2.48xlarge")
    assert (found.status, found.gpu_id, found.vendor, found.model) == (
        "not_a_gpu",
        None,
        "aws",
        "Inferentia2",
    )
    assert (found.memory_gb, found.gpu_count, found.confidence) == (32, 12, "certain")


def test_what_the_candidates_share() -> None:
    models = identify("4x RTX 6000")
    assert (models.vendor, models.model, models.gpu_count, models.confidence) == ("nvidia", None, 4, "none")
    vendors = identify("H100 MI300X")
    assert (vendors.vendor, vendors.model) == (None, None)
    assert (identify("RTX 4090").form_factor, identify("H100 80GB").form_factor) == (None, None)
