"""Dated prices from elsewhere: a CSV file of observations, kept apart from what was captured here.

The layout is in docs/how-to/import.md. What cannot be read for sure is left out, with its line and the
reason. Each file is kept under the hash of its bytes, so that importing it again changes nothing.
"""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.catalog.places import place_of
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import LabelKind
from pipeline.gpus import identify
from pipeline.gpus.catalogue import cards
from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

MAX_FILE_BYTES = 50_000_000
MAX_ROWS = 500_000
MAX_CELL_CHARACTERS = 1_000
MAX_GPUS = 4_096

EARLIEST = date(2010, 1, 1)
"""GPUs were not rented by the hour before."""

PRICE_BOUNDS = Decimal("0.001"), Decimal(1000)
"""USD per GPU and hour that no GPU was ever rented below or above."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "day": ("day", "as_of", "date"),
    "gpu_id": ("gpu_id",),
    "gpu": ("gpu", "gpu_label", "raw_label"),
    "provider": ("provider",),
    "price_kind": ("price_kind",),
    "term_days": ("term_days",),
    "price": ("usd_per_gpu_hour", "usd_per_hour", "price_usd_hr"),
    "unit": ("unit",),
    "gpu_count": ("gpu_count", "count"),
    "region": ("region",),
    "country": ("country",),
    "source": ("source", "source_url", "url"),
    "evidence": ("evidence",),
}
"""What each column may be called."""

REQUIRED = ("day", "provider", "price_kind", "price", "source")

KINDS = {
    kind: (kind.removesuffix(f"_{tier}"), tier)
    for tier in ("community", "secure")
    for kind in (f"on_demand_{tier}", f"spot_{tier}")
} | {
    "on_demand": ("on_demand", None),
    "spot": ("spot", None),
    "preemptible": ("spot", None),
    "reserved": ("reserved", None),
    "flex_start": ("flex_start", None),
    "serverless": ("serverless", None),
    "marketplace_offer_on_demand": ("on_demand", "marketplace"),
}
"""Price kinds that name one price, and the tier that some of them name."""

_TERM = re.compile(r"(?:reserved|committed)_(\d{1,4})(d|mo|yr)")
_DAYS_PER = {"d": 1, "mo": 30, "yr": 365}

_PART = re.compile(r"\b(?:part|component) only\b", re.IGNORECASE)

_PER_GPU, _PER_OFFER = "per_gpu_hour", "per_instance_hour"

SCHEMA: Mapping[str, Any] = {
    "day": pl.Date,
    "gpu_id": pl.String,
    "raw_label": pl.String,
    "gpu_count": pl.Int32,
    "provider": pl.String,
    "price_kind": pl.String,
    "term_days": pl.Int32,
    "tier": pl.String,
    "usd_per_gpu_hour": pl.Decimal(18, 8),
    "region": pl.String,
    "country": pl.String,
    "observation_source": pl.String,
    "evidence": pl.String,
    "file": pl.String,
    "line": pl.Int32,
}


class ImportFileError(GpufareError):
    """A file cannot be imported at all: says why."""


class _RowError(ValueError):
    """One row cannot be read for sure."""


@dataclass(slots=True)
class Imported:
    """What a file gave: its rows, and the line and reason of each row that was left out."""

    name: str
    key: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    rejects: list[tuple[int, str]] = field(default_factory=list)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """How many rows were left out for each reason, the most frequent first."""
        return Counter(reason.partition(":")[0] for _, reason in self.rejects).most_common()


def read_prices(path: Path, today: date) -> Imported:
    """The observations in a CSV file. Raises ImportFileError; days after ``today`` (UTC) are left out."""
    content = _content(path)
    found = Imported(printable(path.name)[:200], hashlib.sha256(content).hexdigest()[:16])
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = _columns(path, next(reader, []))
        seen: dict[tuple[Any, ...], int] = {}
        for cells in reader:
            if any(cells):
                _add(found, cells, columns, reader.line_num, today, seen)
            if len(found.rows) + len(found.rejects) > MAX_ROWS:
                raise ImportFileError(f"{path} has more than {MAX_ROWS} rows: divide it")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not found.rows:
        why = "; ".join(f"{reason} ({count})" for reason, count in found.reasons) or "it has no rows"
        raise ImportFileError(f"nothing of {path} can be imported: {why}")
    return found


def keep(home: Home, found: Imported) -> bool:
    """Keep what a file gave; returns whether that is new. Raises UnwritableError."""
    path = home.imported / f"{found.key}.parquet"
    frame = pl.DataFrame(found.rows, schema=dict(SCHEMA), orient="row").sort("gpu_id", "day", "line")
    if _is_kept(path, frame):
        return False
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    with replacing(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return True


def imported_files(home: Home) -> list[Path]:
    """The kept files with imported prices."""
    return sorted(home.imported.glob("[!.]*.parquet"))


def _is_kept(path: Path, frame: pl.DataFrame) -> bool:
    try:
        kept = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError):
        return False
    # The same content under another name is the same file.
    return kept.drop("file", strict=False).equals(frame.drop("file"))


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ImportFileError(f"{path} is larger than {MAX_FILE_BYTES / 1e6:.0f} MB: divide it")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ImportFileError(f"{path} does not exist") from error


def _columns(path: Path, header: list[str]) -> dict[str, tuple[int, str]]:
    """The place and the name of each column that is read."""
    names = [name.strip().lower() for name in header]
    found = {}
    for column, aliases in ALIASES.items():
        given = [name for name in aliases if name in names]
        if len(given) > 1 or (given and names.count(given[0]) > 1):
            raise ImportFileError(f"{path} has more than one column for {column}: {', '.join(given)}")
        if given:
            found[column] = (names.index(given[0]), given[0])
    missing = [ALIASES[name][0] for name in REQUIRED if name not in found]
    if "gpu" not in found and "gpu_id" not in found:
        missing.append("gpu or gpu_id")
    if missing:
        named = printable(", ".join(names))[:MAX_CELL_CHARACTERS] or "none"
        raise ImportFileError(f"{path} lacks the columns {', '.join(missing)}; it has {named}")
    return found


def _add(
    found: Imported,
    cells: list[str],
    columns: Mapping[str, tuple[int, str]],
    line: int,
    today: date,
    seen: dict[tuple[Any, ...], int],
) -> None:
    try:
        row = _row(cells, columns, today)
        key = tuple(row.values())
        if key in seen:
            raise _RowError(f"it repeats an earlier row: that of line {seen[key]}")
        seen[key] = line
        found.rows.append(row | {"file": found.name, "line": line})
    except _RowError as error:
        found.rejects.append((line, printable(str(error))[:MAX_CELL_CHARACTERS]))


def _row(cells: list[str], columns: Mapping[str, tuple[int, str]], today: date) -> dict[str, Any]:
    """One observation. Raises _RowError."""
    if len(cells) <= max(place for place, _ in columns.values()):
        raise _RowError("it has fewer cells than the header")
    given = {column: cells[place].strip() for column, (place, _) in columns.items()}
    for column, cell in given.items():
        if len(cell) > MAX_CELL_CHARACTERS:
            raise _RowError(f"a cell is longer than {MAX_CELL_CHARACTERS} characters: {column}")
        if cell[:1] in {"=", "+", "-", "@", "＝", "＋", "－", "＠"}:
            raise _RowError(f"a cell is a spreadsheet's formula: {column}")
    text = {column: printable(value) or None for column, value in given.items()}
    kind, tier, term_days = _kind(given)
    count = _whole(given.get("gpu_count") or "1", "gpu_count", MAX_GPUS)
    return {
        "day": _day(given["day"], today),
        "gpu_id": _gpu_id(given, count),
        "raw_label": text.get("gpu") or text["gpu_id"],
        "gpu_count": count,
        "provider": _needed(text, "provider"),
        "price_kind": kind,
        "term_days": term_days,
        "tier": tier,
        "usd_per_gpu_hour": _price(given, columns["price"][1], count),
        "region": text.get("region"),
        "country": _country(text.get("country")),
        "observation_source": _needed(text, "source"),
        "evidence": text.get("evidence") or "stated by its source",
    }


def _needed(text: Mapping[str, str | None], column: str) -> str:
    value = text[column]
    if value is None:
        raise _RowError(f"a cell is empty: {column}")
    return value


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise _RowError(f"its day is not written as YYYY-MM-DD: {text}") from error
    if not EARLIEST <= day <= today:
        raise _RowError(f"its day is after today or before {EARLIEST}: {text}")
    return day


def _whole(text: str, column: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 8 and 0 < int(text) <= most):
        raise _RowError(f"{column} is not a whole number from 1 to {most}: {text}")
    return int(text)


def _kind(given: Mapping[str, str]) -> tuple[str, str | None, int | None]:
    text = given["price_kind"].lower()
    days = _whole(given["term_days"], "term_days", 3_660) if given.get("term_days") else None
    if term := _TERM.fullmatch(text):
        stated = int(term[1]) * _DAYS_PER[term[2]]
        if not stated or days not in (None, stated):
            raise _RowError(f"price_kind and term_days contradict each other: {text}")
        return "reserved", None, stated
    if text not in KINDS:
        raise _RowError(f"price_kind names no single price of a whole GPU: {text}")
    kind, tier = KINDS[text]
    if days is not None and kind != "reserved":
        raise _RowError(f"price_kind and term_days contradict each other: {text}")
    return kind, tier, days


def _price(given: Mapping[str, str], column: str, count: int) -> Decimal:
    per = {"usd_per_gpu_hour": _PER_GPU, "usd_per_hour": _PER_OFFER}.get(column)
    unit = given.get("unit") or per
    if unit not in (_PER_GPU, _PER_OFFER) or per not in (None, unit):
        raise _RowError(f"its unit is not {_PER_GPU} or {_PER_OFFER}: {unit or 'none'}")
    try:
        price = Decimal(given["price"])
    except InvalidOperation as error:
        raise _RowError(f"its price is no number: {given['price']}") from error
    if not price.is_finite():
        raise _RowError(f"its price is no number: {given['price']}")
    price = price / count if unit == _PER_OFFER else price
    if not PRICE_BOUNDS[0] <= price <= PRICE_BOUNDS[1]:
        raise _RowError(f"no GPU is rented at such a price: {given['price']}")
    return round(price, 8)


def _country(text: str | None) -> str | None:
    if text is None:
        return None
    country = place_of("", None, text).country if len(text) == 2 else None
    if country is None:
        raise _RowError(f"its country is no code of ISO 3166-1 alpha-2: {text}")
    return country


def _gpu_id(given: Mapping[str, str], count: int) -> str:
    if stated := given.get("gpu_id"):
        if stated not in _known_gpus():
            raise _RowError(f"gpu_id is not in the catalogue: {stated}")
        return stated
    label = given.get("gpu")
    if not label:
        raise _RowError("a cell is empty: gpu")
    if _PART.search(label):
        raise _RowError(f"the price is of a part of a machine: {label}")
    status, gpu_id = _identified(label, given["provider"], count)
    if gpu_id is None:
        raise _RowError(f"the GPU is {status}: {label}")
    return gpu_id


@lru_cache(maxsize=100_000)
def _identified(label: str, provider: str, count: int) -> tuple[str, str | None]:
    """The status and the GPU of a label, read as the name of a GPU and as that of a machine; where the two
    differ, it is ambiguous."""
    kinds: tuple[LabelKind, ...] = ("gpu_name", "instance_type")
    found: dict[str | None, str] = {}
    for kind in kinds:
        identity = identify(label, provider=provider.lower(), kind=kind, gpu_count=count)
        found[identity.gpu_id if identity.status == "matched" else None] = identity.status
    matched = {gpu_id for gpu_id in found if gpu_id}
    if len(matched) == 1:
        return "matched", matched.pop()
    return ("ambiguous" if matched else next(iter(found.values()))), None


@lru_cache(maxsize=1)
def _known_gpus() -> frozenset[str]:
    return frozenset(card.gpu_id for card in cards())
