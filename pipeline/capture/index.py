"""index.json: which answer lies in which file. One layout for the archive and for folders of saved pages.

Either a JSON list of entries or an object that holds them under ``answers``.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer

INDEX_NAME = "index.json"


class PagesError(GpufareError):
    """An index or a file it names is missing, damaged or outside its folder: says which and why."""


class Entry(BaseModel):
    """One request and its answer. ``file`` is relative to the folder, None when no body was kept; ``sha256``
    and ``bytes`` are of the body as it is read; ``body_sha256`` is of the request's body.

    ``not_modified_since`` names the capture whose body stands because the host answered 304; ``status`` and
    ``headers`` are then those of that body.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    method: str = "GET"
    url: str
    body_sha256: str | None = None
    status: int | None = 200
    headers: Mapping[str, str] = Field(default_factory=dict)
    file: str | None = None
    sha256: str | None = None
    bytes: int = 0
    observed_at: datetime | None = None
    duration_seconds: float = 0.0
    retries: int = 0
    outcome: str | None = None
    error: str | None = None
    final_url: str | None = None
    redacted: bool = False
    not_modified_since: str | None = None

    @field_validator("method")
    @classmethod
    def _upper(cls, method: str) -> str:
        return method.upper()

    @field_validator("headers", mode="before")
    @classmethod
    def _lower_names(cls, headers: Any) -> Any:
        if headers is None:
            return {}
        return (
            {str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else headers
        )

    @field_validator("observed_at")
    @classmethod
    def _utc(cls, moment: datetime | None) -> datetime | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    @property
    def usable(self) -> bool:
        """Whether a reader may read the answer: a body with status 200 that nothing was wrong with."""
        return self.file is not None and self.status == 200 and self.outcome in (None, "ok", "not_modified")


def sha256_of(body: bytes) -> str:
    """The hash that names a body, in hex."""
    return hashlib.sha256(body).hexdigest()


def parse_index(path: Path) -> tuple[Mapping[str, Any], list[Entry]]:
    """What index.json says of itself ({} for a bare list), and its entries. Raises PagesError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        about = content if isinstance(content, dict) else {}
        rows = content["answers"] if isinstance(content, dict) else content
        if not isinstance(rows, list):
            raise TypeError("the answers are not a list")
        return about, [Entry.model_validate(row) for row in rows]
    except OSError as error:
        raise PagesError(f"{path} cannot be read: {error.strerror}") from error
    except KeyError as error:
        raise PagesError(f"{path} is neither a list of answers nor an object with 'answers'") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise PagesError(f"{path}: {field}: {first['msg']}") from error
    except (ValueError, TypeError) as error:
        raise PagesError(f"{path} is not an index of answers: {error}") from error


def read_body(folder: Path, entry: Entry) -> bytes:
    """The body of an entry, unpacked when its file ends in .gz, its hash checked where the index has one.

    Raises PagesError when the file is missing, damaged, changed or not inside the folder.
    """
    if entry.file is None:
        raise PagesError(f"{folder}: no body was kept for {entry.url}")
    path = (folder / entry.file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise PagesError(f"{folder / INDEX_NAME}: file {entry.file!r} lies outside its folder")
    try:
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError as error:
        raise PagesError(f"{path} is missing, though {folder / INDEX_NAME} names it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise PagesError(f"{path} is damaged: {error}") from error
    if entry.sha256 is not None and sha256_of(body) != entry.sha256.lower():
        raise PagesError(
            f"{path} does not hold what was archived: its SHA-256 is {sha256_of(body)}, the index says "
            f"{entry.sha256}; the file was changed or damaged"
        )
    return body


def read_answer(folder: Path, entry: Entry, observed_at: datetime) -> Answer:
    """The entry as an Answer; ``observed_at`` stands in where the index does not say when it was observed."""
    body = read_body(folder, entry)
    return Answer(
        url=entry.url,
        body=body,
        observed_at=entry.observed_at or observed_at,
        sha256=entry.sha256 or sha256_of(body),
        status=entry.status or 200,
        headers=entry.headers,
    )
