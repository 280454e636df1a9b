"""The demonstration: the live path on sample pages. Only the address of the server differs."""

import json
import re
from datetime import date, datetime
from pathlib import Path

from pipeline.capture.index import INDEX_NAME
from pipeline.capture.replay import PagesServer
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home
from pipeline.contracts.progress import Progress, no_progress
from pipeline.daily.refresh import refresh


def run(pages: Path, home: Home, report_line: Progress, step: Progress = no_progress) -> None:
    """Serve the pages, refresh from them, and report the outcome and its place; ``step`` follows the work.
    Raises GpufareError."""
    day, first, last = sample_days(pages)
    report_line(f"Sample prices of {day}, not today's (list prices published {first} to {last}).")
    with PagesServer(pages) as server:
        report = refresh(home, day=day, pages=server.base_url, environment={}, progress=step)
    for line in report.lines():
        report_line(line)
    if not report.published:
        raise GpufareError(report.why_not_published())
    report_line(f"\nThe database: {home.published}\nThe archived answers: {home.archive}")


def sample_days(pages: Path) -> tuple[date, date, date]:
    """The day of the sample pages, and the first and last day on which their prices were published."""
    entries = [
        entry
        for index in sorted(pages.glob(f"*/{INDEX_NAME}"))
        for entry in json.loads(index.read_text(encoding="utf-8"))
    ]
    days = {datetime.fromisoformat(entry["observed_at"]).date() for entry in entries}
    if len(days) != 1:
        raise GpufareError(f"{pages}: sample pages must all be of one day, not of {sorted(map(str, days))}")
    dates = " ".join(entry.get("prices_of") or "" for entry in entries)
    priced = sorted(date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", dates))
    return days.pop(), priced[0], priced[-1]
