"""The check that the model does not get worse: held-out errors against the reviewed record."""

from typing import Any

import duckdb
import yaml

from pipeline.home import paths

RECORD_FILE = "accuracy_record.yaml"
# A held-out error may worsen by a tenth before the check fails.
TOLERANCE = 1.1

AVERAGES = ("stranger_median", "stranger_mean", "held_out_median", "held_out_mean")
"""The mean over sources of each source's median and mean error, and the median and mean over all runs."""

_HELD_OUT = """
WITH _runs AS (
    SELECT r.*, s.family FROM main.measured_runs r JOIN main.measured_sources s USING (source)
    WHERE {measured} IS NOT NULL
),
_jobs AS (SELECT *, 'without ' || family AS calibration FROM _runs),
_errors AS (
    SELECT r.source, abs(t.{predicted} / r.{measured} - 1) AS error
    FROM {macro}('_jobs') t JOIN _runs r USING (run_id)
),
_by_source AS (
    SELECT median(error) AS median_error, avg(error) AS mean_error FROM _errors GROUP BY source
)
SELECT
    (SELECT avg(median_error) FROM _by_source), (SELECT avg(mean_error) FROM _by_source),
    median(error), avg(error), count(*)
FROM _errors
"""


def held_out_errors(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, float]]:
    """``AVERAGES`` of the absolute relative error, each run under constants fitted without its family."""
    answers = {}
    for quantity, macro, predicted, measured in (
        ("memory", "memory_terms_of", "memory_gib", "measured_memory_gib"),
        ("speed", "speed_terms_of", "tokens_per_second_per_gpu", "measured_tokens_per_second_per_gpu"),
    ):
        query = _HELD_OUT.format(macro=macro, predicted=predicted, measured=measured)
        answer = connection.execute(query).fetchall()[0]
        answers[quantity] = dict(zip((*AVERAGES, "runs"), answer, strict=True))
    return answers


def read_record() -> dict[str, Any]:
    """The reviewed record of held-out errors."""
    with (paths.CATALOG_DIR / RECORD_FILE).open(encoding="utf-8") as file:
        record: dict[str, Any] = yaml.safe_load(file)
    return record


def worsened(connection: duckdb.DuckDBPyConnection, record: dict[str, Any] | None = None) -> list[str]:
    """What is worse than recorded by more than a tenth, in words; empty when all is well."""
    record = record or read_record()
    found = []
    for quantity, errors in held_out_errors(connection).items():
        for average in AVERAGES:
            allowed = record[quantity][average] * TOLERANCE
            if not errors[average] <= allowed:
                words = average.replace("_", " ").replace("held out", "held-out")
                found.append(
                    f"{quantity}: the {words} error is {errors[average]:.1%}, recorded "
                    f"{record[quantity][average]:.1%}: calibrate again, or review the record"
                )
        if errors["runs"] < record[quantity]["runs"]:
            found.append(
                f"{quantity}: {errors['runs']} runs are estimated, {record[quantity]['runs']} are on record"
            )
    return found
