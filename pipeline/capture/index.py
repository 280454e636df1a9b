"""index.json lists each answer and its file; the layout is the same in the archive and for saved pages.

The file is either a JSON list of entries or an object with that list under ``answers``.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer
from pipeline.contracts.request import Entry

INDEX_NAME = "index.json"


class PagesError(GpufareError):
    """An index or a file it names is missing, damaged or outside its folder. The message names the file."""


def sha256_of(body: bytes) -> str:
    """Return the SHA-256 of a body, in hex."""
    return hashlib.sha256(body).hexdigest()


def parse_index(path: Path) -> tuple[Mapping[str, Any], list[Entry]]:
    """Return the object in an index.json, and its entries; a bare list counts as an object's ``answers``.
    Raises PagesError if the file cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        about = content if isinstance(content, dict) else {"answers": content}
        if not isinstance(about.get("answers"), list):
            raise TypeError("it is neither a list nor an object with a list of 'answers'")
        return about, [Entry.model_validate(row) for row in about["answers"]]
    except OSError as error:
        raise PagesError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise PagesError(f"{path}: {field}: {first['msg']}") from error
    except (ValueError, TypeError) as error:
        raise PagesError(f"{path} is not an index of answers: {error}") from error


def read_body(folder: Path, entry: Entry) -> bytes:
    """Return an entry's body, unpacked if the file's name ends in .gz. If the index states a hash, the body
    is checked against it.

    Raises PagesError when the file is missing, damaged, changed or not inside the folder.
    """
    if entry.file is None:
        raise PagesError(f"{folder}: no body was stored for {entry.url}")
    path = (folder / entry.file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise PagesError(f"{folder / INDEX_NAME}: file {entry.file!r} is outside its folder")
    try:
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError as error:
        raise PagesError(f"{path} is missing, though {folder / INDEX_NAME} names it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise PagesError(f"{path} is damaged: {error}") from error
    if entry.sha256 is not None and sha256_of(body) != entry.sha256.lower():
        raise PagesError(
            f"{path} was changed or damaged: its SHA-256 is {sha256_of(body)}; the index says {entry.sha256}"
        )
    return body


def read_answer(folder: Path, entry: Entry, observed_at: datetime) -> Answer:
    """Return the entry as an Answer; if the index states no time, ``observed_at`` is used."""
    body = read_body(folder, entry)
    return Answer(
        url=entry.url,
        body=body,
        observed_at=entry.observed_at or observed_at,
        sha256=entry.sha256 or sha256_of(body),
        status=entry.status or 200,
        headers=entry.headers,
    )
