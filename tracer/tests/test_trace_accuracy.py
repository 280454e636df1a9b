"""The error of traces that the documentation states."""

from gpufare_tracer.coefficients import compare_with_measured
from pipeline.home import paths
from pipeline.warehouse.database import in_memory

ACCURACY = paths.CATALOG_DIR.parent / "docs" / "explanation" / "accuracy.md"


def test_stated_error_of_traces_is_the_measured_one() -> None:
    with in_memory("measured_runs", "constants", "gib") as connection:
        compare_with_measured(connection)
        rows = connection.execute(
            "SELECT quantity, count(*), median(abs(error)), avg(abs(error)), max(abs(error)) "
            "FROM trace_accuracy WHERE source = 'fitcheck_t4' GROUP BY quantity"
        ).fetchall()
    errors = {quantity: figures for quantity, *figures in rows}
    (runs, median, mean, most), (_, reserved, _, most_reserved) = errors["allocated"], errors["reserved"]
    phases = max(errors[phase][3] for phase in ("forward", "backward", "optimizer"))
    sentence = (
        f"For the {runs} runs that fitcheck measured on a T4 and that were traced at full depth, the traced "
        f"peak of allocated memory has a median error of {median:.2%}, a mean error of {mean:.2%} and "
        f"a largest error of {most:.1%}; the peak of each phase of the step is off by at most {phases:.1%}. "
        f"Reserved memory has a median error of {reserved:.1%} and a largest error of {most_reserved:.1%}"
    )
    assert sentence in " ".join(ACCURACY.read_text(encoding="utf-8").split())
