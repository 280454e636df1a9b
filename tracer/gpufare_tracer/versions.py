"""catalog/recipe_memory_by_version.csv: the same jobs traced with different versions of the libraries.

    gpufare trace-grid --by-version

This command adds rows for the installed versions.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from gpufare_tracer.grid import Cell, job_of
from gpufare_tracer.kept import read_table, traced_row, write_table
from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.table import PHASES, row
from pipeline.home import paths

FILE = "recipe_memory_by_version.csv"
MODELS = ("llama-3.1-8b", "qwen2.5-0.5b")
LAYERS, MICRO_BATCH, SEQ_LEN = 4, 2, 2048
KEYS = ("recipe", "model", "layers", "micro_batch", "seq_len", "versions", "phase")
COLUMNS = (*KEYS, "allocated_bytes", "reserved_bytes")


def add_versions(
    recipes: Mapping[str, Recipe],
    *,
    folder: Path | None = None,
    jobs: int = 1,
    show: Callable[[str], None] = lambda line: None,
) -> int:
    """Trace each recipe with the installed libraries; add or replace the recipe's rows for these versions.

    ``show`` gets a line for each failed trace. Returns the number of rows in the file.
    """
    path = (folder or paths.CATALOG_DIR) / FILE
    rows = {tuple(each[name] for name in KEYS): each for each in read_table(path)}
    cells = [Cell(name, model, LAYERS, MICRO_BATCH, SEQ_LEN) for name in recipes for model in MODELS]
    calls = [(row, *job_of(recipes[cell.recipe], cell)) for cell in cells]
    for index, traced in in_processes(traced_row, calls, jobs):
        if traced["problem"]:
            show(f"{' '.join(str(part) for part in cells[index])}: {traced['problem']}")
            continue
        for phase in PHASES:
            added = {name: traced[name] for name in KEYS[:5]}
            added |= {"versions": traced["versions"], "phase": str(phase)}
            added |= {name: traced[f"{phase}_{name}"] for name in COLUMNS[-2:]}
            rows[tuple(added[name] for name in KEYS)] = added
    write_table(path, COLUMNS, (rows[key] for key in sorted(rows)))
    return len(rows)
