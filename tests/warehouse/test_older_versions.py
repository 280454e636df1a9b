"""Older versions of DuckDB open what this project writes."""

import struct
from pathlib import Path

from pipeline.warehouse.connection import connect

HEADER = struct.Struct("<Q4sQ")
"""A checksum, DUCK, and the version of the format."""

FORMAT_OF_1_2 = 65


def test_the_file_has_the_format_of_duckdb_1_2(tmp_path: Path) -> None:
    file = tmp_path / "any.duckdb"
    connect(file).close()
    _, magic, version = HEADER.unpack(file.read_bytes()[: HEADER.size])
    assert (magic, version) == (b"DUCK", FORMAT_OF_1_2)
