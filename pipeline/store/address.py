"""Which store, from one setting: GPUFARE_STORE, the address of a bucket and a prefix in it.

Keys are read from the environment by the library, under each provider's usual names; they are never part of
the address.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pipeline.contracts.errors import GpufareError

STORE_VARIABLE = "GPUFARE_STORE"

SCHEMES = ("s3", "gs", "az", "file")

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]*")


class StoreError(GpufareError):
    """The store cannot be used as asked: says what was wrong, where, and what to do."""


def store_address(environment: Mapping[str, str]) -> str | None:
    """The address in the environment, checked; None where no store is set. Raises StoreError."""
    text = environment.get(STORE_VARIABLE, "").strip()
    return checked_address(text) if text else None


def checked_address(text: str) -> str:
    """The address without a slash at its end. Raises StoreError, which does not repeat what may be a key."""
    form = "it must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER"
    try:
        url = urlsplit(text)
        has_secret = "@" in url.netloc or bool(url.query or url.fragment)
    except ValueError as error:
        raise StoreError(f"{STORE_VARIABLE} is no address: {form}") from error
    if has_secret:
        raise StoreError(f"{STORE_VARIABLE} has a user, a key or a query in it: {form}; keys are set apart")
    if url.scheme not in SCHEMES:
        raise StoreError(f"{STORE_VARIABLE} begins with none of {', '.join(SCHEMES)}: {form}")
    if url.scheme == "file":
        if url.netloc or not PurePosixPath(url.path).is_absolute() or ".." in url.path.split("/"):
            raise StoreError(f"{STORE_VARIABLE} names no folder by its whole path: {form}")
        return text.rstrip("/")
    parts = [url.netloc, *filter(None, url.path.split("/"))]
    if not all(_PART.fullmatch(part) for part in parts):
        raise StoreError(f"{STORE_VARIABLE} has an odd name in it: {form}, of letters, digits and . _ = -")
    return f"{url.scheme}://{'/'.join(parts)}"
