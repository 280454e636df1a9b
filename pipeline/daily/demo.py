"""The demonstration: the live path on sample pages. Only the address that is asked differs."""

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

from pipeline.capture.index import INDEX_NAME
from pipeline.capture.replay import serve_pages
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home
from pipeline.daily.refresh import refresh


def run(pages: Path, home: Home, say: Callable[[str], None]) -> None:
    """Serve the pages, refresh from them and say what came of it and where it lies. Raises GpufareError."""
    day, first, last = sample_days(pages)
    say(f"Sample prices of {day}, not today's (list prices published {first} to {last}).")
    with serve_pages(pages) as server:
        report = refresh(home, day=day, pages=server.base_url, environment={})
    for line in report.lines():
        say(line)
    if not report.published:
        raise GpufareError(report.why_not_published())
    say(f"\nThe database: {home.published}\nThe archived answers: {home.archive}")
    say(f"Ask it: GPUFARE_HOME={home.root} gpufare sql 'FROM gpu_compare'")
    say(f"Take it along: GPUFARE_HOME={home.root} gpufare export FOLDER")


def sample_days(pages: Path) -> tuple[date, date, date]:
    """The day that the sample pages stand for, and the days between which their prices were published."""
    entries = [
        entry
        for index in sorted(pages.glob(f"*/{INDEX_NAME}"))
        for entry in json.loads(index.read_text(encoding="utf-8"))
    ]
    days = {datetime.fromisoformat(entry["observed_at"]).date() for entry in entries}
    if len(days) != 1:
        raise GpufareError(f"{pages}: sample pages must all be of one day, not of {sorted(map(str, days))}")
    told = " ".join(entry.get("prices_of") or "" for entry in entries)
    priced = sorted(date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", told))
    return days.pop(), priced[0], priced[-1]
