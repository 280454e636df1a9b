"""The daily job end to end over real HTTP: what is published, what a broken source does, what is kept."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.doctor import examine
from pipeline.health.source_states import why_text
from pipeline.home.paths import SQL_DIR, Home
from pipeline.record.records import Records
from pipeline.refresh import demo
from pipeline.refresh.refresh import RefreshReport, refresh
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, gpufare, reader_on
from tests.pages_server import PagesServer
from tests.refresh.faulty_server import refusing

DAY = date(2026, 8, 22)
FEW = ("runpod", "lambda", "coreweave", "crusoe", "ecb", "scaleway")
TWO = ("lambda", "crusoe")


@pytest.fixture
def home(small_home: Home) -> Home:
    return small_home


@contextmanager
def edited_pages(folder: Path, sources: tuple[str, ...] = FEW) -> Iterator[Path]:
    """A copy of some sample pages, for a test to change."""
    pages = folder / "pages"
    for source in sources:
        shutil.copytree(PAGES / source, pages / source)
    yield pages
    shutil.rmtree(pages)


def lambda_has_moved(pages: Path) -> None:
    """Both of its pages say so, and no price."""
    for page in (pages / "lambda").glob("*.html"):
        page.write_text("<html><body>We moved.</body></html>")


def run(home: Home, pages: Path, day: date = DAY, **options: object) -> RefreshReport:
    with PagesServer(pages) as server:
        return refresh(home, day=day, pages=server.base_url, environment={}, **options)  # type: ignore[arg-type]


def offers(home: Home, query: str = "true", today: date = DAY) -> list[dict[str, object]]:
    with reader_on(home.published, today) as connection:
        return list(ask(connection, f"FROM main.offers_latest WHERE {query}").dicts())


def test_every_source_without_a_key_is_accepted_and_ranked(sample_home: Home) -> None:
    with reader_on(sample_home.published, DAY) as connection:
        states = dict(ask(connection, "SELECT source, state FROM main.source_health").rows)
        ranked = ask(connection, "SELECT count(*) FROM main.cheapest_gpu_per_workload").rows[0][0]
    assert {states.pop(name) for name in ("tensordock", "imported")} == {"disabled"}
    keyless = {name for name in states if source_config(name).needs_key}
    assert {states.pop(name) for name in keyless} == {"needs_key"}
    assert set(states.values()) == {"current"}
    assert ranked > 1000


def test_a_broken_source_stops_neither_the_others_nor_the_publishing(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path) as pages:
        for page in (pages / "scaleway").glob("servers_*.json"):
            page.write_text(page.read_text().replace('"ncpus"', '"cpus"'))
        lambda_has_moved(pages)
        report = run(home, pages, sources=FEW)
    outcomes = {outcome.source: outcome for outcome in report.outcomes}
    assert report.published
    assert not outcomes["lambda"].accepted
    assert "no pricing row" in (outcomes["lambda"].error or "")
    assert {row["source"] for row in offers(home)} == set(FEW) - {"lambda", "ecb"}
    # A renamed field stops nothing, but is in the record and in the report.
    warnings = ("new field 'cpus', which is not read", "missing field 'ncpus'")
    assert outcomes["scaleway"].warnings == warnings
    assert any("; ".join(warnings) in line for line in report.lines())


def test_the_last_good_offers_stay_with_their_age_and_drop_out_after_the_limit(
    home: Home, tmp_path: Path
) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
        lambda_has_moved(pages)
        run(home, pages, day=DAY + timedelta(days=3), sources=TWO)
        aged = offers(home, "source = 'lambda'", DAY + timedelta(days=3))
        run(home, pages, day=DAY + timedelta(days=9), sources=TWO)
        stale = offers(home, "source = 'lambda'")
    assert {row["age_days"] for row in aged} == {3}
    assert any(row["ranked"] for row in aged)
    assert {row["not_ranked_reason"] for row in stale if row["match_status"] == "matched"} == {"stale"}


def test_refresh_without_accepted_offers_publishes_nothing_with_the_reason(
    home: Home, tmp_path: Path
) -> None:
    with edited_pages(tmp_path, ("lambda",)) as pages:
        lambda_has_moved(pages)
        report = run(home, pages, sources=("lambda",))
    assert report.published is None
    assert any("no pricing row" in line for line in report.lines())
    assert report.failure() == "nothing was published: no source was accepted (1 asked)"
    assert not home.published.exists()


def test_refresh_without_answers_fails(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
    with refusing() as url:
        asked = ("--day", str(DAY + timedelta(days=1)), "--pages", url)
        answer = gpufare("refresh", *asked, "--source", "lambda", "--source", "crusoe", home=home)
    assert answer.returncode == 1
    assert re.search(r"^lambda +NOT ACCEPTED  connection_refused", answer.stdout, re.MULTILINE)
    said = f"no source answered (2 asked); the newest prices are of {DAY}"
    assert answer.stderr.splitlines()[-1] == f"Error: {said}"
    assert said not in answer.stdout
    assert "reading " not in answer.stderr  # progress is for terminals
    assert (answer.stdout + answer.stderr).count("NOT ACCEPTED") == len(TWO)
    with reader_on(home.published, DAY + timedelta(days=1)) as connection:
        query = (
            "SELECT DISTINCT state, failing_since FROM main.source_health WHERE last_attempt_day IS NOT NULL"
        )
        assert ask(connection, query).rows == [("failing", DAY + timedelta(days=1))]


def test_an_unreadable_answer_is_named_and_does_not_fail_the_refresh(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
        lambda_has_moved(pages)
        report = run(home, pages, day=DAY + timedelta(days=1), sources=("lambda",))
    assert report.failure() is None
    assert report.lines()[-1].startswith("no source was accepted (1 asked); the newest prices")


def test_when_all_prices_are_stale_an_empty_ranking_is_published_and_said(home: Home, tmp_path: Path) -> None:
    late = DAY + timedelta(days=9)
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        run(home, pages, sources=("crusoe",))
    with refusing() as url:
        report = refresh(home, day=late, pages=url, sources=("crusoe",), environment={})
    assert (report.published_day, report.newest_price_day) == (late, DAY)
    assert "no price is recent enough to be ranked: the rankings are empty" in report.lines()
    with reader_on(home.published, late) as connection:
        days = "SELECT DISTINCT day FROM main.ranking_history"
        assert ask(connection, days).rows == [(DAY,)]
        (crusoe,) = ask(connection, "FROM main.source_health WHERE source = 'crusoe'").dicts()
    assert crusoe["state"] == "stale"
    assert f"rankings after {DAY + timedelta(days=7)} omit them" in str(why_text(crusoe))
    asked = gpufare("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M", home=home)
    assert asked.returncode == 1
    assert (
        f"as of {late}, no price is ranked; the newest is from {DAY}: see `gpufare sources`" in asked.stderr
    )


def test_the_report_names_held_prices_and_failures() -> None:
    problems = [
        Incident(
            at=datetime(2026, 8, 22, 7, tzinfo=UTC),
            kind=IncidentKind.DAMAGED_FILE,
            path=f"offers/acme/{day}.parquet",
            reason="it is cut",
            remedy="read again from the archive",
        )
        for day in range(22)
    ]
    report = RefreshReport(
        DAY,
        held={"lambda": ["from 1.55 to 3.55"]},
        incidents=problems,
    )
    assert report.lines()[:4] == [
        "lambda: prices held until they are confirmed: 1",
        "  from 1.55 to 3.55",
        "incidents, kept in the table of that name: 22",
        "  offers/acme/0.parquet: it is cut; read again from the archive",
    ]
    assert report.lines()[-1] == "  and 2 more"


def test_a_live_refresh_refuses_a_past_day(home: Home) -> None:
    with pytest.raises(Exception, match="never filed under another day"):
        refresh(home, day=DAY, environment={})


def test_a_live_refresh_refuses_the_demos_home_and_the_demo_runs_on_it_again(tmp_path: Path) -> None:
    home, said = Home(tmp_path / "demo"), list[object]()
    with edited_pages(tmp_path, ("ecb",)) as pages:
        for _ in range(2):  # prices of no GPU: nothing is published
            with pytest.raises(GpufareError):
                demo.run(pages, home, said.append)
    before = sorted(home.root.rglob("*"))
    answer = gpufare("refresh", home=home)
    assert answer.returncode == 1
    assert "Unset GPUFARE_HOME, or set it to another folder" in answer.stderr
    assert sorted(home.root.rglob("*")) == before
    (checked,) = (each for each in examine(home, now=datetime.now(UTC)) if each.check == "home")
    assert checked.what.startswith("the demo's: sample prices")


def test_a_day_is_read_again_from_the_archive(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
    records = Records(home)
    published = records.offers("crusoe", DAY)
    misread = [
        published[0].model_copy(update={"native_price": published[0].native_price * 2}),
        *published[1:],
    ]
    records.write_accepted(DAY, "crusoe", misread)
    refresh(home, day=DAY, pages="archive", sources=TWO, environment={})
    assert records.offers("crusoe", DAY) == published


def test_reading_a_day_again_leaves_sources_without_captures_as_they_were(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
    report = refresh(home, day=DAY, pages="archive", environment={})
    assert {outcome.source for outcome in report.outcomes} == set(TWO)


def test_a_day_without_captures_cannot_be_read_again(home: Home) -> None:
    with pytest.raises(GpufareError, match="no captures of 2026-08-22"):
        refresh(home, day=DAY, pages="archive", environment={})


def test_a_past_day_read_again_does_not_turn_the_publication_back(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
        run(home, pages, day=DAY + timedelta(days=1), sources=TWO)
    report = refresh(home, day=DAY, pages="archive", sources=TWO, environment={})
    assert report.published_day == DAY + timedelta(days=1)


def test_pages_from_a_folder_belong_to_the_day_on_which_they_were_observed(
    home: Home, tmp_path: Path
) -> None:
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        report = refresh(home, pages=str(pages), environment={})
    assert report.day == DAY
    assert len(Archive(home.archive).captures("crusoe", DAY)) == 1


def test_a_file_in_place_of_a_sources_folder_of_pages_is_not_passed_over(home: Home, tmp_path: Path) -> None:
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        (pages / "azure").write_text("not a folder")
        with pytest.raises(GpufareError, match="azure must be a folder of pages"):
            refresh(home, pages=str(pages), environment={})


def test_a_refresh_of_the_same_day_again_gives_the_same_answers(home: Home, tmp_path: Path) -> None:
    def ranking() -> list[tuple[object, ...]]:
        with reader(home.published) as connection:
            columns = "* EXCLUDE (observed_at, capture_sha256)"
            return ask(connection, f"SELECT {columns} FROM main.cheapest_gpu_per_workload ORDER BY ALL").rows

    with edited_pages(tmp_path) as pages:
        run(home, pages, sources=FEW)
        first = ranking()
        run(home, pages, sources=FEW)
    assert first == ranking()
    assert len(first) > 100


@pytest.mark.slow
def test_an_open_reader_and_new_readers_see_whole_files_during_refreshes(home: Home, tmp_path: Path) -> None:
    """A second process runs the examples of the README all the time while the file is swapped: no error, no
    half state, and a reader that stays open keeps what it opened."""
    with edited_pages(tmp_path, TWO) as pages:
        run(home, pages, sources=TWO)
        stop = tmp_path / "stop"
        asking = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _ASK_UNTIL_STOPPED,
                str(home.published),
                str(stop),
                str(SQL_DIR / "examples"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for step in range(1, 3):
            run(home, pages, day=DAY + timedelta(days=step), sources=TWO)
        time.sleep(0.2)
        stop.touch()
        output, _ = asking.communicate(timeout=60)
    seen = json.loads(output)
    assert seen["errors"] == []
    assert seen["answers"] > 3
    assert seen["open_reader_days"] == [str(DAY)]
    assert set(seen["days"]) <= {str(DAY + timedelta(days=step)) for step in range(3)}
    assert len(seen["days"]) > 1


_ASK_UNTIL_STOPPED = """
import itertools, json, sys
from pathlib import Path
from pipeline.warehouse.query import ask, reader
published, stop, folder = map(Path, sys.argv[1:])
examples = itertools.cycle(path.read_text() for path in sorted(folder.glob("*.sql")))
ranked = "(SELECT count(*) FROM main.cheapest_gpu_per_workload) > 0"
whole = f"SELECT as_of_day::VARCHAR, {ranked} FROM main.publication"
errors, days, answers, kept = [], set(), 0, set()
with reader(published) as open_one:
    while not stop.exists() or answers == 0:
        try:
            kept.add(ask(open_one, whole).rows[0][0])
            with reader(published) as fresh:
                day, ranked = ask(fresh, whole).rows[0]
                ask(fresh, next(examples))
            days.add(day)
            answers += 1
            if not ranked:
                errors.append(f"half a file of {day}")
        except Exception as error:
            errors.append(repr(error))
seen = {"errors": errors, "days": sorted(days), "answers": answers, "open_reader_days": sorted(kept)}
print(json.dumps(seen))
"""


def test_leftovers_of_a_crashed_build_are_deleted(home: Home, tmp_path: Path) -> None:
    folder = home.published.parent
    (folder / ".building-1.tmp").mkdir(parents=True)
    left = [".building-1.duckdb", ".building-1.duckdb.wal", ".building-1.tmp/duckdb_temp_storage-0.tmp"]
    for name in left:
        (folder / name).write_bytes(b"half a file")
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        report = run(home, pages, sources=("crusoe",))
    assert report.published
    assert [path.name for path in folder.iterdir()] == [home.published.name]


def test_a_folder_in_place_of_the_published_file_is_set_aside_and_named(home: Home, tmp_path: Path) -> None:
    home.published.mkdir(parents=True)
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        run(home, pages, sources=("crusoe",))
    assert (home.damaged / "published" / home.published.name).is_dir()
    with reader(home.published) as connection:
        ((path, remedy),) = ask(connection, "SELECT path, remedy FROM main.incidents").rows
    assert path == "published/gpufare.duckdb"
    assert remedy.startswith("moved to damaged/published/gpufare.duckdb")


def test_the_moment_of_building_is_given_not_taken(home: Home, tmp_path: Path) -> None:
    moment = datetime(2026, 8, 22, 7, 0, tzinfo=UTC)
    with edited_pages(tmp_path, ("crusoe",)) as pages:
        run(home, pages, sources=("crusoe",), now=moment)
    with reader(home.published) as connection:
        assert ask(connection, "SELECT as_of_time FROM main.publication").rows == [(moment,)]
