"""A day has the same record live and read again from the archive."""

from collections.abc import Callable
from datetime import date
from typing import Any

from pipeline.home.paths import Home
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.warehouse.query import ask, reader
from tests.scenario import AHEAD, BAD, MENDED, Scenario, asked_on, refreshed


def record(home: Home, day: date) -> dict[str, Any]:
    """All that the record has of each source of a day."""
    records, kept = Records(home), {}
    for source in asked_on(day):
        offers = records.offers(source, day) if day in records.accepted_days(source) else None
        kept[source] = records.outcomes(source, day), offers, records.rejects(source, day)
    return kept | {"rates": records.usd_rates(day)}


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
    again = record(home, BAD)
    assert [source for source in before if again[source] != before[source]] == []
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
