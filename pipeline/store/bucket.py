"""The few operations on a bucket that a publication needs; each is atomic, so an object is whole or absent.

Buckets are reached through obstore. A folder (file://) does not support conditional replacement; a lock file
beside the objects provides it for all processes that share the file system and its locks.
"""

import mimetypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from filelock import FileLock
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore, from_url

from pipeline.capture.http.secrets import Secrets
from pipeline.parsing.printable import printable
from pipeline.store.address import STORE_VARIABLE, StoreError

_SOUNDS_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)

RETRIES = 4
RETRY_TIMEOUT = timedelta(seconds=90)

PARTS_AT_ONCE = 4
"""Files of more than 5 MiB are sent in parts, this many at a time."""

MAX_REASON_CHARACTERS = 300

Version = dict[str, Any]
"""A store's identifier for the state of an object: an ETag and, in some stores, a version number."""

_QUERY = re.compile(r"(https?://[^\s?]+)\?\S+")


@dataclass(slots=True)
class Bucket:
    """The objects under one checked address, accessed with the keys in this process's environment.

    A bucket is safe to use from several threads. Every method raises StoreError on failure.
    """

    address: str
    _store: ObjectStore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        retrying = {"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT}
        options: dict[str, Any] = {"mkdir": True} if self.folder else {"retry_config": retrying}
        with self._naming("opened", ""):
            self._store = from_url(self.address, **options)

    @property
    def folder(self) -> Path | None:
        """The folder of a file:// address; None for any other address."""
        url = urlsplit(self.address)
        return Path(unquote(url.path)) if url.scheme == "file" else None

    def url(self, key: str) -> str:
        """Return the address of an object."""
        return f"{self.address}/{key}"

    def put(self, key: str, file: Path) -> None:
        """Store a file under a key that contains its hash, unless the key exists, in which case the content
        is already there. A large file is sent in parts, and appears once all parts are there."""
        if self.size_bytes(key) == file.stat().st_size:
            return
        with self._naming("written", key):
            headers = self._headers(key)
            obstore.put(self._store, key, file, attributes=headers, max_concurrency=PARTS_AT_ONCE)

    def replace(self, key: str, content: bytes, seen: Version | None) -> bool:
        """Replace an object if it still has the version ``seen``, or create it if ``seen`` is None. Return
        False, and change nothing, if the object has another version."""
        with self._naming("replaced", key):
            try:
                if seen and self.folder is not None:
                    return self._replace_file(key, content, seen)
                mode: Any = seen or "create"
                obstore.put(self._store, key, content, attributes=self._headers(key), mode=mode)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                return False
        return True

    def _replace_file(self, key: str, content: bytes, seen: Version) -> bool:
        with FileLock(f"{self.folder}/.replacing.lock"):
            if obstore.head(self._store, key)["e_tag"] != seen["e_tag"]:
                return False
            obstore.put(self._store, key, content)
        return True

    def read(self, key: str, most_bytes: int) -> tuple[bytes, Version] | None:
        """Return an object of at most ``most_bytes`` and its version; None if absent. Raises StoreError."""
        with self._naming("read", key):
            try:
                found = obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            if (size := found.meta["size"]) > most_bytes:
                raise StoreError(f"{self.url(key)} has {size} bytes, more than {most_bytes}")
            version = {"e_tag": found.meta["e_tag"], "version": found.meta["version"]}
            return bytes(found.bytes()), {name: value for name, value in version.items() if value}

    def size_bytes(self, key: str) -> int | None:
        """Return the size of an object; None if the object is missing."""
        with self._naming("looked up", key):
            try:
                return int(obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return None

    def _headers(self, key: str) -> dict[str, str]:
        """Return the HTTP headers to store with an object, for browsers; a folder stores no headers."""
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        return {} if self.folder else {"Content-Type": kind, "Cache-Control": "no-cache"}

    @contextmanager
    def _naming(self, what: str, key: str) -> Iterator[None]:
        """Turn the library's errors into a StoreError that contains the object's address, but no keys."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # the error's text and cause may contain keys
            reason = _without_keys(str(error).partition("\n\nDebug source")[0])
            raise StoreError(
                f"{self.url(key) if key else self.address} cannot be {what}: {reason}; check "
                f"{STORE_VARIABLE}, the keys in the environment and the network"
            ) from None


def _without_keys(text: str) -> str:
    """Return an error as one line, without keys and without URL queries, which may contain signatures."""
    names = [name for name in os.environ if _SOUNDS_SECRET.search(name)]  # the library may have read any key
    text = Secrets(os.environ, names).redact(" ".join(text.split()))
    return printable(_QUERY.sub(r"\1", text))[:MAX_REASON_CHARACTERS]
