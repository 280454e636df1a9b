"""A day has the same record however it was captured and whenever it was read: by the command or by Dagster,
live or again from the archive."""

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.refresh.inputs import captures_of
from pipeline.warehouse.query import ask, reader
from tests.orchestration.conftest import Dagster
from tests.scenario import AHEAD, BAD, GOOD, MENDED, Scenario, asked_on, refreshed


def record(home: Home, day: date, *volatile: str) -> dict[str, Any]:
    """All that the record has of each source of a day, but for some columns of the outcomes."""
    records, kept = Records(home), {}
    for source in asked_on(day):
        rows = records.outcomes(source, day)
        outcomes = [{name: row[name] for name in row if name not in volatile} for row in rows]
        offers = records.offers(source, day) if day in records.accepted_days(source) else None
        kept[source] = outcomes, offers, records.rejects(source, day)
    return kept | {"rates": records.usd_rates(day)}


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    assert found.keys() == expected.keys()
    return [source for source in expected if found[source] != expected[source]]


def ranking(home: Home) -> list[tuple[Any, ...]]:
    with reader(home.published) as connection:
        return ask(connection, "FROM main.cheapest_gpu_per_workload ORDER BY ALL").rows


def test_the_bad_day_read_again_beside_damage_is_as_it_was(
    scenario: Scenario, copy_of: Callable[..., Home]
) -> None:
    """The publication stays that of the mended day, and what was wrong in the home is mended and named."""
    home = copy_of(MENDED)
    before = record(home, BAD)
    offers = file_of(home, Month.of("offers", "runpod", BAD))
    offers.write_bytes(offers.read_bytes()[:100])
    file_of(home, Month.of("offers", "scaleway", BAD)).unlink()
    (home.record / "offers" / "notes.txt").write_text("stray")
    home.published.rename(home.published.with_name("moved"))
    home.published.mkdir()
    (home.published.parent / ".building-1.tmp").mkdir()
    for name in (".building-1.duckdb", ".building-1.duckdb.wal", ".building-1.tmp/spilt.tmp"):
        (home.published.parent / name).write_bytes(b"half a file")

    report = refreshed(home, BAD, pages="archive", now=None)
    assert differences(record(home, BAD), before) == []
    assert {each.source for each in report.outcomes} == {*asked_on(BAD)}, "Salad has no capture"
    assert (report.published_day, report.newest_price_day, report.failure()) == (MENDED, MENDED, None)
    assert ranking(home) == ranking(scenario.home(MENDED))
    left = {path.name for path in home.published.parent.iterdir()}
    assert left == {home.published.name, "moved"}
    assert report.lines()[-1].startswith("among them, replayed from saved pages and no live prices: lambda")
    missing = (
        "record/offers/scaleway/2026-08.parquet: it is missing, though its outcome was accepted; there was "
        "nothing to set aside; 1 days were read again from the archive"
    )
    assert [each.line() for each in report.incidents] == [
        "record/offers/runpod/2026-08.parquet: parquet: File out of specification: The file must end with "
        "PAR1 or PARE; moved to damaged/record/offers/runpod/2026-08.parquet; "
        "3 days were read again from the archive",
        "record/offers/notes.txt: it is not a file of the record; ignored: move it elsewhere or remove it",
        "published/gpufare.duckdb: a folder is where a file belongs; moved to "
        "damaged/published/gpufare.duckdb; published again",
        missing,
        missing,
        f"{AHEAD}: the home has data of this future date; it is ignored until that day comes: check the "
        "clock of this machine",
    ]


def test_only_an_archived_day_can_be_read_again(scenario: Scenario) -> None:
    chosen = [source_config(name) for name in ("crusoe", "modal")]

    def found(day: date, archive: Path, *, named: bool = False) -> list[tuple[str, int]]:
        captures = captures_of(chosen, day, "archive", Archive(archive), {}, named=named)
        return [(name, len(of)) for name, of in captures.items()]

    archive = scenario.home(GOOD).archive
    assert found(GOOD, archive) == [("crusoe", 1)]
    assert found(GOOD, archive, named=True) == [("crusoe", 1), ("modal", 0)]
    for folder, available in ((archive, f"it has captures of {GOOD} to {GOOD}"), (Path("no"), "it is empty")):
        with pytest.raises(GpufareError) as refused:
            found(BAD, folder)
        assert str(refused.value) == f"the archive has no captures of {BAD}; {available}"


def test_dagster_records_the_day_as_the_command_does_and_reads_it_again(
    scenario: Scenario, copy_of: Callable[..., Home]
) -> None:
    import dagster as dg

    names = " ".join(name for name in asked_on(BAD) if source_config(name).disabled is None)
    by_command, by_dagster, again = scenario.home(BAD), copy_of(GOOD), copy_of(GOOD, "again")
    with dg.DagsterInstance.ephemeral() as instance:
        with scenario.serving(BAD) as server:
            Dagster(instance).sources(names, by_dagster, server.base_url, BAD)
        live = record(by_dagster, BAD, "attempt", "duration_seconds")
        assert differences(live, record(by_command, BAD, "attempt", "duration_seconds")) == ["tensordock"]

        shutil.rmtree(again.archive)
        shutil.copytree(by_dagster.archive, again.archive)
        Dagster(instance).sources(names, again, day=BAD, only="offers")
    assert differences(record(again, BAD), record(by_dagster, BAD)) == []
