"""Machine names: the rules of catalog/instance_types.csv. What a label with such a name means is in
answers.csv."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_table
from pipeline.gpus.instance_types import Family, InstanceType, find_instance_type
from pipeline.home import paths
from tests.gpus.tables import Row, mistakes


def _count(row: Row) -> dict[str, object]:
    rule = row["gpu_count_rule"]
    pattern = r"m(?:-(?P<size>\d+))?" if rule == "size" else r"m(?:-(?P<n>\d+))?"
    facts = {"pattern": pattern, "gpu": "L4", "gpu_count": rule, "sizes": row["sizes"]}
    family = TypeAdapter(Family).validate_python(facts)
    found = family.read(family.pattern.fullmatch(row["name"]))  # type: ignore[arg-type]
    assert found == InstanceType("L4", found.gpu_count, None)
    return {"gpu_count": found.gpu_count}


def test_the_count_of_a_family() -> None:
    assert mistakes("families.csv", _count) == []


def test_a_malformed_row_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    for column, value in (("pattern", "a("), ("sizes", "xlarge"), ("sizes", "a:two"), ("sizes", "a:1:2")):
        row = {"provider": "", "pattern": "a", "gpu": "L4", "gpu_count": "", "sizes": ""} | {column: value}
        (tmp_path / "instance_types.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
        with pytest.raises(CatalogError, match=rf"instance_types\.csv, line 2: {column}"):
            catalog_table("instance_types.csv", Family)


def _machine(row: Row) -> dict[str, object]:
    found = find_instance_type(row["name"], row["provider"])
    return {part: found and getattr(found, part) for part in ("gpu_label", "gpu_count", "total_memory_gb")}


def test_a_name_in_any_spelling_and_of_one_provider() -> None:
    """A name without a machine has none."""
    assert mistakes("machine_names.csv", _machine) == []
