"""Older versions of DuckDB read the published file, and its macros answer in them as in this project's."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.warehouse.connection import STORAGE_VERSION
from pipeline.warehouse.query import ask, reader
from tests.documentation.pages import blocks
from tests.marts.test_questions import MISSING_IN_1_4
from tests.nightly.export.conftest import CONSUMERS
from tests.nightly.processes import output_of

CLIENTS = CONSUMERS / "duckdb"
PAGE = "docs/how-to/sql-and-bi.md"
TABLES = re.compile(r"\b(FROM|JOIN) \w+\(")
"""In a query that needs more than tables."""

SET_UP = """
import duckdb, json, sys
connection = duckdb.connect(config={"autoload_known_extensions": "false"})
connection.execute("SET enable_progress_bar = false")
connection.execute("SET TimeZone = 'UTC'")
connection.execute(f"ATTACH '{sys.argv[1]}' AS gpufare (READ_ONLY)")
connection.execute("USE gpufare")
"""
ANSWERS = f"""{SET_UP}
queries = json.load(open(sys.argv[2], encoding="utf-8"))
print(json.dumps({{name: connection.execute(query).fetchall() for name, query in queries.items()}}))
"""
MOMENTS = f"""{SET_UP}
tables = connection.execute(
    '''SELECT DISTINCT table_name FROM duckdb_columns()
    WHERE schema_name = 'main' AND data_type = 'TIMESTAMP WITH TIME ZONE' AND database_name = 'gpufare' '''
).fetchall()
names = [name for (name,) in tables]
print(json.dumps({{name: len(connection.execute(f"FROM {{name}} LIMIT 9").fetchall()) for name in names}}))
"""
FUNCTIONS = """
import duckdb, json
names = duckdb.sql("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
print(json.dumps([name for (name,) in names]))
"""


def client(version: str) -> Path:
    """The folder in which a version of DuckDB is alone with the packages that the page names."""
    if not (CLIENTS / ".ready").exists():
        pytest.skip("older versions of DuckDB are not installed: make .venv-consumers/duckdb/.ready")
    (folder,) = CLIENTS.glob(f"{version}.*")
    return folder


def told(folder: Path, code: str, *arguments: object, cwd: Path | None = None) -> str:
    """What Python code prints that imports packages of this folder alone."""
    command = [str(CONSUMERS / "bin" / "python"), "-S", "-c", code, *map(str, arguments)]
    return output_of(command, env={"PYTHONPATH": str(folder)}, cwd=cwd)


@pytest.fixture(scope="module")
def examples(sample_home: Home) -> dict[str, tuple[str, list[list[str | None]]]]:
    """Each example, whose answer is text in no order, and the answer of this project's DuckDB."""
    asked = {}
    with reader(sample_home.published) as connection:
        for path in sorted((paths.SQL_DIR / "examples").glob("*.sql")):
            query = f"SELECT COLUMNS(*)::VARCHAR FROM ({path.read_text(encoding='utf-8')}\n)"
            asked[path.stem] = (query, in_order(ask(connection, query).rows))
    return asked


def in_order(rows: Any) -> list[list[str | None]]:
    return sorted(map(list, rows), key=str)


def queries_in(folder: Path, examples: dict[str, tuple[str, list[list[str | None]]]]) -> Path:
    file = folder / "queries.json"
    file.write_text(json.dumps({name: query for name, (query, _) in examples.items()}), encoding="utf-8")
    return file


@pytest.mark.parametrize("version", ["1.4", "1.5"])
def test_every_example_has_the_same_answer(
    version: str, examples: dict[str, Any], sample_home: Home, tmp_path: Path
) -> None:
    said = told(client(version), ANSWERS, sample_home.published, queries_in(tmp_path, examples))
    answers = {name: in_order(rows) for name, rows in json.loads(said).items()}
    assert answers == {name: answer for name, (_, answer) in examples.items()}
    assert answers["cheapest_for_my_job"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_every_example_has_the_same_answer_in_a_browsers_duckdb(
    examples: dict[str, Any], sample_home: Home, tmp_path: Path
) -> None:
    """In Node, with the build for browsers; no extension is loaded."""
    modules = client("1.4").parent / "wasm" / "node_modules"
    if not modules.exists():
        pytest.skip("DuckDB-WASM is not installed, for lack of npm")
    script = Path(__file__).with_name("duckdb_wasm.cjs")
    said = output_of(
        ["node", script, modules, sample_home.published, queries_in(tmp_path, examples)], timeout=600
    )
    answers = {name: in_order(rows) for name, rows in json.loads(said.splitlines()[-1]).items()}
    assert answers == {name: answer for name, (_, answer) in examples.items()}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_older_versions_read_the_tables(
    version: str, examples: dict[str, Any], sample_home: Home, tmp_path: Path
) -> None:
    tables = {name: asked for name, asked in examples.items() if not TABLES.search(asked[0])}
    assert len(tables) > 40
    said = told(client(version), ANSWERS, sample_home.published, queries_in(tmp_path, tables))
    answers = {name: in_order(rows) for name, rows in json.loads(said).items()}
    assert answers == {name: answer for name, (_, answer) in tables.items()}


def test_the_oldest_version_is_that_of_the_file() -> None:
    assert f"v{client('1.2').name}".startswith(STORAGE_VERSION.rpartition(".")[0])


@pytest.mark.parametrize("version", ["1.2", "1.4", "1.5"])
def test_times_are_read_with_the_packages_that_the_page_names(
    version: str, sample_home: Home, tmp_path: Path
) -> None:
    folder = client(version)
    (command,) = [
        c for block in blocks("console") if block.page == PAGE for c in block.commands if c[:4] == "pip "
    ]
    installed = {path.stem.partition("-")[0] for path in folder.glob("*.dist-info")}
    assert command == f"pip install {' '.join(sorted(installed))}"
    read = json.loads(told(folder, MOMENTS, sample_home.published))
    assert {"offers", "offers_latest", "publication"} < {name for name, rows in read.items() if rows}
    (code,) = [block.text for block in blocks("python") if block.page == PAGE]
    (tmp_path / "gpufare.duckdb").symlink_to(sample_home.published)
    assert "llama-3.1-8b-lora" in told(folder, code, cwd=tmp_path)


def test_the_functions_that_1_4_lacks_are_known() -> None:
    ours = """SELECT function_name FROM duckdb_functions()
        WHERE internal AND function_type IN ('scalar', 'aggregate', 'macro', 'table', 'table_macro')
            AND coalesce(extension_name, 'core_functions') = 'core_functions'
            AND regexp_full_match(function_name, '[a-z]\\w*')"""
    here = {name for (name,) in duckdb.sql(ours).fetchall()}
    assert here - set(json.loads(told(client("1.4"), FUNCTIONS))) == MISSING_IN_1_4
