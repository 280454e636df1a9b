"""The calibration: its record, what it holds out, and that published runs bear out P(fits)."""

from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pipeline.home import paths
from pipeline.model.calibrate import data_hash
from pipeline.model.fitting import read_parameters
from pipeline.warehouse.sql_files import macro_scripts

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy.md"

HELD_OUT = """
    WITH _held_out AS (
        SELECT r.*, 'without ' || s.family AS calibration
        FROM main.measured_runs r JOIN main.measured_sources s USING (source)
        WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL
    )
    SELECT
        h.out_of_memory = 1 AS died, m.fits,
        fit_probability(
            usable_memory_gib, needed_gib, memory_gib_low / memory_gib, memory_gib_high / memory_gib
        ) AS probability
    FROM _held_out h
    JOIN memory_of('_held_out') m USING (run_id)
"""


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return dict(yaml.safe_load((paths.CATALOG_DIR / "calibration.yaml").read_text(encoding="utf-8")))


def test_the_record_is_of_these_files(model: duckdb.DuckDBPyConnection, record: dict[str, Any]) -> None:
    assert record["data_sha256"] == data_hash(model), (
        "the data changed since the calibration: run gpufare calibrate"
    )
    assert date.fromisoformat(record["calibrated_on"])
    own_card = record["fit_verdicts"]["on_their_own_card"]
    assert own_card["balanced_accuracy"] >= 0.9
    assert own_card["fits_that_die_by_family"] <= 0.05
    for quantity in ("memory", "speed"):
        assert 0.7 <= record["bands"][quantity]["held_out_coverage_by_family"] <= 0.87


def test_runs_constrain_every_free_constant_and_none_is_of_a_source(
    model: duckdb.DuckDBPyConnection, record: dict[str, Any]
) -> None:
    """A constant that all runs leave as wide as its prior is fixed instead, with the reason for its value."""
    widths = record["memory"]["posterior_widths"] | record["speed"]["posterior_widths"]
    parameters = read_parameters()
    assert set(widths) == {p.name for p in parameters if p.relative_width > 0}
    assert {name: width for name, width in widths.items() if width > 0.97} == {}
    sources = {row[0] for row in model.execute("SELECT DISTINCT source FROM main.measured_runs").fetchall()}
    assert not [p.name for p in parameters for source in sources if source in p.name]
    assert len(parameters) < 100


def test_every_constant_has_a_value_a_unit_and_a_meaning_and_is_used(
    model: duckdb.DuckDBPyConnection,
) -> None:
    parameters = paths.CATALOG_DIR / "model_parameters.csv"
    described = model.execute(
        f"SELECT name FROM read_csv('{parameters}')"
        " WHERE unit IS NOT NULL AND meaning IS NOT NULL AND source IS NOT NULL"
    ).fetchall()
    valued = model.execute("SELECT name FROM main.model_constants WHERE calibration = 'all'").fetchall()
    assert sorted(described) == sorted(valued)
    formulas = "".join(path.read_text(encoding="utf-8") for path in macro_scripts())
    assert [name for (name,) in valued if f"k.{name}" not in formulas] == []


@pytest.fixture(scope="module")
def held_out(model: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return dict(model.execute(HELD_OUT).fetchnumpy())


def test_runs_that_should_fit_ran_and_runs_that_died_should_not(held_out: dict[str, Any]) -> None:
    """The documentation has these figures, and P(fits) is half exactly where the estimate turns."""
    probability, ran = held_out["probability"], ~held_out["died"].astype(bool)
    safe, unlikely = probability >= 0.9, probability < 0.5
    assert safe.sum() > 400
    assert ran[safe].mean() >= 0.95
    # Where the estimate says no, few ran, and fewer than between the two.
    assert ran[unlikely].mean() < 0.5 <= ran[~unlikely & ~safe].mean()
    assert unlikely[~ran].mean() >= 0.9
    assert (unlikely == ~held_out["fits"].astype(bool)).all()
    figures = (
        f"of the {safe.sum()} held-out runs with a probability of 90% or more, {ran[safe].sum()} ran; "
        f"of the {unlikely.sum()} with less than 50%, {ran[unlikely].sum()} did."
    )
    assert figures in " ".join(PAGE.read_text(encoding="utf-8").split())
