"""Jobs that are errors wherever they are read; their answers are among the cases."""

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.contracts.training import EVIDENCES
from tests.marts.database import CASES, stored

JOB = "SELECT 'm' AS model, 1e6 AS tokens"


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    place = tmp_path_factory.mktemp("market")
    with stored(CASES / "what_a_job_asks_for", place, ["FROM cheapest_published('asked')"]) as connection:
        yield connection


def test_a_wrong_job_is_refused_whatever_is_read_of_it(market: duckdb.DuckDBPyConnection) -> None:
    wrong_jobs = {
        "-1 AS epochs": "epochs must be above 0, not -1",
        "'x' AS metod": r"no column 'metod'; did you mean method\?",
    }
    for wrong, says in wrong_jobs.items():
        for read in ("count(*)", "seq_len"):
            with pytest.raises(duckdb.Error, match=f"Job job 1: {says}"):
                market.execute(f"WITH asked AS ({JOB}, {wrong}) SELECT {read} FROM completed_jobs('asked')")


def test_a_job_off_the_grid_has_no_published_plans(market: duckdb.DuckDBPyConnection) -> None:
    off = {
        "1024 AS seq_len": "m lora, sequences of 1024, lora_rank 16",
        "24 AS lora_rank": "m lora, sequences of 2048, lora_rank 24",
        "'full' AS method": "m full, sequences of 2048",
        **dict.fromkeys(
            (
                "'q_proj' AS lora_targets", "2 AS micro_batch", "4096 AS global_batch_tokens",
                "'sac' AS checkpointing", "'cpu' AS offload", "'hf' AS stack", "'adamw' AS optimizer",
                "'amp' AS training_precision", "0.5 AS min_fit_probability",
            ),
            "m lora, sequences of 2048, lora_rank 16",
        ),
    }  # fmt: skip
    for setting, plan in off.items():
        says = f"Job job 1: no plans are published for {plan} and its other settings; cheapest_for plans any"
        with pytest.raises(duckdb.Error, match=says):
            market.execute(
                f"""WITH asked AS ({JOB}, {setting}), done AS (FROM completed_jobs('asked'))
                FROM published_plans('done')"""
            )


def test_rankings_filter_by_the_constraints_that_are_named_as_missed(
    market: duckdb.DuckDBPyConnection,
) -> None:
    """``is_rental_wanted`` filters, and ``rental_misses`` says why nothing is left."""
    read = market.execute(
        """SELECT list_sort(list_distinct(
            regexp_extract_all(
                replace(macro_definition, '"', ''), 'constraints\\.\\w+|price_kinds|assumed_sizes'
            )
        ))
        FROM duckdb_functions() WHERE function_name IN ('is_rental_wanted', 'rental_misses')"""
    ).fetchall()
    assert len(read) == 2
    assert read[0] == read[1]
    counts = market.execute(
        """SELECT
            is_rental_wanted(
                r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
                r.price_age_days, r.size_evidence, j.price_kinds, j.constraints, j.assumed_sizes
            ), list_any_value(rental_misses(r, j)) IS NULL, count(*)
        FROM completed_jobs('given') AS j CROSS JOIN rentals AS r GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    assert [row[:2] for row in counts] == [(False, False), (True, True)]


def test_constraints_and_evidence_are_those_of_the_settings(market: duckdb.DuckDBPyConnection) -> None:
    ((constraints, kinds),) = market.execute(
        f"""WITH asked AS ({JOB})
        SELECT constraints, evidences_from('extrapolated') FROM completed_jobs('asked')"""
    ).fetchall()
    constrained = "SELECT DISTINCT constrains FROM job_settings WHERE constrains IS NOT NULL"
    assert set(constraints) == {column for (column,) in market.execute(constrained).fetchall()}
    assert tuple(kinds) == EVIDENCES
