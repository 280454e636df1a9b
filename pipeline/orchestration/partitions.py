"""The days of the sources' assets: from the first archived day to today."""

from datetime import UTC, date, datetime

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.home.paths import Home


def daily_partitions(home: Home) -> dg.DailyPartitionsDefinition:
    """A partition per day (UTC). Days before the first archived one have no pages to show, so they are none.

    end_offset=1: a page captured today belongs to today's partition, not yesterday's.
    """
    start = first_day(home, datetime.now(UTC).date())
    return dg.DailyPartitionsDefinition(start_date=start.isoformat(), timezone="UTC", end_offset=1)


def first_day(home: Home, today: date) -> date:
    """The first archived day; ``today`` while there is none, or where the archive cannot be read."""
    archive = Archive(home.archive)
    try:
        return min([day for source in archive.sources() for day in archive.days(source)[:1]] + [today])
    except OSError:
        return today
