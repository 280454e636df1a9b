"""Types of options and arguments that several commands share, and the current day."""

from datetime import UTC, date, datetime
from pathlib import Path

import click

FORMATS = click.Choice(["table", "csv", "json", "jsonl", "record"])
"""``json`` is one array, ``jsonl`` one object per line, ``record`` one line per value."""

FORMAT = click.option("--format", "form", type=FORMATS, default="table", show_default=True)
ALL_ROWS = click.option(
    "--all", "every", is_flag=True, help="Show all rows of a table; a terminal shows the first 40 by default."
)

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DAY = click.DateTime(["%Y-%m-%d"])


def today() -> date:
    """Return the current day (UTC)."""
    return datetime.now(UTC).date()


def moment(text: str) -> datetime:
    """Parse an ISO 8601 day or time and return it in UTC, which is assumed if the text has no offset."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time like 2026-08-22 or 2026-08-22T06:00:00Z") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
