"""DuckDB's engine, with or without the package around it."""

import subprocess
import sys

WITHOUT_ENGINE = """
import sys, types
sys.modules["_duckdb"] = None
sys.modules["duckdb"] = types.ModuleType("duckdb")
from pipeline.warehouse.engine import duckdb
assert duckdb is sys.modules["duckdb"]
"""


def test_a_duckdb_whose_engine_has_another_name_is_imported_whole() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_ENGINE], check=True)
