"""The few operations on a store that the rest is built on, each atomic: an object is whole or absent.

Stores are reached through obstore. A folder (file://) has no conditional replacement of its own: there a lock
on a file beside the objects makes it one, for all who share that file system and its locks.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from pipeline.parsing.printable import printable
from pipeline.store.address import STORE_VARIABLE, StoreError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

TIMEOUT = timedelta(seconds=60)
RETRIES = 4
RETRY_TIMEOUT = timedelta(seconds=90)

SINGLE_PUT_BYTES = 64 * 1024**2
"""Larger files are sent in parts, which no store does only-if-absent: their names have their hash."""

PART_BYTES = 16 * 1024**2
PAGE = 1_000
"""Names that one request lists."""

MAX_REASON_CHARACTERS = 300

ALLOW_HTTP = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
"""One of them, set to true, allows a store of one's own without TLS."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(?:/[A-Za-z0-9][A-Za-z0-9._+-]*)*")
_SOUNDS_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|SAS", re.IGNORECASE)
_SHORTEST_SECRET = 6


class TooLargeError(StoreError):
    """An object has more bytes than it may have, and was not read."""


@dataclass(frozen=True, slots=True)
class Version:
    """What a store calls the state of an object: an ETag, and with some a number."""

    e_tag: str | None
    version: str | None = None


@dataclass(slots=True)
class Traffic:
    """What was asked of a store. Requests that the library repeated count once."""

    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass(slots=True)
class Bucket:
    """A store below one address. Safe to use from several threads. Every method raises StoreError."""

    address: str
    environment: Mapping[str, str] = field(repr=False)
    traffic: Traffic = field(default_factory=Traffic)
    _store: "ObjectStore" = field(init=False, repr=False)
    _counting: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        try:
            from obstore.store import from_url
        except ImportError as error:
            remedy = "install gpufare[store]"
            raise StoreError(f"{STORE_VARIABLE} is set, but obstore is not installed: {remedy}") from error
        options: dict[str, Any] = {"retry_config": {"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT}}
        if self.folder is None:
            allowed = any(self.environment.get(name, "").lower() in ("1", "true") for name in ALLOW_HTTP)
            options["client_options"] = {"timeout": TIMEOUT, "allow_http": allowed}
        else:
            options = {"mkdir": True}
        try:
            self._store = from_url(self.address, **options)
        except Exception as error:
            raise self._error("opened", "", error) from None

    @property
    def folder(self) -> Path | None:
        """The folder of a file:// store."""
        url = urlsplit(self.address)
        return Path(unquote(url.path)) if url.scheme == "file" else None

    def url(self, key: str) -> str:
        """The address of an object."""
        return f"{self.address}/{key}"

    def create(self, key: str, content: bytes) -> bool:
        """Store a new object; False when there is one of that name, which stays as it is."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._asking("written", key, sent_bytes=len(content)):
            try:
                obstore.put(self._store, _checked(key), content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def upload(self, key: str, file: IO[bytes], size_bytes: int) -> bool:
        """Store a file whose name has its hash, so that whoever stores it stores the same; False when it is
        there. A large one is sent in parts and appears when all are there."""
        import obstore

        if size_bytes <= SINGLE_PUT_BYTES:
            return self.create(key, file.read())
        if self.size_bytes(key) == size_bytes:
            return False
        with self._asking("written", key, sent_bytes=size_bytes):
            obstore.put(self._store, _checked(key), file, use_multipart=True, chunk_size=PART_BYTES)
        return True

    def replace(self, key: str, content: bytes, seen: Version | None) -> bool:
        """Replace an object if it is still the one that was seen, or create it if none was; else False."""
        import obstore
        from obstore.exceptions import PreconditionError

        if seen is None:
            return self.create(key, content)
        if self.folder is not None:
            return self._replace_file(key, content, seen)
        mode: Any = {
            name: value
            for name, value in (("e_tag", seen.e_tag), ("version", seen.version))
            if value is not None
        }
        with self._asking("replaced", key, sent_bytes=len(content)):
            try:
                obstore.put(self._store, _checked(key), content, mode=mode, use_multipart=False)
            except (PreconditionError, FileNotFoundError):
                return False
        return True

    def _replace_file(self, key: str, content: bytes, seen: Version) -> bool:
        import obstore

        with FileLock(f"{self.folder}/.replacing.lock"):
            now = self.read(key, SINGLE_PUT_BYTES)
            if now is None or now[1] != seen:
                return False
            with self._asking("replaced", key, sent_bytes=len(content)):
                obstore.put(self._store, _checked(key), content, use_multipart=False)
        return True

    def read(self, key: str, most_bytes: int) -> tuple[bytes, Version] | None:
        """An object and its version; None when there is none. One that is larger is not read."""
        import obstore

        with self._asking("read", key):
            try:
                found = obstore.get(self._store, _checked(key))
            except FileNotFoundError:
                return None
            if found.meta["size"] > most_bytes:
                size = found.meta["size"]
                raise TooLargeError(f"{self.url(key)} has {size} bytes, more than {most_bytes}")
            content = bytes(found.bytes())
        self._count(received_bytes=len(content))
        return content, Version(found.meta["e_tag"], found.meta.get("version"))

    def download(self, key: str, file: IO[bytes], size_bytes: int) -> str | None:
        """Write an object of a known size into a file; its SHA-256, or None when there is no such object."""
        import obstore

        digest = hashlib.sha256()
        with self._asking("read", key):
            try:
                found = obstore.get(self._store, _checked(key))
            except FileNotFoundError:
                return None
            if found.meta["size"] != size_bytes:
                size = found.meta["size"]
                raise StoreError(f"{self.url(key)} is damaged: {size} bytes, and should have {size_bytes}")
            for part in found.stream(min_chunk_size=PART_BYTES):
                digest.update(part)
                file.write(part)
        self._count(received_bytes=size_bytes)
        return digest.hexdigest()

    def delete(self, key: str) -> None:
        """Delete an object. The store's key may have no right to."""
        import obstore

        with self._asking("deleted", key):
            obstore.delete(self._store, _checked(key))

    def size_bytes(self, key: str) -> int | None:
        """The size of an object; None when there is none."""
        import obstore

        with self._asking("looked up", key):
            try:
                return int(obstore.head(self._store, _checked(key))["size"])
            except FileNotFoundError:
                return None

    def names(self, prefix: str, after: str | None = None) -> Iterator[tuple[str, int]]:
        """The objects below a prefix, in order, with their sizes; only those after a name."""
        import obstore

        with self._asking("listed", prefix):
            for page in obstore.list(self._store, prefix, offset=after, chunk_size=PAGE):
                for each in page:
                    yield each["path"], each["size"]
                if len(page) == PAGE:
                    self._count(requests=1)

    @contextmanager
    def _asking(self, what: str, key: str, sent_bytes: int = 0) -> Iterator[None]:
        """Count a request, and raise StoreError for what the library raises."""
        self._count(requests=1, sent_bytes=sent_bytes)
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            raise self._error(what, key, error) from None  # its text may have keys in it

    def _count(self, requests: int = 0, sent_bytes: int = 0, received_bytes: int = 0) -> None:
        with self._counting:
            self.traffic.requests += requests
            self.traffic.sent_bytes += sent_bytes
            self.traffic.received_bytes += received_bytes

    def _error(self, what: str, key: str, error: BaseException) -> StoreError:
        reason = self._without_keys(str(error).partition("\n\nDebug source")[0])
        return StoreError(
            f"{self.url(key) if key else self.address} cannot be {what}: {reason}; check "
            f"{STORE_VARIABLE}, the keys in the environment and the network"
        )

    def _without_keys(self, text: str) -> str:
        """One line of an error, without queries of addresses (which may be signed) and without keys."""
        text = " ".join(text.split())
        for name, value in sorted(self.environment.items(), key=lambda pair: -len(pair[1])):
            if _SOUNDS_SECRET.search(name) and len(value.strip()) >= _SHORTEST_SECRET:
                text = text.replace(value.strip(), f"${{{name}}}")
        text = re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", text)
        return printable(text)[:MAX_REASON_CHARACTERS]


def bucket_at(address: str, environment: Mapping[str, str] | None = None) -> Bucket:
    """The store at a checked address; keys come from this process's environment."""
    return Bucket(address, os.environ if environment is None else environment)


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise StoreError(f"{printable(key)!r} is no name of an object that gpufare writes")
    return key
