"""The limits of evidence levels, pipeline bubble and error bands, on both sides and exactly on them."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pipeline.model.bands import (
    COLUMNS_OF_GROUP,
    PARENT_FAMILIES,
    PRIOR_BAND,
    Band,
    Residuals,
    band,
    coverage,
    family_weights,
    weighted_quantile,
    widenings,
)  # fmt: skip
from pipeline.warehouse.database import in_memory
from tests.model.conftest import Estimate

A_RUN = """
    SELECT * FROM main.measured_runs
    WHERE gpu = 'h100-sxm-80gb' AND method = 'full' AND gpu_count = 8
        AND measured_tokens_per_second_per_gpu > 0 AND measured_memory_gib IS NULL
    ORDER BY run_id LIMIT 1
"""


@pytest.fixture(scope="module")
def one_run() -> Iterator[duckdb.DuckDBPyConnection]:
    """The catalogue with a single measured run: full fine-tuning on eight H100 SXM."""
    connection = in_memory("evidence_of")
    connection.execute(f"CREATE TEMP TABLE kept AS {A_RUN}")
    connection.execute("DELETE FROM main.measured_runs WHERE run_id NOT IN (SELECT run_id FROM kept)")
    assert connection.execute("SELECT count(*) FROM main.measured_runs").fetchall() == [(1,)]
    yield connection
    connection.close()


def _evidence(
    connection: duckdb.DuckDBPyConnection, quantity: str = "speed", **other: Any
) -> tuple[str, bool]:
    """The evidence level of a job like the run but for ``other``, and whether the run is named."""
    rows = connection.execute(
        "SELECT params_total::DOUBLE AS params, experts, stack, seq_len FROM main.models "
        "JOIN main.measured_runs USING (model)"
    ).fetchall()
    params, experts, stack, seq_len = rows[0]
    job = {
        "calibration": "all", "gpu": "h100-sxm-80gb", "method": "full", "params_total": params,
        "experts": experts, "quantization": "none", "stack": stack, "seq_len": seq_len, "gpu_count": 8,
    }  # fmt: skip
    for name, value in other.items():
        setting = name.removesuffix("_ratio")
        job[setting] = value if name == setting else job[setting] * value
    columns = ", ".join(f"${name} AS {name}" for name in job)
    found = connection.execute(
        f"WITH needs AS (SELECT {columns}) "
        f"SELECT evidence, evidence_run IS NOT NULL FROM evidence_of('needs', '{quantity}')",
        job,
    ).fetchall()
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("params_ratio", "evidence"),
    [
        (1.0, "measured"), (1.0999, "measured"), (1 / 1.0999, "measured"),
        (1.1001, "interpolated"), (1 / 1.1001, "interpolated"),
        (2.999, "interpolated"), (1 / 2.999, "interpolated"),
        (3.001, "extrapolated"), (1 / 3.001, "extrapolated"),
    ],
)  # fmt: skip
def test_evidence_by_model_size(
    one_run: duckdb.DuckDBPyConnection, params_ratio: float, evidence: str
) -> None:
    assert _evidence(one_run, params_total_ratio=params_ratio) == (evidence, evidence == "measured")


@pytest.mark.parametrize(
    ("gpu", "method", "evidence"),
    [
        ("h100-sxm-80gb", "pretrain", "measured"),  # every weight is trained, as in full fine-tuning
        ("h100-sxm-80gb", "lora", "extrapolated"),
        ("h200-sxm-141gb", "full", "interpolated"),  # the same class and generation
        ("h100-pcie-80gb", "full", "extrapolated"),  # another class
        ("a100-sxm-80gb", "full", "extrapolated"),  # another generation
    ],
)
def test_evidence_by_gpu_and_method(
    one_run: duckdb.DuckDBPyConnection, gpu: str, method: str, evidence: str
) -> None:
    assert _evidence(one_run, gpu=gpu, method=method)[0] == evidence


@pytest.mark.parametrize(
    ("other", "evidence"),
    [
        ({"gpu_count": 16}, "interpolated"),
        ({"stack": "another"}, "interpolated"),
        ({"seq_len_ratio": 2}, "measured"),
        ({"seq_len_ratio": 0.5}, "measured"),
        ({"seq_len_ratio": 4}, "interpolated"),
        ({"seq_len_ratio": 8}, "interpolated"),
        ({"seq_len_ratio": 9}, "extrapolated"),
        ({"experts": 8}, "extrapolated"),
        ({"quantity": "memory"}, "extrapolated"),  # the run says nothing of its memory
    ],
)
def test_measured_means_this_recipe_on_this_card_and_size(
    one_run: duckdb.DuckDBPyConnection, other: dict[str, Any], evidence: str
) -> None:
    assert _evidence(one_run, **other) == (evidence, evidence == "measured")


def test_a_held_out_calibration_gets_no_evidence_from_its_family(one_run: duckdb.DuckDBPyConnection) -> None:
    ((family,),) = one_run.execute(
        "SELECT family FROM main.measured_runs JOIN main.measured_sources USING (source)"
    ).fetchall()
    assert _evidence(one_run, calibration=f"without {family}") == ("extrapolated", False)
    assert _evidence(one_run, calibration="without another") == ("measured", True)


PIPELINED = {
    "model": "llama-3.1-70b",
    "method": "full",
    "gpu": "h100-sxm-80gb",
    "gpu_count": 64,
    "tensor_parallel": 8,
    "seq_len": 4096,
    "stack": "te",
    "sharding": "zero1",
}


@pytest.mark.parametrize(("stages", "grad_accum"), [(2, 1), (2, 8), (4, 1), (4, 8), (8, 2)])
def test_the_pipeline_bubble(
    model: duckdb.DuckDBPyConnection, speed: Estimate, stages: int, grad_accum: int
) -> None:
    """With p stages and m micro-batches in flight, (p - 1) / m of a step is idle; a share of it counts.

    m is counted as the stages times the accumulated steps. Narayanan et al. 2021 (arXiv 2104.04473), 2.2.1.
    """
    share, per_gpus, per_nodes = model.execute(
        "SELECT k.bubble_share, k.waiting_per_doubling, k.waiting_per_node_doubling FROM constants()"
        " WHERE calibration = 'all'"
    ).fetchall()[0]
    terms = speed(**PIPELINED, pipeline_parallel=stages, grad_accum=grad_accum)
    busy = sum(
        terms[f"{term}_seconds"]
        for term in (
            "matmul", "attention", "traffic", "logits", "dequantization", "host", "communication", "offload",
        )
    )  # fmt: skip
    waiting = 1 + per_gpus * np.log2(64) + per_nodes * np.log2(8)
    step = terms["step_seconds"] - terms["optimizer_seconds"] - terms["overhead_seconds"]
    assert step / (busy * waiting) - 1 == pytest.approx(share * (stages - 1) / grad_accum, rel=1e-9)


def _residuals(values: np.ndarray, *group: str, family: str = "a") -> Residuals:
    names = dict(zip((*COLUMNS_OF_GROUP, "family"), (*group, family), strict=True))
    return pl.DataFrame({"value": values}, schema={"value": pl.Float64}).with_columns(
        **{column: pl.lit(name) for column, name in names.items()}
    )


def _together(*parts: Residuals) -> Residuals:
    return pl.concat(parts)


def test_each_family_counts_alike_however_many_runs_it_has() -> None:
    families = np.array(["a"] * 98 + ["b", "b"])
    weights = family_weights(families)
    assert weights[families == "a"].sum() == pytest.approx(1) == weights[families == "b"].sum()
    many = _residuals(np.full(98, 0.0), "full", "pcie", "measured")
    few = _residuals(np.full(2, 0.5), "full", "pcie", "measured", family="b")
    found = band(_together(many, few), ("full", "pcie", "measured"))
    assert found.high > 0.3  # two of a hundred runs, and one of two families
    assert coverage(np.array([True] * 98 + [False] * 2), families) == pytest.approx(0.5)


@pytest.mark.parametrize("families", [0, 1, 2, 8])
def test_a_group_of_few_families_leans_on_the_group_around_it(families: int) -> None:
    wide = _residuals(np.linspace(-1, 1, 201), "full", "pcie", "measured", family="wide")
    narrow = [
        _residuals(np.full(5, 0.05), "lora", "pcie", "measured", family=f"n{i}") for i in range(families)
    ]
    every = _together(wide, *narrow)
    found, around = (band(every, (method, "pcie", "measured")) for method in ("lora", "qlora"))
    share = families / (families + PARENT_FAMILIES)
    assert found.runs == 5 * families
    assert found.low == pytest.approx(share * 0.05 + (1 - share) * around.low)
    assert found.high == pytest.approx(share * 0.05 + (1 - share) * around.high)


def test_groups_narrow_by_evidence_then_gpu_class_then_method() -> None:
    groups = (
        ("full", "consumer", "extrapolated"), ("full", "consumer", "measured"), ("full", "pcie", "measured"),
        ("lora", "pcie", "measured"),
    )  # fmt: skip
    every = _together(
        *(
            _residuals(np.full(9, 0.4 - 0.1 * step), *group, family=f"{step} {i}")
            for step, group in enumerate(groups)
            for i in range(40)
        )
    )
    found = [band(every, group) for group in groups]
    middles = [(at.low + at.high) / 2 for at in found]
    assert middles == sorted(middles, reverse=True)
    assert middles[-1] == pytest.approx(0.1, abs=0.02)


def test_without_any_run_a_band_is_wide_and_widening_stretches_it_about_its_middle() -> None:
    nothing = _residuals(np.array([]), "full", "pcie", "measured")
    assert band(nothing, ("full", "pcie", "measured")) == Band(*PRIOR_BAND, 0)
    assert Band(0.1, 0.5, 7).widened(2) == Band(pytest.approx(-0.1), pytest.approx(0.7), 7)


def test_bands_are_widened_until_they_hold_four_fifths_of_families_that_they_have_not_seen() -> None:
    """Families that agree within themselves but not with each other: a run's own family must not help it."""
    shifts = np.random.default_rng(0).normal(0, 0.3, 60)
    every = _together(
        *(
            _residuals(np.full(20, shift), "full", "pcie", "measured", family=f"f{i:02d}")
            for i, shift in enumerate(shifts)
        )
    )
    found = widenings(every)
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


def test_memory_counts_as_traced_where_three_measured_runs_agree_with_the_trace_of_their_recipe() -> None:
    job = "WITH my_run AS (SELECT 'lora' AS method, 'llama-3.1-8b' AS model, $gpu AS gpu, 65536 AS seq_len) "
    with in_memory("memory_of", "speed_of") as connection:
        found = {}
        for agreeing in (2, 3):
            connection.execute("UPDATE main.recipe_settings SET agreeing_runs = $1", [agreeing])
            for gpu in ("a100-sxm-80gb", "rtx-a6000"):
                found[agreeing, gpu] = connection.execute(
                    f"{job} SELECT m.evidence, s.evidence FROM memory_of('my_run') m, speed_of('my_run') s",
                    {"gpu": gpu},
                ).fetchall()
    for gpu in ("a100-sxm-80gb", "rtx-a6000"):
        ((by_two, speed),), ((by_three, same_speed),) = found[2, gpu], found[3, gpu]
        assert by_two != "traced"
        assert (by_three, same_speed) == ("traced", speed)
