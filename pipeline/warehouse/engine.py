"""DuckDB's engine without the package around it: importing the package's relational API takes 60 ms, and no
question uses it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ModuleNotFoundError:  # a DuckDB whose engine has another name
        import duckdb

__all__ = ["duckdb"]
