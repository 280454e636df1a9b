"""DuckDB's engine without the package around it, whose import takes 60 ms: a question needs no relations."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ModuleNotFoundError:  # a DuckDB whose engine has another name
        import duckdb

__all__ = ["duckdb"]
