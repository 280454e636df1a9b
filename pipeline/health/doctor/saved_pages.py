"""Keeps a visit's answers as a folder of pages, which a refresh, a replay server and the tests read.

DIR/<source>/ has the unpacked bodies and an index.json; see pipeline/capture/index.py. Keys are placeholders
already when an answer is archived; of its headers only those are kept that a reader or a replay uses.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.index import INDEX_NAME, read_body
from pipeline.catalog.source_config import PageNumberPaging, SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.request import Entry
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home

KEPT_HEADERS = frozenset({"content-type", "date", "etag", "last-modified", "link", "retry-after"})


class SaveError(GpufareError):
    """The answers cannot be kept: says where, why, and what to do."""


def check_free(folder: Path, chosen: Iterable[SourceConfig]) -> None:
    """Before anything is asked. Raises SaveError where a source's folder exists: nothing is overwritten."""
    if folder.exists() and not folder.is_dir():
        raise SaveError(f"--save {folder} is a file: name a folder")
    taken = [config.name for config in chosen if (folder / config.name).exists()]
    if taken:
        raise SaveError(
            f"--save {folder} already has {', '.join(taken)}: name another folder, or remove them"
        )


def save_pages(
    folder: Path, capture: Capture, archive: Archive, config: SourceConfig, environment: Mapping[str, str]
) -> Path:
    """Write the answers of every request that was sent, failed ones included. Returns the folder.

    Raises SaveError when it cannot be written, or when a key is found in what would be.
    """
    sent = [entry for entry in capture.entries if entry.sent]
    files = {
        entry.file.removesuffix(".gz"): read_body(archive.folder(capture), entry)
        for entry in sent
        if entry.file is not None
    }
    rows = [_row(entry, config) for entry in sent]
    files[INDEX_NAME] = (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode()
    secrets = Secrets(environment, config.key_variables)
    for name, content in files.items():
        if secrets.contains_secret(content):
            raise SaveError(f"{folder / name} would have a key in it: nothing of {config.name} was saved")
    try:
        folder.mkdir(parents=True)
        with _all_or_nothing(folder):
            for name, content in files.items():
                (folder / name).write_bytes(content)
    except OSError as error:
        raise SaveError(f"the answers cannot be saved: {disk_error_text(error, Home(folder))}") from error
    return folder


@contextmanager
def _all_or_nothing(folder: Path) -> Iterator[None]:
    """Half a folder proves nothing: remove it when it could not be filled."""
    try:
        yield
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _row(entry: Entry, config: SourceConfig) -> dict[str, Any]:
    """An entry of index.json."""
    kept = set(KEPT_HEADERS)
    if isinstance(config.paging, PageNumberPaging) and config.paging.total_header:
        kept.add(config.paging.total_header.lower())
    row: dict[str, Any] = {
        "method": entry.method,
        "url": entry.url,
        "body_sha256": entry.body_sha256,
        "status": entry.status,
        "headers": {name: value for name, value in entry.headers.items() if name in kept},
        "file": entry.file.removesuffix(".gz") if entry.file else None,
        "sha256": entry.sha256,
        "observed_at": entry.observed_at.isoformat() if entry.observed_at else None,
        "prices_of": f"{entry.observed_at.date()}" if entry.observed_at else None,
        "optional": entry.optional,
    }
    if not entry.usable:
        row |= {"outcome": entry.outcome, "error": entry.error}
    if entry.final_url:
        row["final_url"] = entry.final_url
    if entry.instead:
        row["instead"] = list(entry.instead)
    if entry.warning:
        row["warning"] = entry.warning
    return row
