"""The limits of evidence levels and of error bands, on both sides and exactly on them."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pipeline.contracts.training import METHODS
from pipeline.model import bands
from pipeline.model.bands import Band, Residuals, band, coverage, family_weights, weighted_quantile, widenings
from tests.model.conftest import Row, answers, ask, cases
from tests.model.formulas import shown_memory, shown_speed

A_RUN = """
    SELECT run_id FROM main.measured_runs
    WHERE gpu = 'h100-sxm-80gb' AND method = 'full' AND gpu_count = 8
        AND measured_tokens_per_second_per_gpu > 0 AND measured_memory_gib IS NULL
    ORDER BY run_id LIMIT 1
"""
NEEDS: list[tuple[dict[str, Any], str]] = cases("evidence_needs.yaml")["needs"]


def test_evidence_is_how_near_the_nearest_run_is(scratch: duckdb.DuckDBPyConnection) -> None:
    """With a single measured run: full fine-tuning on eight H100 SXM, of whose memory nothing is said.

    Others, of QLoRA, show that H200 SXM and the H100 without peer access were measured at all.
    """
    scratch.execute(
        f"DELETE FROM main.measured_runs WHERE run_id <> ({A_RUN}); INSERT INTO main.measured_runs"
        " SELECT * EXCLUDE (card) REPLACE (card AS run_id, card AS gpu, 'qlora' AS method)"
        " FROM main.measured_runs, (VALUES ('h200-sxm-141gb'), ('h100-sxm-80gb alone')) AS c (card);"
        "INSERT INTO main.gpus BY NAME SELECT * REPLACE (gpu_id || ' alone' AS gpu_id, FALSE AS peer_to_peer)"
        " FROM main.gpus WHERE gpu_id = 'h100-sxm-80gb'"
    )
    (run,) = ask(
        scratch,
        "SELECT 'all' AS calibration, params_total::DOUBLE AS params_total, experts, family, r.*"
        " FROM main.measured_runs AS r JOIN main.models USING (model)"
        " JOIN main.measured_sources AS s ON s.source = r.source WHERE method = 'full'",
    )
    needs = [need_of(run, other) for other, _ in NEEDS]
    found = answers(scratch, "speed_evidence", needs)
    expected = [(evidence, run["run_id"] if evidence == "measured" else None) for _, evidence in NEEDS]
    assert [(row["evidence"], row["evidence_run"]) for row in found] == expected
    assert {row["class"] for row in found} == {"hopper and a100 sxm", "pcie"}
    scratch.execute("UPDATE main.measured_runs SET checkpointing = NULL")
    assert answers(scratch, "speed_evidence", needs[:1])[0]["evidence"] == "interpolated"


def need_of(run: Row, other: dict[str, Any]) -> Row:
    """Return the need of a job like the run but for ``other``: a name, or a ratio of a number."""
    need = {name: run[name] for name in run if name not in ("run_id", "family")}
    for name, value in other.items():
        if name == "peer_to_peer":
            need["gpu"] += " alone"
        else:
            need[name] = value if isinstance(value, str) or name == "experts" else need[name] * value
    if need["calibration"] == "its own":
        need["calibration"] = f"without {run['family']}"
    return need


def test_answers_have_the_band_of_their_evidence(model: duckdb.DuckDBPyConnection) -> None:
    """The columns of memory_of and speed_of that are not those of the terms."""
    runs: list[Row] = [
        {"model": name, "gpu": gpu, "method": method, "memory_metric": metric, "offload": offload}
        for name, gpu, method in (
            ("llama-3.1-8b", "a100-sxm-80gb", "full"), ("llama-3.1-8b", "l4", "lora"),
            ("mixtral-8x7b", "rtx-4090", "qlora"), ("llama-3.2-1b", "mi300x", "pretrain"),
        )
        for metric, offload in (("alloc", ""), ("smi", "cpu"))
    ]  # fmt: skip
    bands = {tuple(row[:5]): row[5:7] for row in model.execute("FROM main.model_bands").fetchall()}
    classes = model.execute(
        "SELECT gpu_id, gpu_class(vendor, architecture, segment, form_factor) FROM main.gpus"
    ).fetchall()
    for quantity, macro, figure in (
        ("memory", "memory", "memory_gib"), ("speed", "speed", "tokens_per_second_per_gpu"),
    ):  # fmt: skip
        found, terms = answers(model, f"{macro}_of", runs), answers(model, f"{macro}_terms_of", runs)
        for row, term, run in zip(found, terms, runs, strict=True):
            gpu_class = "any" if quantity == "memory" else dict(classes)[run["gpu"]]
            low, high = bands["all", quantity, run["method"], gpu_class, row["evidence"]]
            if quantity == "memory":
                fits = term["needed_gib"] <= term["usable_memory_gib"]
                expected = shown_memory(term) | {"fits": fits}
            else:
                peak = term["dense_16bit_tflops"] * 1e12
                mfu = term[figure] * 2 * term["product_passes"] * term["linear_active"] / peak
                expected = shown_speed(term) | {"mfu": mfu, "step_seconds": term["step_seconds"]}
            expected |= {f"{figure}_low": term[figure] * low, f"{figure}_high": term[figure] * high}
            numbers = {name: value for name, value in expected.items() if not isinstance(value, str)}
            assert {name: row[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)
            words = expected.keys() - numbers.keys()
            assert {name: row[name] for name in words} == {name: expected[name] for name in words}


def test_bands_exist_for_every_group(model: duckdb.DuckDBPyConnection) -> None:
    groups = len(METHODS) * (1 * 2 + 6 * 3)  # classes x kinds of evidence, of memory and of speed
    calibrations = model.execute(
        "SELECT calibration, count(*) FROM main.model_bands WHERE low_ratio <= 1 AND high_ratio >= 1"
        " AND calibration <> 'worked' GROUP BY calibration"
    ).fetchall()
    families = model.execute("SELECT DISTINCT 'without ' || family FROM main.measured_sources").fetchall()
    assert dict(calibrations) == dict.fromkeys(["all", *(name for (name,) in families)], groups)


def _residuals(values: np.ndarray, *group: str, family: str = "a") -> Residuals:
    names = dict(zip((*bands.COLUMNS_OF_GROUP, "family"), (*group, family), strict=True))
    return pl.DataFrame({"value": values}, schema={"value": pl.Float64}).with_columns(
        **{column: pl.lit(name) for column, name in names.items()}
    )


def test_each_family_counts_alike_however_many_runs_it_has() -> None:
    families = np.array(["a"] * 98 + ["b", "b"])
    weights = family_weights(families)
    assert weights[families == "a"].sum() == pytest.approx(1) == weights[families == "b"].sum()
    many = _residuals(np.full(98, 0.0), "full", "pcie", "measured")
    few = _residuals(np.full(2, 0.5), "full", "pcie", "measured", family="b")
    found = band(pl.concat([many, few]), ("full", "pcie", "measured"))
    assert found.high > 0.3  # two of a hundred runs, and one of two families
    assert coverage(np.array([True] * 98 + [False] * 2), families) == pytest.approx(0.5)


def test_a_group_of_few_families_leans_on_the_group_around_it() -> None:
    wide = _residuals(np.linspace(-1, 1, 201), "full", "pcie", "measured", family="wide")
    narrow = [_residuals(np.full(5, 0.05), "lora", "pcie", "measured", family=f"n{i}") for i in range(2)]
    found, around = (
        band(pl.concat([wide, *narrow]), (method, "pcie", "measured")) for method in ("lora", "qlora")
    )
    share = 2 / (2 + bands.PARENT_FAMILIES)
    assert found.runs == 10
    assert found.low == pytest.approx(share * 0.05 + (1 - share) * around.low)
    assert found.high == pytest.approx(share * 0.05 + (1 - share) * around.high)


def test_without_any_run_a_band_is_wide_and_widening_stretches_it_about_its_middle() -> None:
    nothing = _residuals(np.array([]), "full", "pcie", "measured")
    assert band(nothing, ("full", "pcie", "measured")) == Band(*bands.PRIOR_BAND, 0)
    assert Band(0.1, 0.5, 7).widened(2) == Band(pytest.approx(-0.1), pytest.approx(0.7), 7)


def test_bands_are_widened_until_they_hold_four_fifths_of_families_that_they_have_not_seen() -> None:
    """Families that agree within themselves but not with each other: a run's own family must not help it."""
    shifts = np.random.default_rng(0).normal(0, 0.3, 60)
    every = pl.concat(
        _residuals(np.full(20, shift), "full", "pcie", "measured", family=f"f{i:02d}")
        for i, shift in enumerate(shifts)
    )
    found = widenings(every, ("measured", "extrapolated"))
    assert found["extrapolated"] == found["measured"]  # no family of its own: as all
    at = band(every, ("full", "pcie", "measured")).widened(found["measured"])
    inside = every["value"].is_between(at.low, at.high).to_numpy()
    assert 0.75 <= coverage(inside, every["family"].to_numpy()) <= 0.9
    assert at.high - at.low == pytest.approx(2 * 1.28 * 0.3, rel=0.25)


def test_a_weighted_quantile_lies_between_the_middles_of_weights() -> None:
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0])
    assert weighted_quantile(values, weights, 0.0) == 1.0
    assert weighted_quantile(values, weights, 0.125) == 1.0
    assert weighted_quantile(values, weights, 0.5) == 2.0
    assert weighted_quantile(values, weights, 0.6875) == 2.5
    assert weighted_quantile(values, weights, 1.0) == 3.0
