"""The clock ahead, and back again: a day from the future never hides today's prices, and what is published
never goes back in time."""

import os
import shutil
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.journal import Journal
from pipeline.record.months import TABLES, Month, months, rows_of, write_days
from tests.nightly.processes import ran
from tests.nightly.stress.homes import CountingServer, Lab, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY, SOURCES

AHEAD = timedelta(days=400)
LIBFAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
"""Where it is installed (Debian: libfaketime), a process's clock is really set; else what such a process
leaves behind is made by renaming."""

GPUFARE = """
import sys
from pathlib import Path
from pipeline.cli.main import main
from pipeline.home import paths
paths.CATALOG_DIR = Path(sys.argv.pop(1))
main()
"""


def today() -> date:
    return datetime.now(UTC).date()


def command(
    lab: Lab, home: Home, server: CountingServer, *options: str, at: datetime | None = None
) -> tuple[int, str]:
    """`gpufare refresh` as a person runs it, with the clock at ``at``: exit status and output."""
    environment = os.environ | {HOME_VARIABLE: str(home.root)}
    if at is not None:
        environment |= {
            "LD_PRELOAD": str(LIBFAKETIME[0]),
            "FAKETIME": f"@{at:%Y-%m-%d %H:%M:%S}",
            "TZ": "UTC",
        }
    sources = [word for source in SOURCES for word in ("--source", source)]
    program = [sys.executable, "-c", GPUFARE, str(lab.catalogue), "refresh", "--pages", server.base_url]
    done = ran([*program, *sources, *options], env=environment)
    return done.returncode, done.stdout + done.stderr


def publish_today(lab: Lab, home: Home) -> None:
    with lab.serving(today()) as server:
        status, said = command(lab, home, server)
    assert status == 0, said
    assert f"published as of {today()}" in said
    assert published_problems(home, [today()]) + price_problems(home, lab.market, today()) == []


def live_in_the_future(lab: Lab, home: Home, day: date) -> None:
    """Leave in a home what a refresh with the clock 400 days ahead leaves."""
    future = day + AHEAD
    if LIBFAKETIME:
        with lab.serving(future) as server:
            status, said = command(lab, home, server, at=datetime.now(UTC) + AHEAD)
        assert status == 0, said
        assert f"published as of {future}" in said
        return
    other = lab.home("future", days=0)
    assert lab.refresh(other, day).published
    for path in sorted(other.archive.rglob(f"{day}*"), key=lambda path: -len(path.parts)):
        path.rename(path.with_name(path.name.replace(str(day), str(future))))
    shutil.copytree(other.archive, home.archive, dirs_exist_ok=True)
    for month in (month for table in TABLES for month in months(other, table)):
        write_days(home, Month.of(month.table, month.source, future), {future: rows_of(other, month)[day]})
    for kind in ("outcome", "exchange_rates"):
        for entry in Journal(other).entries(kind, day=day):
            content = entry.content.replace(str(day), str(future))
            Journal(home).write(kind, entry.source, future, entry.name, content)


def test_a_clock_400_days_ahead_does_not_hide_today(lab: Lab) -> None:
    home = lab.home("home", days=0)
    assert lab.refresh(home, today() - timedelta(days=1)).published
    live_in_the_future(lab, home, today())
    if LIBFAKETIME:
        with lab.serving(today()) as server:
            status, said = command(lab, home, server)
        assert status == 1, said
        assert "set the clock of this machine or, if the clock is right, move that file away" in said
        home.published.unlink()
    for _ in range(2):
        publish_today(lab, home)
    assert rows(home, f"FROM main.offers WHERE day > DATE '{today()}'") == []


def test_a_mistyped_day_is_refused_and_leaves_nothing(lab: Lab) -> None:
    home = lab.home("home", days=0)
    with lab.serving(today()) as server:
        status, said = command(lab, home, server, "--day", "2062-08-22")
    assert status != 0
    assert "2062-08-22" in said
    assert list(home.root.rglob("2062*")) == []
    publish_today(lab, home)


def test_a_clock_that_falls_back_a_day_loses_nothing(lab: Lab) -> None:
    home = lab.home("home")
    answers = [lab.refresh(home, FIRST_DAY + timedelta(days=offset)) for offset in (1, 2, 1, 3)]
    assert [bool(answer.published) for answer in answers] == [True, True, False, True]
    assert "a refresh that began later has published" in answers[2].said
    days = [FIRST_DAY + timedelta(days=offset) for offset in range(4)]
    assert published_problems(home, days[-1:]) == []
    assert [problem for day in days for problem in price_problems(home, lab.market, day)] == []
