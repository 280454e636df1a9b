"""Databases keep to a share of the machine's memory, and what does not fit goes where it is swept."""

import tempfile
from pathlib import Path

import duckdb
import pytest

from pipeline.warehouse.connection import MEMORY_VARIABLE, SettingError, connect, spill_folder
from pipeline.warehouse.marts import in_parts
from pipeline.warehouse.query import ask, reader
from tests.scenario import GOOD, Scenario

TOO_MUCH = """
SELECT sum(r * a)
FROM (SELECT a, row_number() OVER (ORDER BY hash(a)) AS r FROM range(3000000) AS t (a))
"""


def _bytes(connection: duckdb.DuckDBPyConnection) -> int:
    query = "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
    return int(connection.execute(query).fetchall()[0][0])


def test_a_connection_takes_a_quarter_of_the_memory_and_at_least_a_gibibyte() -> None:
    with duckdb.connect() as duckdbs_own, connect() as ours:
        usable = _bytes(duckdbs_own) / 0.8
        expected = min(_bytes(duckdbs_own), max(2**30, usable / 4))
        assert _bytes(ours) == pytest.approx(expected, rel=0.06)


def test_the_environment_sets_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "300 MB")
    with connect() as connection:
        assert _bytes(connection) == pytest.approx(300e6, rel=0.01)
    for asked in ("0GB", "-2GB", "40%", "2", "much"):
        monkeypatch.setenv(MEMORY_VARIABLE, asked)
        with pytest.raises(SettingError, match=f"is '{asked}': it must be a number and a unit"):
            connect()


def test_a_build_spills_beside_the_file_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "60MB")
    file = tmp_path / ".building-1.duckdb"
    with connect(file) as connection:
        rows = connection.execute(TOO_MUCH).fetchall()
        assert list(spill_folder(file).iterdir())
    assert not spill_folder(file).exists()
    with duckdb.connect() as connection:
        assert connection.execute(TOO_MUCH).fetchall() == rows


def test_a_question_that_exceeds_memory_spills_to_temporary_files(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "60MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with reader(scenario.home(GOOD).published) as connection:
        assert len(ask(connection, TOO_MUCH).rows) == 1
        assert [folder.name.startswith("gpufare-") for folder in tmp_path.iterdir()] == [True]
    assert list(tmp_path.iterdir()) == []


def test_parts_are_successive_and_bounded() -> None:
    weights = [("a", 250_000), ("b", 250_000), ("c", 1), ("d", 5_000_000), ("e", 0), ("f", 500_000)]
    assert list(in_parts(weights)) == [["a", "b"], ["c"], ["d"], ["e", "f"]]
    assert list(in_parts([])) == []
