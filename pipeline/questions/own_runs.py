"""Speeds that the user measured, beside the model's own estimates.

Rankings use the model alone: a published file knows nothing of a user's runs.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipeline.home.paths import Home

if TYPE_CHECKING:
    from pipeline.model.corrections import Corrections


def own_runs_note(home: Home, rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Return a line with the speeds that the user's runs imply for ``rows`` of ``cheapest_for`` with the same
    GPU and method, the first row of each kind; None if there are no such runs."""
    try:
        changed_ns = home.own_runs.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    except OSError:
        changed_ns = 0  # the error is reported when the runs are read
    from pipeline.model.own_runs import read_own_runs

    own = read_own_runs(home)
    measured = {
        (run.values["gpu"], run.values["method"]) for run in own.runs if not run.values.get("not_ready")
    }
    first: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in rows:
        if (row["gpu_id"], row["method"]) in measured:
            first.setdefault((row["gpu_id"], row["method"], row["stack"]), row)
    if not first:
        return own.problems[0] if own.problems else None
    found = _learned(home, changed_ns)
    sentences = [_sentence(found, kind, row) for kind, row in first.items()]
    return (
        f"you measured runs on GPUs in this list: {'; '.join(sentences)}. Rankings keep to the model's own "
        "estimates; gpufare estimate --own corrects them."
    )


def _sentence(found: "Corrections", kind: tuple[str, str, str], row: Mapping[str, Any]) -> str:
    from pipeline.model.corrections import Kind

    gpu, method, stack = kind
    correction = found.of_kind.get(Kind("speed", *kind))
    if correction is None:
        return f"{method} on {gpu}, but not with {stack}, so they correct nothing here"
    runs = "1 run" if correction.runs == 1 else f"{correction.runs} runs"
    return (
        f"going by {runs} of {method} on {gpu}, rank {row['rank']} trains "
        f"{row['tokens_per_second'] * correction.factor:,.0f} tokens/s, not {row['tokens_per_second']:,.0f}"
    )


@lru_cache(maxsize=4)
def _learned(home: Home, changed_ns: int) -> "Corrections":
    """Return the corrections from the user's runs, cached by modification time: estimating takes a second."""
    from pipeline.model.corrections import learn
    from pipeline.model.estimate import Estimator
    from pipeline.model.own_runs import read_own_runs

    with closing(Estimator()) as estimator:
        return learn(estimator, read_own_runs(home))
