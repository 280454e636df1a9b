"""Types of options and arguments that several commands share, and the day."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

FORMATS = click.Choice(["table", "csv", "json", "jsonl", "record"])
"""``json`` is one array, ``jsonl`` an object per line, ``record`` a line per value."""

FORMAT = click.option("--format", "form", type=FORMATS, default="table", show_default=True)
ALL_ROWS = click.option(
    "--all", "every", is_flag=True, help="Show all rows; a terminal gets the first 40 of a table."
)

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DAY = click.DateTime(["%Y-%m-%d"])


def today() -> date:
    """Return the current day (UTC)."""
    return datetime.now(UTC).date()


class Moment(click.ParamType[datetime]):
    """A day or time in ISO 8601; UTC if it has no offset."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time in UTC."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time like 2026-08-22 or 2026-08-22T06:00:00Z", param, ctx)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
