"""The inputs of a refresh: the sources, the day, and the captures.

Captures come from the providers, a replay server, a folder of pages or the archive; all of them are archived
before they are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.replay import capture_pages, page_entries
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig, asked_configs, source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import HOME_VARIABLE, Home

ARCHIVE = "archive"
"""The value of ``pages`` that reads a day of the archive again with today's readers."""


def reject_demo_home(home: Home) -> None:
    """Raise GpufareError for the home of a demo, where today's prices would be filed beside sample prices."""
    if home.is_demo:
        raise GpufareError(
            f"{home.root} is the demo's: today's prices do not belong beside its sample prices. Unset "
            f"{HOME_VARIABLE}, or set it to another folder"
        )


def chosen_sources(names: Sequence[str], pages: str | None) -> list[SourceConfig]:
    """Return the named sources, by default all that may be asked; with a folder of pages, only those in it.

    Raises GpufareError.
    """
    chosen = [source_config(name) for name in names] or list(asked_configs().values())
    if pages != ARCHIVE and (imported := [each.name for each in chosen if each.kind == "imported"]):
        raise GpufareError(f"{imported[0]} has no pages to ask: gpufare import FILE.csv brings its prices")
    if (folder := _folder(pages)) is None:
        return chosen
    if not folder.is_dir():
        raise GpufareError(f"--pages {folder}: no such folder")
    if files := [config.name for config in chosen if (folder / config.name).is_file()]:
        raise GpufareError(f"--pages {folder}: {', '.join(files)} must be a folder of pages, not a file")
    found = [config for config in chosen if (folder / config.name).is_dir()]
    missing = [config.name for config in chosen if config not in found]
    if names and missing:
        raise GpufareError(f"--pages {folder} has no folder for {', '.join(missing)}")
    if not found:
        raise GpufareError(f"--pages {folder}: none of its folders has the name of a source")
    return found


def day_to_read(day: date | None, chosen: Iterable[SourceConfig], pages: str | None, today: date) -> date:
    """Return the requested day; by default, the day on which saved answers were observed, or else today.

    Raises GpufareError for a day after today (UTC): the prices of such a day would count as newer than
    everything captured until then.
    """
    folder, where = _folder(pages), "--day"
    if day is None and folder is not None:
        entries = (entry for config in chosen for entry in page_entries(folder / config.name, config))
        observed = {entry.observed_at.date() for entry in entries if entry.observed_at}
        day, where = max(observed, default=today), f"--pages {folder}: observed_at of a saved answer,"
    if day is not None and day > today:
        raise GpufareError(
            f"{where} {day} is after today ({today} UTC); check it, and the clock of this machine"
        )
    return day or today


def captures_of(
    chosen: Sequence[SourceConfig],
    day: date,
    pages: str | None,
    archive: Archive,
    environment: Mapping[str, str],
    *,
    named: bool,
    progress: Progress = no_progress,
    limits: Limits | None = None,
) -> dict[str, list[Capture]]:
    """Return each source's captures to read: those just made, or all captures of the day in the archive.

    When the archive is read, sources without a capture are skipped unless they were ``named``, so that the
    outcomes of these sources are kept. Raises GpufareError.
    """
    if pages == ARCHIVE:
        _check_day_is_archived(archive, chosen, day)
        found = {config.name: archive.captures(config.name, day) for config in chosen}
        return {name: captures for name, captures in found.items() if captures or named}
    captures = capture_sources(
        chosen, day, archive, environment, pages=pages, progress=progress, limits=limits
    )
    return {name: [capture] for name, capture in captures.items()}


def _capture_pages(folder: Path, config: SourceConfig, day: date, archive: Archive) -> Capture:
    """Capture a folder of pages. A capture that cannot be archived counts as failed, but stops no others."""
    try:
        return capture_pages(folder, config, day=day, archive=archive)
    except OSError as error:
        reason = f"the archive cannot be written: {disk_error_text(error, Home(archive.root.parent))}"
        return Capture(source=config.name, day=day, capture_id=None, status="failed", error=reason)


def capture_sources(
    chosen: Sequence[SourceConfig],
    day: date,
    archive: Archive,
    environment: Mapping[str, str],
    *,
    pages: str | None = None,
    progress: Progress = no_progress,
    limits: Limits | None = None,
) -> dict[str, Capture]:
    """Capture the sources from the providers, or instead from a folder of pages or a replay server.

    Raises GpufareError if the providers are to be asked for a day that is not today.
    """
    if (folder := _folder(pages)) is not None:
        return {config.name: _capture_pages(folder, config, day, archive) for config in chosen}
    try:
        replay = ReplayServer(pages) if pages else None
    except ValueError as error:
        raise GpufareError(f"--pages {pages}: {error}") from error
    with Client(limits=limits, replay=replay, environment=environment) as client:
        return capture_all(
            chosen, environment=environment, day=day, archive=archive, client=client, progress=progress
        )


def is_url(pages: str | None) -> bool:
    """True if ``pages`` is the URL of a replay server."""
    return bool(pages) and str(pages).startswith(("http://", "https://"))


def _folder(pages: str | None) -> Path | None:
    if not pages or pages == ARCHIVE or is_url(pages):
        return None
    return Path(pages)


def _check_day_is_archived(archive: Archive, chosen: Iterable[SourceConfig], day: date) -> None:
    days = sorted({each for config in chosen for each in archive.days(config.name)})
    if day not in days:
        available = f"it has captures of {days[0]} to {days[-1]}" if days else "it is empty"
        raise GpufareError(f"the archive has no captures of {day}; {available}")
