"""The demonstration: a refresh from the sample pages."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

from pipeline.capture.index import INDEX_NAME
from pipeline.capture.permissions import read_choices
from pipeline.catalog.source_config import asked_configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.disk import replacing
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.records import Records
from pipeline.refresh.permissions import is_asked, off_lines
from pipeline.refresh.refresh import refresh

FOLDER = "gpufare-demo"


def demo_home(environment: Mapping[str, str]) -> Home:
    """Return the home of the demonstration: $GPUFARE_HOME, or else a folder in the current folder. Sample
    prices stay out of the home that a refresh fills by default."""
    return Home(Path(environment.get(HOME_VARIABLE) or FOLDER).expanduser().absolute())


def run(pages: Path, home: Home, report_line: Progress, step: Progress = no_progress) -> None:
    """Refresh from the pages of the sources that a first refresh asks, and report the outcome, the sources
    that it does not ask, and where everything is kept; ``step`` reports progress. Raises GpufareError, for
    example if the home contains prices of other days."""
    day, first, last = sample_days(pages)
    _require_unused_home(home, day)
    _mark(home, day)
    report_line(f"Sample prices of {day}, not today's (list prices published {first} to {last}).")
    saved = [config for name, config in asked_configs().items() if (pages / name).is_dir()]
    asked = [config.name for config in saved if is_asked(config, read_choices(home), {})]
    report = refresh(home, day=day, sources=asked, pages=str(pages), environment={}, progress=step)
    for line in (*report.lines(), *off_lines(saved, home, {})):
        report_line(line)
    if failure := report.failure():
        raise GpufareError(failure)
    report_line(f"\nThe database: {home.published}\nThe archived answers: {home.archive}")


def _require_unused_home(home: Home, day: date) -> None:
    days = set(Records(home).outcome_days()) - {day}
    if days:
        raise GpufareError(
            f"{home.root} already has prices of {max(days)}, and sample prices of {day} do not belong there: "
            f"unset {HOME_VARIABLE}, and the demo makes a folder {FOLDER} here, or set it to a new folder"
        )


def _mark(home: Home, day: date) -> None:
    """Mark the home before it gets sample prices, so that no refresh adds the providers' prices to it."""
    about = {"about": f"gpufare's demo: sample prices of {day}. No refresh asks the providers into it."}
    with replacing(home.demo) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def sample_days(pages: Path) -> tuple[date, date, date]:
    """Return the day of the sample pages, and the first and last day on which their prices were published."""
    entries = [
        entry
        for index in sorted(pages.glob(f"*/{INDEX_NAME}"))
        for entry in json.loads(index.read_text(encoding="utf-8"))
    ]
    days = {datetime.fromisoformat(entry["observed_at"]).date() for entry in entries}
    if not days:
        raise GpufareError(f"{pages}: no sample pages: no folder has an {INDEX_NAME}")
    if len(days) != 1:
        raise GpufareError(f"{pages}: sample pages must all be of one day, not of {sorted(map(str, days))}")
    dates = " ".join(entry.get("prices_of") or "" for entry in entries)
    priced = sorted(date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", dates))
    return days.pop(), priced[0], priced[-1]
