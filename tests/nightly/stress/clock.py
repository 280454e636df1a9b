"""The clock ahead, and back again: a day from the future never hides today's prices."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.journal import Journal
from pipeline.record.months import TABLES, Month, months, rows_of, write_days
from tests.nightly.stress.homes import CountingServer, Lab, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY, PRICES, SOURCES, Market
from tests.nightly.stress.runner import Figures, Part

AHEAD = timedelta(days=400)
LIBFAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
"""Where it is installed (Debian: libfaketime), a process's clock is really set; else what such a process
leaves behind is made by renaming."""


def command(home: Home, server: CountingServer, *options: str, at: datetime | None = None) -> tuple[int, str]:
    """`gpufare refresh` as a person runs it, with the clock at ``at``: exit status and output."""
    environment = os.environ | {HOME_VARIABLE: str(home.root)}
    if at is not None:
        moment = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        environment |= {"LD_PRELOAD": str(LIBFAKETIME[0]), "FAKETIME": f"@{moment}", "TZ": "UTC"}
    sources = [word for source in SOURCES for word in ("--source", source)]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "refresh", "--pages", server.base_url, *sources, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr[-400:]


def from_the_future(lab: Lab, home: Home, day: date) -> list[str]:
    """Leave in a home what a refresh with the clock 400 days ahead leaves."""
    future = day + AHEAD
    if LIBFAKETIME:
        with lab.serving(future) as server:
            status, said = command(home, server, at=datetime.now(UTC) + (future - _today()))
        return [] if status == 0 and f"published as of {future}" in said else [f"clock ahead: {said[-300:]}"]
    other = Home(lab.folder / "future")
    problems = [] if lab.refresh(other, day)["published"] else ["the other home was not published"]
    for path in sorted(other.archive.rglob(f"{day}*"), key=lambda path: -len(path.parts)):
        path.rename(path.with_name(path.name.replace(str(day), str(future))))
    shutil.copytree(other.archive, home.archive, dirs_exist_ok=True)
    for month in (month for table in TABLES for month in months(other, table)):
        write_days(home, Month.of(month.table, month.source, future), {future: rows_of(other, month)[day]})
    for kind in ("outcome", "exchange_rates"):
        for entry in Journal(other).entries(kind, day=day):
            content = entry.content.replace(str(day), str(future))
            Journal(home).write(kind, entry.source, future, entry.name, content)
    return problems


def _today() -> date:
    return datetime.now(UTC).date()


def ahead_and_back(lab: Lab) -> list[str]:
    """A day of the past, the clock 400 days ahead, and then today, by the clock of this machine."""
    today, home = _today(), Home(lab.folder / "home")
    market = Market(lab.market.seed)
    problems = [] if lab.refresh(home, today - timedelta(days=1))["published"] else ["no first day"]
    problems += from_the_future(lab, home, today)
    for _ in range(2):
        with lab.serving(today) as server:
            status, said = command(home, server)
        if status != 0 or f"published as of {today}" not in said:
            problems.append(f"today was not published (exit {status}): {said[-300:]}")
    problems += published_problems(home, [today]) + price_problems(home, market, today)
    seen = rows(home, f"FROM main.offers WHERE day > DATE '{today}'")
    return problems + ([f"{len(seen)} offers of the future are published"] if seen else [])


def mistyped_day(lab: Lab) -> list[str]:
    """``--day 2062-08-22`` is refused, leaves nothing, and today is published as ever."""
    today, home = _today(), Home(lab.folder / "home")
    with lab.serving(today) as server:
        status, said = command(home, server, "--day", "2062-08-22")
        problems = [] if status else ["a day of 2062 was not refused"]
        if "2062-08-22" not in said:
            problems.append(f"the refusal does not name the day: {said[-200:]}")
        if left := list(home.root.rglob("2062*")):
            problems.append(f"a day of 2062 left {len(left)} files")
        status, said = command(home, server)
    if status != 0 or f"published as of {today}" not in said:
        problems.append(f"today was not published (exit {status}): {said[-300:]}")
    return problems


def a_year_back(lab: Lab) -> list[str]:
    """The clock falls back a day between two refreshes: nothing is lost, and the newer prices stay."""
    home = lab.home("home")
    problems: list[str] = []
    for offset in (1, 2, 1, 3):
        day = FIRST_DAY + timedelta(days=offset)
        answer = lab.refresh(home, day)
        if not answer["published"]:
            problems.append(f"{day}: {str(answer)[-200:]}")
    last = FIRST_DAY + timedelta(days=3)
    problems += published_problems(home, [last])
    for offset in range(4):
        problems += price_problems(home, lab.market, FIRST_DAY + timedelta(days=offset), PRICES)
    return problems


CASES: dict[str, Callable[[Lab], list[str]]] = {
    "400 days ahead, then today": ahead_and_back,
    "--day 2062-08-22": mistyped_day,
    "a day back": a_year_back,
}


def units(seed: str) -> list[str]:
    """The cases."""
    return list(CASES)


def run(lab: Lab, unit: str, seed: str) -> Figures:
    """One case."""
    return {"problems": CASES[unit](lab), "real_clock": bool(LIBFAKETIME)}


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    how = "libfaketime" if all(result.get("real_clock") for result in results) else "files of a future day"
    return f"{'; '.join(str(result['unit']) for result in results)} (with {how})"


PART = Part("clock", "the clock ahead and back", units, run, figures, 40)
