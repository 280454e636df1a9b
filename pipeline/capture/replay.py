"""Import of saved answers from a folder into the archive, in place of live answers.

A folder of pages consists of ``DIR/<source>/index.json`` and the files that it names (see index.py). Without
an index.json, the source's files, sorted by name, count as answers to the yaml's requests in order; further
files count as further pages of the last request.
"""

from datetime import UTC, date, datetime, time
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry


def page_entries(folder: Path, config: SourceConfig) -> list[Entry]:
    """Return the entries of a source's folder of pages. Raises PagesError if the folder cannot be used.

    ``config`` supplies the URLs of the files in a folder without an index.json.
    """
    if not folder.is_dir():
        raise PagesError(f"{folder} does not exist; saved pages belong in DIR/<source>/")
    if (folder / INDEX_NAME).exists():
        return parse_index(folder / INDEX_NAME)[1]
    files = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise PagesError(f"{folder} is empty")
    asked = list(config.requests) or [RequestFacts(url=config.homepage)]
    asked += [asked[-1]] * (len(files) - len(asked))
    return [
        Entry(method=facts.method, url=facts.url, file=file, optional=facts.optional)
        for facts, file in zip(asked, files, strict=False)
    ]


def capture_pages(directory: Path, config: SourceConfig, *, day: date, archive: Archive) -> Capture:
    """Archive one source's saved answers from a folder as a capture on ``day``.

    An answer without an observation time is given the beginning of the day (UTC). An error in the folder's
    content becomes the capture's error. Raises OSError when the archive cannot be written.
    """
    folder = directory / config.name
    writer = archive.start(config.name, day, replayed_from=str(directory))
    if config.disabled is not None:
        return writer.finish("disabled", config.disabled)
    try:
        entries = page_entries(folder, config)
        bodies = [read_body(folder, entry) if entry.file else None for entry in entries]
    except PagesError as error:
        return writer.finish("failed", str(error))
    beginning = datetime.combine(day, time.min, tzinfo=UTC)
    optional = {(facts.method, facts.url) for facts in config.requests if facts.optional}
    for entry, body in zip(entries, bodies, strict=True):
        empty = entry.outcome is OutcomeCode.OK and not body
        known = {
            "outcome": OutcomeCode.EMPTY_BODY if empty else entry.outcome,
            "observed_at": entry.observed_at or (beginning if entry.sent else None),
            "file": None,
            "optional": entry.optional or (entry.method, entry.url) in optional,
        }
        writer.add(entry.model_copy(update=known), body)
    return writer.finish(error=None if entries else f"{folder / INDEX_NAME} lists no answers")
