"""Machines of a made-up provider in catalog/machine_sizes.csv, the same in Python and in SQL."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.catalog.machine_sizes import machine_size, machine_size_rows, machine_sizes, named_machines
from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import CatalogError, configs
from pipeline.catalog.tables import catalog_rows
from pipeline.gpus.catalogue import card_by_id
from pipeline.home import paths
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.load import load_catalog

HEADER = (
    "source,gpu_id,tier,gpu_counts,node_network_gbps,max_nodes,network_attached,"
    "evidence,evidence_url,read_on,note\n"
)
ROWS = (
    "acme,,,8,,,,documented,,2026-08-22,\n"
    "acme,,shared,1,,,yes,documented,,2026-08-22,\n"
    "acme,h100-sxm-80gb,,1;2;8,3200,16,no,documented,,2026-08-22,\n"
    "acme,h100-sxm-80gb,shared,1;2,,,yes,documented,,2026-08-22,\n"
)


@pytest.fixture
def with_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts rows in the place of the catalogue's machine sizes."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    for file in paths.CATALOG_DIR.iterdir():
        (folder / file.name).symlink_to(file)
    monkeypatch.setattr(paths, "CATALOG_DIR", folder)
    monkeypatch.setattr("pipeline.catalog.machine_sizes.machine_sizes", machine_sizes.__wrapped__)

    def put(rows: str) -> None:
        (folder / "machine_sizes.csv").unlink()
        (folder / "machine_sizes.csv").write_text(HEADER + rows)

    return put


def test_the_row_of_the_card_counts_first_and_then_that_of_the_tier(with_rows: Callable[[str], None]) -> None:
    with_rows(ROWS)
    expected = {
        ("h100-sxm-80gb", "shared"): (1, 2),
        ("h100-sxm-80gb", "secure"): (1, 2, 8),
        ("h100-sxm-80gb", None): (1, 2, 8),
        ("l40s", "shared"): (1,),
        ("l40s", None): (8,),
        (None, None): (8,),
    }
    found = {asked: machine_size("acme", *asked) for asked in expected}
    assert {asked: row and row.gpu_counts for asked, row in found.items()} == expected
    assert machine_size("other", "l40s", None) is None
    assert [row["gpu_counts"] for row in machine_size_rows()] == [[8], [1], [1, 2, 8], [1, 2]]
    asked = ", ".join(f"({n}, {g!r}, {t!r})" for n, (g, t) in enumerate(expected)).replace("None", "NULL")
    with connect() as connection:
        create(connection, "machine_sizes", "catalogued_sizes")
        load_catalog(connection)
        query = f"""WITH asked AS (
            SELECT 'acme' AS source, place, gpu_id::VARCHAR AS gpu_id, tier::VARCHAR AS tier
            FROM (VALUES {asked}) AS t(place, gpu_id, tier)
        ) SELECT gpu_id, tier, size.gpu_counts, size.network_attached FROM catalogued_sizes('asked')"""
        in_sql = {(gpu_id, tier): (tuple(counts), attached) for gpu_id, tier, counts, attached
                  in connection.execute(query).fetchall()}  # fmt: skip
    assert in_sql == {asked: (row.gpu_counts, row.network_attached) for asked, row in found.items() if row}


def test_a_row_that_cannot_be_meant_is_refused(with_rows: Callable[[str], None]) -> None:
    complaints = {
        "acme,,,2;1,,,,documented,,2026-08-22,\n": r"gpu_counts \(2, 1\) are not ascending, each once",
        "acme,,,,,,,documented,,2026-08-22,\n": "line 2: gpu_counts",
        "acme,,,0;1,,,,documented,,2026-08-22,\n": "greater than 0",
        "acme,,,8,,4,,documented,,2026-08-22,\n": "max_nodes needs node_network_gbps: jobs need a known",
        "acme,,,8,100,1,,documented,,2026-08-22,\n": "line 2: max_nodes",
        "acme,,,8,,,,documented,,2026-08-22,\n" * 2: "two rows for acme any any",
    }
    for rows, complaint in complaints.items():
        with_rows(rows)
        with pytest.raises(CatalogError, match=complaint):
            machine_sizes.__wrapped__()


def test_the_named_machines_agree_with_the_rest_of_the_catalogue() -> None:
    """Their cards and regions are known, and a machine's number of GPUs is one that its source rents."""
    for source in {row["source"] for row in catalog_rows("machines.csv")}:
        assert source in configs()
        for row in named_machines(source):
            assert row.gpu_id is None or row.gpu_id in card_by_id(), row
            assert row.evidence_url.startswith("https://"), row
            assert row.gpu_id or (row.vcpus and row.ram_gib), row
            assert all(place_of(source, region).country for region in row.regions), row
            size = machine_size(source, row.gpu_id, row.tier) if row.gpu_count else None
            assert size is None or row.gpu_count in size.gpu_counts, row


def test_memory_in_the_settings_of_a_source_is_that_of_its_named_machines() -> None:
    memory = {row.instance_type: row.ram_gib for row in named_machines("oci")}
    stated = configs()["oci"].settings["memory_gib"]
    assert {name: memory[name] for name in stated} == stated


def test_a_machine_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "source,instance_type,gpu_id,tier,gpu_count,vcpus,ram_gib,regions,evidence_url,read_on,note\n"
    row = "acme,big,,,,8,64,here;there,https://acme.example,2026-08-22,\n"
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    (tmp_path / "machines.csv").write_text(header + row)
    (only,) = named_machines.__wrapped__("acme")
    assert only.regions == ("here", "there")
    (tmp_path / "machines.csv").write_text(header + 2 * row)
    with pytest.raises(CatalogError, match=r"machines\.csv has two rows for acme big"):
        named_machines.__wrapped__("acme")
