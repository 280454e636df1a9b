"""Attaches a lake as a database; a lake's catalogue is in PostgreSQL or, for one machine, in a file."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb
from filelock import FileLock

from pipeline.contracts.errors import GpufareError
from pipeline.parsing.printable import printable
from pipeline.warehouse.connection import connect

LAKE_VARIABLE = "GPUFARE_LAKE"

Lake = duckdb.DuckDBPyConnection
"""A connection whose database ``lake`` is the lake."""

_ADDRESS = re.compile(
    r"(postgres(?:ql)?://[^:@/?#]*)(?::([^@/?#]*))?(@[^@?#]*(?:\?(?!.*password)[^@#]*)?)", re.IGNORECASE
)


class LakeError(GpufareError):
    """The lake cannot be used; the message says why and what to do."""


def catalogue_and_password(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the catalogue's address as DuckLake spells it and, separately, its password ('' if none), since
    DuckDB's errors repeat the address. Raises LakeError, which shows neither address nor password."""
    address = environment.get(LAKE_VARIABLE, "")
    if address.startswith("/"):
        return address, ""
    if found := _ADDRESS.fullmatch(address):
        return f"postgres:{found[1]}{found[3]}", unquote(found[2] or "")
    raise LakeError(
        f"set {LAKE_VARIABLE} to the catalogue of a lake: postgresql://USER:PASSWORD@HOST/DATABASE, special "
        "characters of the password percent-encoded; or the absolute path of a file"
    )


@contextmanager
def attached(data: str | None = None) -> Iterator[Lake]:
    """Attach the lake set in GPUFARE_LAKE; a new lake stores its files in ``data``. Raises LakeError."""
    catalogue, password = catalogue_and_password()
    if password:
        os.environ["PGPASSWORD"] = password  # for libpq, so that no statement contains the password
    # Only one process at a time may open a catalogue file; other processes wait.
    turn = FileLock(f"{catalogue}.lock") if catalogue.startswith("/") else nullcontext()
    option = f"DATA_PATH {quoted(data)}" if data else "CREATE_IF_NOT_EXISTS false"
    try:
        with turn, connect() as lake:
            _load_extensions(lake)
            lake.execute(f"ATTACH {quoted(f'ducklake:{catalogue}')} AS lake ({option})")
            yield lake
    except duckdb.Error as error:
        reason = printable(str(error)).replace(password or "\n", "***")[:500]
        raise LakeError(f"the lake cannot be used (`gpufare lake create` makes one): {reason}") from None


def _load_extensions(lake: Lake) -> None:
    for name in ("ducklake", "postgres_scanner", "httpfs"):
        package = Path(str(import_module(f"duckdb_extension_{name}").__file__)).parent
        (file,) = package.glob(f"extensions/*/{name}.duckdb_extension")
        lake.execute(f"LOAD {quoted(str(file))}")
    # httpfs reads the S3 keys and region from the usual variables, but not the endpoint's address.
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    if endpoint.netloc:
        lake.execute(f"SET s3_endpoint = {quoted(endpoint.netloc)}; SET s3_url_style = 'path'")
        lake.execute(f"SET s3_use_ssl = {endpoint.scheme == 'https'}")


def quoted(text: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
