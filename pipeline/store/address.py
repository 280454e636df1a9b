"""Reads GPUFARE_STORE, the address of a bucket with a prefix.

Keys are never part of the address: the library reads them from the environment, under each provider's usual
variable names.
"""

import re
from collections.abc import Mapping

from pipeline.contracts.errors import GpufareError

STORE_VARIABLE = "GPUFARE_STORE"

_PART = r"[A-Za-z0-9][A-Za-z0-9._=-]*"
_FOLDER = r"(?!\.{1,2}(?:/|$))[^/?#@]+"
_ADDRESS = re.compile(rf"(?:s3|gs|az)://{_PART}(?:/{_PART})*/?|file://(?:/{_FOLDER})+/?")


class StoreError(GpufareError):
    """The bucket cannot be used; the message says what was wrong, where, and what to do."""


def store_address(environment: Mapping[str, str]) -> str | None:
    """Return the address in the environment, checked; None if no address is set. Raises StoreError."""
    text = environment.get(STORE_VARIABLE, "").strip()
    return checked_address(text) if text else None


def checked_address(text: str) -> str:
    """Return a valid address without a slash at its end. Raises StoreError, which does not repeat text that
    may be a key."""
    if not _ADDRESS.fullmatch(text):
        raise StoreError(
            f"{STORE_VARIABLE} is no address of a bucket: it must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
            "az://CONTAINER/PREFIX, of letters, digits and . _ = -, or file:///FOLDER; keys are set apart"
        )
    return text.rstrip("/")
