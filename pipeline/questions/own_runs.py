"""Whether the user measured runs like those of an answer: they say how far off it is on their machine."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.contracts.paths import Home


def own_runs_note(home: Home, rows: Iterable[Mapping[str, Any]]) -> str | None:
    """A line where the user measured runs on GPUs of ``rows`` of ``cheapest_for`` by their method, else None.

    Rankings know nothing of them: ``gpufare estimate --own`` corrects estimates by such runs."""
    try:
        home.own_runs.stat()
    except FileNotFoundError:
        return None
    except OSError:
        pass  # reading them says why they cannot be read
    from pipeline.model.measuring.own_runs import read_own_runs

    own = read_own_runs(home)
    listed = {(row["gpu_id"], row["method"]) for row in rows}
    kinds = Counter((run.row["gpu"], run.row["method"]) for run in own.runs if not run.row.get("not_ready"))
    found = [f"{count} of {kind[1]} on {kind[0]}" for kind, count in kinds.items() if kind in listed]
    if found:
        return (
            f"you measured runs on GPUs of this list ({', '.join(found)}): rankings do not know of them, "
            "gpufare estimate --own says how far they are from the estimates"
        )
    return own.problems[0] if own.problems else None
