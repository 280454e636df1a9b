"""Machine names: the rules of catalog/instance_types.csv. What a label with such a name means is in
answers.csv."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_table
from pipeline.gpus.catalogue import provider_key
from pipeline.gpus.instance_types import Family, InstanceType, find_instance_type
from pipeline.home import paths


def test_the_count_of_a_family() -> None:
    asked: list[tuple[str, str, str, float | None]] = [
        ("", "", "m-4", None),
        ("2", "", "m-4", 2),
        ("n", "", "m-4", 4),
        ("n/24", "", "m-48", 2),
        ("n/24", "", "m-60", None),  # 2.5 GPUs
        ("n/24", "", "m-8", 1 / 3),
        ("n/24", "", "m-16", None),  # two thirds of one
        ("n/24", "", "m-12", 0.5),
        ("n/24", "", "m-0", 0),
        ("n/1", "", "m-4", 4),
        ("n", "", "m", 1),
        ("size", "4:2 8:1/8", "m-4", 2),
        ("size", "4:2 8:1/8", "m-8", 0.125),
        ("size", "4:2 8:1/8", "m-16", None),
    ]
    wrong = []
    for rule, sizes, name, gpu_count in asked:
        pattern = r"m(?:-(?P<size>\d+))?" if rule == "size" else r"m(?:-(?P<n>\d+))?"
        row = {"pattern": pattern, "gpu": "L4", "gpu_count": rule, "sizes": sizes}
        family = TypeAdapter(Family).validate_python(row)
        match = family.pattern.fullmatch(name)
        found = match and family.read(match)
        if found != InstanceType("L4", gpu_count, None):
            wrong.append((rule, sizes, name, found))
    assert wrong == []


def test_a_malformed_row_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    for column, value in (("pattern", "a("), ("sizes", "xlarge"), ("sizes", "a:two"), ("sizes", "a:1:2")):
        row = {"provider": "", "pattern": "a", "gpu": "L4", "gpu_count": "", "sizes": ""} | {column: value}
        (tmp_path / "instance_types.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
        with pytest.raises(CatalogError, match=rf"instance_types\.csv, line 2: {column}"):
            catalog_table("instance_types.csv", Family)


def test_a_name_in_any_spelling_and_of_one_provider() -> None:
    h100, a100 = ("H100 SXM 80GB", 8, None), ("A100 SXM 40GB", 4, None)
    asked: dict[tuple[str, str], tuple[str, float | None, float | None] | None] = {
        ("p5.48xlarge", ""): h100,
        ("P5.48XLARGE", ""): h100,
        ("ml.p5.48xlarge", ""): h100,
        ("p5.96xlarge", ""): ("H100 SXM 80GB", None, None),
        ("a2-highgpu-4g", ""): a100,
        ("a2_highgpu 4g", ""): a100,
        ("-a2--highgpu/4g", ""): a100,
        ("Standard_NC24ads_A100_v4", ""): ("A100 PCIe 80GB", 1, None),
        ("StandardNC24ads_A100_v4", ""): ("A100 PCIe 80GB", 1, None),
        ("Virtual Machines_NC24ads_A100_v4", ""): ("A100 PCIe 80GB", 1, None),
        ("Standard_D4s_v5", ""): ("cpu", None, None),
        ("v4-8", ""): ("tpu v4", 4, None),
        ("BM.GPU.L40S.4", ""): ("l40s", 4, None),
        ("vcg-a100-1c-6g-4vram", "vultr"): ("A100 80GB", 0.05, 4),
        ("gpu_8x_a100", "lambda"): ("A100 SXM 40GB", 8, None),
        ("gpu_4x_a100", "lambda"): ("A100 PCIe 40GB", 4, None),
        ("p5.48xlarge", "lambda"): h100,
        ("p5.48xlarge", "nobody"): h100,
        **{("gpu_8x_a100", provider): None for provider in ("", "aws", "nobody")},
        **{(name, ""): None for name in ("", "-", "h100", "p5.48xlarge-large-and-more", "xp5.48xlarge", "é")},
    }
    found = {asking: find_instance_type(*asking) for asking in asked}
    assert found == {asking: machine and InstanceType(*machine) for asking, machine in asked.items()}


def test_provider_names_are_compared_by_letters_and_digits() -> None:
    keys = [provider_key(name) for name in ("Lambda Labs", "lambda-labs", "E2E")]
    assert keys == ["lambdalabs", "lambdalabs", "e2e"]
