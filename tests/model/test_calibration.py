import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest
import yaml

from pipeline.contracts.training import EVIDENCES, METHODS
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.model import bands
from pipeline.model.calibrate import data_hash
from pipeline.model.fitting import QUANTITIES, Fitter, gemm_ratio, read_parameters
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import in_memory


def test_held_out_errors_are_no_worse_than_reviewed(sample_home: Home, tmp_path: Path) -> None:
    query = (paths.SQL_DIR / "checks" / "model_errors_do_not_grow.sql").read_text()
    with connect(Path(shutil.copy(sample_home.published, tmp_path))) as connection:
        assert connection.execute(query).fetchall() == []
        # Those reviewed are of all runs: one that is not estimated any more is missed.
        runs = connection.execute(
            "SELECT quantity, runs FROM main.model_accuracy_summary WHERE grouped_by = 'all' "
            "ORDER BY quantity"
        ).fetchall()
        assert runs == [("memory", 814), ("speed", 1101)]
        connection.execute("UPDATE main.model_accuracy_summary SET median_error_held_out = 0.0681")
        assert connection.execute(query).fetchall() == [("memory", "median", 0.0681, Decimal("0.0618"))]


def test_the_record_is_of_these_files(model: duckdb.DuckDBPyConnection) -> None:
    record = yaml.safe_load((paths.CATALOG_DIR / "calibration.yaml").read_text())
    assert record["data_sha256"] == data_hash(model), (
        "the data changed since the calibration: run gpufare calibrate"
    )
    assert date.fromisoformat(record["calibrated_on"])
    own_card = record["fit_verdicts"]["on_their_own_card"]
    assert own_card["balanced_accuracy"] >= 0.9
    assert own_card["fits_that_die_by_family"] <= 0.05
    for quantity in ("memory", "speed"):
        assert 0.7 <= record["bands"][quantity]["held_out_coverage_by_family"] <= 0.87


def test_a_family_is_held_out_whole(model: duckdb.DuckDBPyConnection) -> None:
    """Constants, verdicts and bands of a calibration without a family must not depend on its runs."""
    names = {
        row[0] for row in model.execute("SELECT DISTINCT calibration FROM main.model_constants").fetchall()
    }
    families = model.execute("SELECT DISTINCT 'without ' || family FROM main.measured_sources").fetchall()
    assert names == {"all", *(name for (name,) in families)}


def test_runs_constrain_every_free_constant() -> None:
    """A constant that all runs leave as wide as its prior is fixed instead, with the reason for its value."""
    record = yaml.safe_load((paths.CATALOG_DIR / "calibration.yaml").read_text())
    widths = record["memory"]["posterior_widths"] | record["speed"]["posterior_widths"]
    assert set(widths) == {p.name for p in read_parameters() if p.relative_width > 0}
    assert {name: width for name, width in widths.items() if width > 0.97} == {}


def test_no_constant_belongs_to_a_source_or_a_run(model: duckdb.DuckDBPyConnection) -> None:
    names = {parameter.name for parameter in read_parameters()}
    sources = {row[0] for row in model.execute("SELECT DISTINCT source FROM main.measured_runs").fetchall()}
    assert not [name for name in names for source in sources if source in name]
    assert len(names) < 100


def test_a_fit_repeats_to_the_digit_and_recovers_the_true_constants() -> None:
    """Speeds made by known constants are fitted twice: the same digits, and close to what made them."""
    connection = in_memory("memory_of", "speed_of")
    quantity = QUANTITIES[1]
    true = {
        p.name: p.prior * (1.3 if p.name == "attention_mosaic" else 1.0) for p in read_parameters()
    } | gemm_ratio(connection)
    connection.execute("DELETE FROM main.measured_runs WHERE source <> 'llm_foundry' OR gpu_count > 64")
    connection.execute("DELETE FROM main.model_constants")
    connection.executemany("INSERT INTO main.model_constants VALUES ('all', ?, ?)", list(true.items()))
    connection.execute(
        "UPDATE main.measured_runs SET measured_tokens_per_second_per_gpu = s.tokens_per_second_per_gpu "
        "FROM (SELECT run_id, tokens_per_second_per_gpu FROM speed_terms_of('main.measured_runs')) s WHERE s.run_id = measured_runs.run_id"  # noqa: E501
    )
    points = []
    for _ in range(2):
        fitter = Fitter(connection, quantity, read_parameters(), gemm_ratio(connection))
        points.append(fitter.fit(np.ones(len(fitter.run_ids), dtype=bool)).point)
    connection.close()
    assert points[0].tolist() == points[1].tolist()
    assert fitter.constants_at(points[0])["attention_mosaic"] == pytest.approx(
        true["attention_mosaic"], rel=0.15
    )


def test_weighted_quantile_of_equal_weights() -> None:
    values = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    assert bands.weighted_quantile(values, np.ones(5), 0.5) == 3.0
    heavy = bands.weighted_quantile(values, np.array([1.0, 1.0, 1.0, 100.0, 1.0]), 0.5)
    assert heavy > 4.5


def test_bands_exist_for_every_group(model: duckdb.DuckDBPyConnection) -> None:
    groups = 2 * len(METHODS) * len(bands.GPU_CLASSES) * len(EVIDENCES)
    calibrations = model.execute(
        "SELECT calibration, count(*) FROM main.model_bands WHERE low_ratio <= 1 AND high_ratio >= 1 "
        "GROUP BY calibration"
    ).fetchall()
    families = model.execute("SELECT DISTINCT 'without ' || family FROM main.measured_sources").fetchall()
    assert dict(calibrations) == dict.fromkeys(["all", *(name for (name,) in families)], groups)
    classes = model.execute(
        "SELECT DISTINCT gpu_class(vendor, architecture, segment, form_factor) FROM main.gpus WHERE has_full_specs"  # noqa: E501
    ).fetchall()
    assert {row[0] for row in classes} <= set(bands.GPU_CLASSES)


@pytest.mark.parametrize(
    ("gpu", "group"),
    [
        ("a100-sxm-80gb", "hopper and a100 sxm"),
        ("h200-sxm-141gb", "hopper and a100 sxm"),
        ("a100-pcie-80gb", "pcie"),
        ("l40s", "pcie"),
        ("rtx-4090", "consumer"),
        ("rtx-5090", "blackwell"),
        ("gb300", "blackwell"),
        ("t4", "before ampere"),
        ("v100-sxm-32gb", "before ampere"),
        ("mi300x", "other vendor"),
    ],
)
def test_class_of_a_gpu(model: duckdb.DuckDBPyConnection, gpu: str, group: str) -> None:
    query = "SELECT gpu_class(vendor, architecture, segment, form_factor) FROM main.gpus WHERE gpu_id = $1"
    assert model.execute(query, [gpu]).fetchall() == [(group,)]


def test_the_catalogue_of_runs_names_known_models_and_gpus(model: duckdb.DuckDBPyConnection) -> None:
    assert (
        model.execute(
            "SELECT run_id FROM main.measured_runs WHERE model NOT IN (SELECT model FROM main.models) "
            "OR gpu NOT IN (SELECT gpu_id FROM main.gpus WHERE has_full_specs)"
        ).fetchall()
        == []
    )
    assert (
        model.execute("SELECT run_id FROM main.measured_runs GROUP BY run_id HAVING count(*) > 1").fetchall()
        == []
    )


# The ids that files of runs for `gpufare estimate` may use.
RUN_GPUS = """
    t4 a10g rtx-3090 rtx-a5000 rtx-a6000 rtx-4090 rtx-4080 rtx-6000-ada a100-sxm-40gb a100-sxm-80gb
    h100-sxm-80gb h100-sxm-96gb h200-sxm-141gb b200-sxm-180gb gb200 gb300
"""
RUN_MODELS = """
    baichuan2-13b baichuan2-7b bloomz-7b1 chatglm3-6b codellama-34b deepseek-coder-1.3b falcon-40b
    falcon-7b fms-34b gemma-2-2b gemma-2-9b gemma-2b gemma-7b llama-2-13b llama-2-70b llama-2-7b
    llama-3-70b llama-3-8b llama-3.1-405b llama-3.2-1b llama-3.2-3b llama-33b llama-65b mistral-7b
    mistral-7b-v0.3 mixtral-8x7b mpt-125m mpt-13b mpt-1b mpt-30b mpt-350m mpt-3b mpt-70b mpt-760m mpt-7b
    mt0-xxl-13b phi-1.5 phi-2 phi-3-mini powerlm-3b qwen-1.8b qwen-14b qwen-72b qwen-7b qwen2.5-0.5b
    qwen2.5-1.5b qwen2.5-32b qwen2.5-3b qwen2.5-7b santacoder smollm2-1.7b smollm2-135m smollm2-360m
    stablelm-alpha-3b t0-3b tinyllama-1.1b yi-34b yi-6b zephyr-7b
"""


@pytest.mark.parametrize(
    ("table", "key", "ids"), [("models", "model", RUN_MODELS), ("gpus", "gpu_id", RUN_GPUS)]
)
def test_every_id_of_the_run_files_is_known(
    model: duckdb.DuckDBPyConnection, table: str, key: str, ids: str
) -> None:
    known = {row[0] for row in model.execute(f"SELECT {key} FROM main.{table}").fetchall()}
    assert set(ids.split()) - known == set()
