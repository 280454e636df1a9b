"""The lock around publishing in PostgreSQL: one writer at a time on any machine, and none without it."""

import os
import threading
from datetime import UTC, date, datetime
from pathlib import Path

import psycopg2
import pytest

from pipeline.contracts.progress import no_progress
from pipeline.health.doctor.finding import Examination
from pipeline.health.doctor.machine import lock as examine_lock
from pipeline.home.litter import half_written
from pipeline.home.paths import Home
from pipeline.home.postgres import PostgresError
from pipeline.home.publishing_lock import (
    LOCK_VARIABLE,
    lock_holder,
    publishing_lock,
)
from pipeline.warehouse.publish import publish
from pipeline.warehouse.sql_files import BuildError
from tests.conftest import with_plans

DAY = date(2026, 8, 22)
NOW = datetime(2026, 8, 22, 7, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def in_postgres(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(LOCK_VARIABLE, postgres)
    return postgres


def end_sessions(address: str) -> None:
    """What a server does that restarts, or a network that fails."""
    with psycopg2.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_second_writer_waits_for_the_first(home: Home, in_postgres: str) -> None:
    entered = threading.Event()

    def second() -> None:
        with publishing_lock(home):
            entered.set()

    with publishing_lock(home) as lock:
        lock.confirm()
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not entered.wait(0.3)
        assert (lock_holder() or "").startswith("127.0.0.1")
    assert entered.wait(10)
    waiting.join()
    assert lock_holder() is None


def test_a_lost_connection_stops_the_publishing_before_the_rename(
    sample_home: Home, tmp_path: Path, in_postgres: str
) -> None:
    """And what another machine is building meanwhile stays."""
    home = with_plans(tmp_path / "home", sample_home)
    home.published.parent.mkdir(parents=True)
    home.published.write_text("yesterday's")
    another = home.published.with_name(".building-7-0a1b2c3d.duckdb")

    def lose(_: object) -> None:
        end_sessions(in_postgres)
        another.write_text("half of it")

    with pytest.raises(BuildError, match="lock was lost, so nothing was published"):
        publish(home, DAY, NOW, lose)
    assert home.published.read_text() == "yesterday's"
    assert {path.name for path in home.published.parent.iterdir()} == {home.published.name, another.name}


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgresql://gpufare:secret@127.0.0.1:9/gpufare", "Connection refused"),
        ("redis://:secret@127.0.0.1/0", "must be postgresql://"),
        ("postgresql://gpufare:secret@127.0.0.1:nine/gpufare", "malformed|invalid"),
    ],
)
def test_without_the_database_nothing_is_published_and_no_password_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch, address: str, reason: str
) -> None:
    monkeypatch.setenv(LOCK_VARIABLE, address)
    with pytest.raises(BuildError, match=reason) as refused:
        publish(home, DAY, NOW)
    assert "secret" not in str(refused.value)
    assert not home.published.exists()


def test_a_session_that_is_another_one_does_not_hold_the_lock(home: Home, in_postgres: str) -> None:
    """As behind a pooler that hands sessions out per transaction."""
    with publishing_lock(home) as lock:
        lock._connection.cursor().execute("SELECT pg_advisory_unlock_all()")
        with pytest.raises(PostgresError, match="does not hold it"):
            lock.confirm()


def test_the_doctor_looks_at_the_lock_in_the_database(home: Home, in_postgres: str) -> None:
    def look(address: str) -> tuple[str, str]:
        environment = {LOCK_VARIABLE: address}
        examination = Examination(
            home=home, now=NOW, environment=environment, fix=False, every=False, progress=no_progress
        )
        ((level, what, _, _),) = examine_lock(examination)
        return level, what

    assert look(in_postgres) == ("ok", "nobody is publishing; the lock is in PostgreSQL")
    with publishing_lock(home):
        level, what = look(in_postgres)
    assert (level, what.split(" by ")[0]) == ("ok", "held in PostgreSQL")
    level, what = look("postgresql://gpufare@127.0.0.1:9/gpufare")
    assert level == "fail"
    assert "Connection refused" in what


def test_process_ids_of_other_machines_say_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another machine is writing has a process id that no process has here."""
    home.offers.mkdir(parents=True)
    written = home.offers / f".2026-08-22.parquet.{2**22 + os.getpid()}.tmp"
    written.touch()
    assert half_written(home) == [written]
    monkeypatch.setenv(LOCK_VARIABLE, "postgresql://gpufare@db/gpufare")
    assert half_written(home) == []
