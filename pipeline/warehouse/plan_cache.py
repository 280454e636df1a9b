"""The prepared database that builds start from: tables, macros, the catalogue, the tables that depend on
nothing else, and the record as the previous build loaded it (``history``).

The database is made once per state of the catalogue, the model and the code, and kept in the home's cache.
The file's name contains the hash of its bytes, so that a build never starts from a damaged file.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb

import pipeline
from pipeline.catalog.own import OwnCatalogue
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home import paths
from pipeline.home.disk import UnwritableError, replacing
from pipeline.home.paths import Home
from pipeline.warehouse.connection import connect, place_to_build
from pipeline.warehouse.database import prepare
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_own
from pipeline.warehouse.marts import fill, is_timeless
from pipeline.warehouse.sql_files import MACRO_FOLDERS, BuildError

PREFIX = "prepared"


def start(file: Path, home: Home, own: OwnCatalogue, progress: Progress = no_progress) -> list[Incident]:
    """Create ``file``, which must not exist, as a copy of the cached database, or make and cache a new one.
    Returns any problems with the cache. Raises BuildError."""
    incidents: list[Incident] = []
    for kept in _kept_files(home, own):
        if (problem := damage_of(kept)) is None:
            shutil.copyfile(kept, file)
            return incidents
        incidents.append(_incident(home, kept, IncidentKind.DAMAGED_FILE, problem, "computed again"))
    _make(file, own, progress)
    return incidents + keep(file, home, own)


def kept_file(home: Home, own: OwnCatalogue) -> Path | None:
    """Return the cached database for this state of catalogue, model and code; None if no file is intact."""
    return next((kept for kept in _kept_files(home, own) if damage_of(kept) is None), None)


def _kept_files(home: Home, own: OwnCatalogue) -> Iterator[Path]:
    return home.cache.glob(f"{PREFIX}-{state_of_model()}{own.state()}-*.duckdb")


def edit_kept(home: Home, own: OwnCatalogue, edit: Callable[[Path], None]) -> list[Incident]:
    """Replace the cached database with an edited copy. Returns any problems with the disk. Raises BuildError
    if no database is cached, and any error that ``edit`` raises. The caller must hold the home's lock."""
    if (kept := kept_file(home, own)) is None:
        raise BuildError(f"there is no prepared database in {home.cache}: publish first")
    copy = place_to_build(home.published, f".building-{PREFIX}-{os.getpid()}.duckdb")
    try:
        shutil.copyfile(kept, copy)
        edit(copy)
        return keep(copy, home, own)
    except OSError as error:
        return [_incident(home, copy, IncidentKind.UNWRITABLE, str(error), "nothing was added to it")]
    finally:
        copy.unlink(missing_ok=True)


def _make(file: Path, own: OwnCatalogue, progress: Progress) -> None:
    with connect(file) as connection:
        prepare(connection)
        load_own(connection, own)
        for table in filter(is_timeless, Lineage(connection).marts()):
            progress(Step(f"building {table}, which is kept until the catalogue or the model changes"))
            fill(connection, table)
        connection.execute("USE memory")
        connection.execute("DETACH gpufare")


def keep(file: Path, home: Home, own: OwnCatalogue) -> list[Incident]:
    """Cache a copy of a prepared database, which must not be in use, in place of earlier copies.

    Returns any problems with the disk.
    """
    kept = home.cache / f"{PREFIX}-{state_of_model()}{own.state()}-{_digest(file)}.duckdb"
    try:
        if not kept.exists():
            with replacing(kept) as temporary:
                shutil.copyfile(file, temporary)
    except UnwritableError as error:
        return [_incident(home, kept, IncidentKind.UNWRITABLE, str(error), "made without keeping it")]
    for outdated in {*home.cache.glob(f"{PREFIX}-*.duckdb")} - {kept}:
        with suppress(OSError):
            outdated.unlink()
    return []


def damage_of(kept: Path) -> str | None:
    """Return the reason not to use a cached file; None if its bytes match the hash in its name."""
    try:
        found = _digest(kept)
    except OSError as error:
        return error.strerror or str(error)
    return None if kept.stem.endswith(f"-{found}") else "its bytes are not those that were written"


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:16]


def _incident(home: Home, file: Path, kind: IncidentKind, reason: str, remedy: str) -> Incident:
    path = str(file.relative_to(home.root))
    return Incident(kind=kind, path=path, reason=reason, remedy=remedy)


def state_of_model() -> str:
    """Return a hash of everything that the prepared database depends on: sql/, the catalogue, the code that
    loads them, and DuckDB's version."""
    digest = hashlib.sha256(duckdb.__version__.encode() + _code())
    for folder in (
        paths.CATALOG_DIR,
        *(paths.SQL_DIR / name for name in ("schema", "history", *MACRO_FOLDERS, "marts")),
    ):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(str(path.relative_to(folder.parent)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _code() -> bytes:
    """Return a hash of the rooms of pipeline/ whose code fills the tables."""
    digest = hashlib.sha256()
    for room in ("catalog", "contracts", "gpus", "home", "warehouse"):
        for path in sorted((Path(pipeline.__file__).parent / room).rglob("*.py")):
            digest.update(path.read_bytes() + b"\0")
    return digest.digest()
