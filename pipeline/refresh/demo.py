"""The demonstration: the live path on sample pages. Only the address of the server differs."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

from pipeline.capture.index import INDEX_NAME
from pipeline.capture.replay import PagesServer
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.disk import replacing
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.record_files import record_files
from pipeline.refresh.refresh import refresh

FOLDER = "gpufare-demo"


def demo_home(environment: Mapping[str, str]) -> Home:
    """Where the demonstration is kept: $GPUFARE_HOME, else a folder of its own in the current one. Sample
    prices stay out of the home that a refresh fills by default."""
    return Home(Path(environment.get(HOME_VARIABLE) or FOLDER).expanduser().absolute())


def run(pages: Path, home: Home, report_line: Progress, step: Progress = no_progress) -> None:
    """Serve the pages, refresh from them, and report the outcome and its place; ``step`` follows the work.
    Raises GpufareError, also where the home has prices of other days."""
    day, first, last = sample_days(pages)
    _refuse_a_home_in_use(home, day)
    _mark(home, day)
    report_line(f"Sample prices of {day}, not today's (list prices published {first} to {last}).")
    with PagesServer(pages) as server:
        report = refresh(home, day=day, pages=server.base_url, environment={}, progress=step)
    for line in report.lines():
        report_line(line)
    if failure := report.failure():
        raise GpufareError(failure)
    report_line(f"\nThe database: {home.published}\nThe archived answers: {home.archive}")


def _refuse_a_home_in_use(home: Home, day: date) -> None:
    days = {file.day for file in record_files(home, "outcomes")} - {day}
    if days:
        raise GpufareError(
            f"{home.root} has prices of {max(days)}, beside which sample prices of {day} have no place: "
            f"unset {HOME_VARIABLE}, and the demo makes a folder {FOLDER} here, or set it to a new folder"
        )


def _mark(home: Home, day: date) -> None:
    """Before the first sample price: a refresh that asks the providers then refuses the home."""
    about = {"about": f"gpufare's demo: sample prices of {day}. No refresh asks the providers into it."}
    with replacing(home.demo) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def sample_days(pages: Path) -> tuple[date, date, date]:
    """The day of the sample pages, and the first and last day on which their prices were published."""
    entries = [
        entry
        for index in sorted(pages.glob(f"*/{INDEX_NAME}"))
        for entry in json.loads(index.read_text(encoding="utf-8"))
    ]
    days = {datetime.fromisoformat(entry["observed_at"]).date() for entry in entries}
    if not days:
        raise GpufareError(f"{pages}: there are no sample pages: no folder in it has an {INDEX_NAME}")
    if len(days) != 1:
        raise GpufareError(f"{pages}: sample pages must all be of one day, not of {sorted(map(str, days))}")
    dates = " ".join(entry.get("prices_of") or "" for entry in entries)
    priced = sorted(date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", dates))
    return days.pop(), priced[0], priced[-1]
