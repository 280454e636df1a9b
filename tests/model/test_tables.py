"""model_accuracy and technique_effects, filled from the real macros as the build fills them."""

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
import yaml

from pipeline.home import paths
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill

TABLES = ("model_accuracy", "model_accuracy_summary", "technique_effects")


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = in_memory(*TABLES)
    connection.execute("DELETE FROM main.workloads WHERE model NOT IN ('llama-3.1-8b', 'llama-3.2-3b')")
    for mart in Lineage(connection).marts(TABLES):
        fill(connection, mart)
    yield connection
    connection.close()


def test_every_run_has_its_error_and_its_held_out_error(tables: duckdb.DuckDBPyConnection) -> None:
    wanted = tables.execute(
        """SELECT count(measured_memory_gib) + count(measured_tokens_per_second_per_gpu)
                + count(*) FILTER (out_of_memory = 1 AND measured_memory_gib IS NULL)
             FROM main.measured_runs"""
    ).fetchall()
    assert tables.execute("SELECT count(*) FROM main.model_accuracy").fetchall() == wanted
    lacking = tables.execute(
        "SELECT run_id FROM main.model_accuracy WHERE measured IS NOT NULL"
        " AND (error IS NULL OR error_held_out IS NULL OR in_band IS NULL)"
    ).fetchall()
    assert lacking == []


def test_the_summary_is_of_the_record_of_the_calibration(tables: duckdb.DuckDBPyConnection) -> None:
    """The table and calibration.yaml are computed apart: by SQL from the published macros, and by the fit."""
    record = yaml.safe_load((paths.CATALOG_DIR / "calibration.yaml").read_text(encoding="utf-8"))
    columns = "quantity, sources, stranger_median_error, stranger_mean_error, stranger_share_in_band"
    for quantity, sources, median, mean, in_band in tables.execute(
        f"SELECT {columns} FROM main.model_accuracy_summary WHERE grouped_by = 'all'"
    ).fetchall():
        of_a_stranger = record[quantity]["of_a_stranger"]
        assert sources == of_a_stranger["sources"]
        assert median == pytest.approx(of_a_stranger["median"], abs=2e-4)
        assert mean == pytest.approx(of_a_stranger["mean"], abs=2e-4)
        assert in_band == pytest.approx(record["bands"][quantity]["held_out_coverage_by_family"], abs=0.01)


def test_held_out_errors_are_no_worse_than_reviewed(tables: duckdb.DuckDBPyConnection) -> None:
    query = (paths.SQL_DIR / "checks" / "model_errors_do_not_grow.sql").read_text(encoding="utf-8")
    assert tables.execute(query).fetchall() == []
    # Those reviewed are of all runs: one that is not estimated any more is missed.
    runs = tables.execute(
        "SELECT quantity, runs FROM main.model_accuracy_summary WHERE grouped_by = 'all' ORDER BY quantity"
    ).fetchall()
    assert runs == [("memory", 1039), ("speed", 1513)]
    groupings = tables.execute("SELECT DISTINCT grouped_by FROM main.model_accuracy_summary ORDER BY 1")
    assert [name for (name,) in groupings.fetchall()] == [
        "all", "evidence", "family", "gpu", "method", "model size", "source", "stack",
    ]  # fmt: skip
    cursor = tables.cursor()
    cursor.execute("BEGIN")
    cursor.execute("UPDATE main.model_accuracy_summary SET median_error_held_out = 0.0721")
    assert cursor.execute(query).fetchall() == [("memory", "median", 0.0721, Decimal("0.0583"))]
    cursor.execute("ROLLBACK")


def test_techniques_have_their_intended_effect(tables: duckdb.DuckDBPyConnection) -> None:
    rows = tables.execute(
        """SELECT technique, method, median(memory_saved_share), median(time_cost_share)
             FROM main.technique_effects GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    effects = {(technique, method): (saved, cost) for technique, method, saved, cost in rows}
    techniques = {technique for technique, _ in effects}
    assert {
        "gradient checkpointing", "selective checkpointing", "flash attention", "compile", "fused kernels",
        "fused linear loss", "8-bit optimizer", "LoRA", "QLoRA", "double quantization", "FSDP", "ZeRO-2",
        "CPU offload", "activation offload", "fp8",
    } <= techniques  # fmt: skip
    saving = ("gradient checkpointing", "LoRA", "QLoRA", "8-bit optimizer")
    assert min(saved for (technique, _), (saved, _) in effects.items() if technique in saving) > 0.1
    faster = ("fused kernels", "compile", "flash attention", "LoRA")
    assert max(cost for (technique, _), (_, cost) in effects.items() if technique in faster) < 0
    assert 0.15 < effects["gradient checkpointing", "full"][1] < 0.46
    assert effects["CPU offload", "full"][1] > 0
    kept = tables.execute("SELECT DISTINCT gpu_id FROM main.technique_effects ORDER BY ALL").fetchall()
    assert (
        kept
        == tables.execute(
            """SELECT gpu_id FROM main.gpus WHERE has_full_specs AND derived_from IS NULL
            AND architecture NOT IN ('Kepler', 'Maxwell', 'Pascal') ORDER BY ALL"""
        ).fetchall()
    )
