"""Keeps a visit's answers as a folder of pages, which a refresh, a replay server and the tests read.

DIR/<source>/ has the unpacked bodies and an index.json; see pipeline/capture/index.py. Keys are placeholders
already when an answer is archived; of its headers only those are kept that a reader or a replay uses.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.index import INDEX_NAME, PagesError, read_body
from pipeline.catalog.source_config import PageNumberPaging, SourceConfig, source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.request import Entry
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home

KEPT_HEADERS = frozenset({"content-type", "date", "link", "retry-after"})

_OF_THE_ARCHIVE = {"bytes", "duration_seconds", "retries"}
"""Fields of an entry that say nothing of the answer."""


def check_free(folder: Path, chosen: Iterable[SourceConfig]) -> None:
    """Raise GpufareError where a source's folder exists, before anything is asked: nothing is overwritten."""
    if folder.exists() and not folder.is_dir():
        raise GpufareError(f"--save {folder} is a file: name a folder")
    taken = [config.name for config in chosen if (folder / config.name).exists()]
    if taken:
        raise GpufareError(
            f"--save {folder} already has {', '.join(taken)}: name another folder, or remove them"
        )


def save_pages(
    folder: Path, capture: Capture, archive: Archive, environment: Mapping[str, str]
) -> Path | None:
    """Write the answers of every request that was sent, failed ones included, and return the folder; None
    where none was sent.

    Raises GpufareError when it cannot be written, as a whole, or when a key is found in what would be.
    """
    config = source_config(capture.source)
    sent = [entry for entry in capture.entries if entry.sent]
    if not sent:
        return None
    try:
        files = {_file(entry): read_body(archive.folder(capture), entry) for entry in sent if entry.file}
    except PagesError as error:
        raise GpufareError(f"the answers of {config.name} cannot be saved: {error}") from error
    index = json.dumps([_row(entry, config) for entry in sent], indent=1, ensure_ascii=False)
    files[INDEX_NAME] = f"{index}\n".encode()
    secrets = Secrets(environment, config.key_variables)
    for name, content in files.items():
        if secrets.contains_secret(content):
            raise GpufareError(f"{folder / name} would have a key in it: nothing of {config.name} was saved")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", suffix=".writing", dir=folder.parent) as temporary:
            whole = Path(temporary, folder.name)
            whole.mkdir()
            for name, content in files.items():
                (whole / name).write_bytes(content)
            whole.rename(folder)
    except OSError as error:
        raise GpufareError(f"the answers cannot be saved: {disk_error_text(error, Home(folder))}") from error
    return folder


def _file(entry: Entry) -> str:
    return (entry.file or "").removesuffix(".gz")


def _row(entry: Entry, config: SourceConfig) -> dict[str, Any]:
    """An entry of index.json; ``prices_of`` is the day (UTC) of its prices."""
    total = config.paging.total_header if isinstance(config.paging, PageNumberPaging) else None
    kept = KEPT_HEADERS | {(total or "").lower()}
    headers = {name: value for name, value in entry.headers.items() if name in kept}
    unpacked = entry.model_copy(update={"headers": headers, "file": _file(entry) or None})
    row = {"method": entry.method, "url": entry.url, "status": entry.status, "file": unpacked.file}
    row |= unpacked.model_dump(mode="json", exclude=_OF_THE_ARCHIVE, exclude_defaults=True)
    return row | ({"prices_of": f"{entry.observed_at.date()}"} if entry.observed_at else {})
