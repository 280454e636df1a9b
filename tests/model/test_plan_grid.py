"""The published plans are the planner's, and are added to what the next publication is built from."""

import random
import re
from pathlib import Path

import duckdb
import pytest
from filelock import FileLock, Timeout

from pipeline.catalog.own import OwnCatalogue
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.warehouse import plan_grid
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import prepare
from pipeline.warehouse.plan_cache import edit_kept, keep, kept_file, start
from pipeline.warehouse.sql_files import BuildError
from tests.homes import interrupt

MODELS = ("smollm2-135m", "mixtral-8x7b")
"""One that fits everywhere, and one that does not."""


@pytest.fixture(scope="module")
def database(model: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    for name in MODELS:
        plan_grid.compute(model, name)
    return model


def test_published_plans_are_those_of_the_planner(database: duckdb.DuckDBPyConnection) -> None:
    jobs = database.execute(
        "SELECT job, method FROM grid_jobs() WHERE model IN $1 ORDER BY ALL", [list(MODELS)]
    ).fetchall()
    assert len(jobs) == len(MODELS) * 9  # three methods, three lengths
    chosen = [job for job, _ in random.Random(15).sample(jobs, 4)]
    database.execute("CREATE OR REPLACE TEMP TABLE asked AS FROM grid_jobs() WHERE job IN $1", [chosen])
    database.execute(
        "CREATE OR REPLACE TEMP TABLE published AS SELECT g.* FROM grid_plans() AS g"
        " SEMI JOIN asked AS a ON a.model = g.model AND a.method = g.method AND a.seq_len = g.seq_len"
    )
    database.execute(
        "CREATE OR REPLACE TEMP TABLE planned AS FROM job_plans('asked') WHERE verdict <> 'does_not_fit'"
    )
    columns = ", ".join(name for (name, *_) in database.execute("DESCRIBE published").fetchall())
    for one, other in (("published", "planned"), ("planned", "published")):
        differing = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
        assert database.execute(differing).fetchall() == []
    ((plans, verdicts),) = database.execute(
        "SELECT count(*), count(DISTINCT verdict) FROM published"
    ).fetchall()
    assert (plans > 500, verdicts) == (True, 2)


def test_no_job_of_the_grid_is_a_workload(database: duckdb.DuckDBPyConnection) -> None:
    doubled = database.execute(
        "SELECT g.job FROM grid_jobs() AS g JOIN main.workloads AS w ON w.model = g.model"
        " AND w.method = g.method AND w.seq_len = g.seq_len AND w.lora_rank IS NOT DISTINCT FROM g.lora_rank"
    ).fetchall()
    assert doubled == []


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a prepared database whose grid has no plans yet."""
    home = Home(tmp_path / "home")
    home.published.parent.mkdir(parents=True)
    with connect(tmp_path / "first.duckdb") as connection:
        prepare(connection, "plan_grid", "grid_jobs")
    assert keep(tmp_path / "first.duckdb", home, OwnCatalogue()) == []
    return home


def test_an_interruption_keeps_the_plans_for_the_next_publication(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept database is read under the lock of the home: between finding and opening, it could be gone."""
    found = []

    def under_lock(home: Home, own: OwnCatalogue) -> Path | None:
        with pytest.raises(Timeout):
            FileLock(home.lock).acquire(timeout=0)
        found.append(kept_file(home, own))
        return found[-1]

    monkeypatch.setattr(plan_grid, "kept_file", under_lock)
    before = kept_file(home, OwnCatalogue())
    for count in (1, 2):
        with pytest.raises(KeyboardInterrupt, match=f"; {count} of 1"):
            plan_grid.complete(home, interrupt)
    assert found[0] == before
    assert kept_file(home, OwnCatalogue()) not in {None, before}
    assert len(list(home.cache.iterdir())) == 1
    assert start(tmp_path / "next.duckdb", home, OwnCatalogue()) == []
    with connect(tmp_path / "next.duckdb") as connection:
        assert connection.execute("SELECT count(DISTINCT model) FROM main.plan_grid").fetchall() == [(2,)]


def test_plans_are_added_to_what_was_published_without_an_unusable_own_catalogue(home: Home) -> None:
    home.workloads.write_text("workload,model,method,tokens\nmine,llama-3.1-8b,qlora,1\n", encoding="utf-8")
    before = kept_file(home, OwnCatalogue())
    with pytest.raises(KeyboardInterrupt):
        plan_grid.complete(home, interrupt)
    assert kept_file(home, OwnCatalogue()) not in {None, before}


def test_a_model_that_cannot_be_planned_stops_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def compute(connection: duckdb.DuckDBPyConnection, model: str) -> None:
        asked.append(model)
        if len(asked) == 1:
            connection.execute("SELECT error('no such shape')")

    monkeypatch.setattr(plan_grid, "compute", compute)
    assert plan_grid.complete(home) == 0
    assert len(asked) > 100
    (incident,) = kept_incidents(home)
    assert incident.kind == "not_planned"
    assert re.match(f"sql/marts/{plan_grid.TABLE}.sql: .*no such shape", incident.reason)


def test_without_a_publication_nothing_is_planned(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="publish first"):
        plan_grid.complete(Home(tmp_path))


def test_a_disk_that_refuses_the_added_plans_is_an_incident(home: Home) -> None:
    before = kept_file(home, OwnCatalogue())
    home.published.parent.rmdir()
    incidents = edit_kept(home, OwnCatalogue(), lambda _: None)
    assert [incident.remedy for incident in incidents] == ["nothing was added to it"]
    assert kept_file(home, OwnCatalogue()) == before
