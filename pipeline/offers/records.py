"""The record of each source and day on disk: accepted offers and rejects as Parquet, the outcome as JSON.

Files are written under another name and renamed, so a reader sees a whole file or none.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, ValidationError

from pipeline.contracts.capture import Outcome
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.offer import Offer, RejectedRow, column_types
from pipeline.contracts.paths import Home
from pipeline.contracts.rates import Rate

MAX_RATE_AGE_DAYS = 7
"""Exchange rates older than this convert nothing: foreign prices then have no dollars."""

_PARQUET_TYPES: dict[type, Any] = {
    str: pl.String,
    bool: pl.Boolean,
    int: pl.Int32,
    float: pl.Float64,
    Decimal: pl.Decimal(18, 8),
    date: pl.Date,
    datetime: pl.Datetime("us", "UTC"),
}


def parquet_schema(contract: type[BaseModel]) -> dict[str, Any]:
    """The columns of a contract as polars types, in its order."""
    return {name: _PARQUET_TYPES[kind] for name, kind in column_types(contract).items()}


class RecordError(GpufareError):
    """A file of the record cannot be read: says which and what to do."""


class Records:
    """Reads and writes the record files under one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def write_accepted(self, day: date, source: str, offers: Sequence[Offer]) -> None:
        """Keep a day's accepted offers of one source, replacing an earlier reading of that day."""
        rows = [offer.model_dump() for offer in offers]
        self._write_parquet(self._home.offers / source / f"{day}.parquet", Offer, rows)

    def write_rejects(self, day: date, source: str, rejects: Sequence[RejectedRow]) -> None:
        """Keep a day's rejects of one source."""
        rows = [
            reject.model_dump() | {"raw": json.dumps(reject.raw, default=str, ensure_ascii=False)}
            for reject in rejects
        ]
        self._write_parquet(self._home.rejects / source / f"{day}.parquet", RejectedRow, rows)

    def write_outcome(self, outcome: Outcome) -> None:
        """Keep the outcome of one attempt at a source."""
        row = asdict(outcome) | {"warnings": "; ".join(outcome.warnings) or None}
        self._write_json(self._outcome_file(outcome.source, outcome.day, outcome.attempt), row)

    def outcomes(self, source: str, day: date) -> list[dict[str, Any]]:
        """The outcome rows of a day's attempts at a source, oldest first."""
        earlier_version = self._outcome_file(source, day, "")
        files = [earlier_version] if earlier_version.is_file() else []
        files += sorted((self._home.outcomes / source / f"{day}").glob("[!.]*.json"))
        return [{"attempt": ""} | json.loads(path.read_text(encoding="utf-8")) for path in files]

    def outcome(self, source: str, day: date) -> dict[str, Any] | None:
        """The outcome row of the day's newest attempt, None when the source was not asked that day."""
        return next(reversed(self.outcomes(source, day)), None)

    def _outcome_file(self, source: str, day: date, attempt: str) -> Path:
        """Earlier versions kept one outcome per day, without an attempt."""
        folder = self._home.outcomes / source
        return folder / f"{day}" / f"{attempt}.json" if attempt else folder / f"{day}.json"

    def write_exchange_rates(self, day: date, rows: Sequence[dict[str, Any]]) -> None:
        """Keep the rates that a day's prices are converted with."""
        self._write_json(self._home.exchange_rates / f"{day}.json", list(rows))

    def usd_rates(self, day: date) -> dict[str, Rate]:
        """Dollars per unit of each currency, from the newest rates up to ``day``; none when they are older
        than MAX_RATE_AGE_DAYS."""
        days = [each for each in self.rate_days() if 0 <= (day - each).days <= MAX_RATE_AGE_DAYS]
        if not days:
            return {}
        text = (self._home.exchange_rates / f"{max(days)}.json").read_text(encoding="utf-8")
        return {
            row["currency"]: Rate(Decimal(row["usd_per_unit"]), date.fromisoformat(row["rate_date"]))
            for row in json.loads(text)
        }

    def last_accepted(self, source: str, before: date) -> tuple[date, list[Offer]] | None:
        """The accepted offers of the last day before ``before``; None when there are none."""
        days = [day for day in self.accepted_days(source) if day < before]
        return (days[-1], self.offers(source, days[-1])) if days else None

    def accepted_days(self, source: str) -> list[date]:
        """The days with accepted offers of a source, oldest first."""
        return sorted(
            date.fromisoformat(path.stem) for path in (self._home.offers / source).glob("*.parquet")
        )

    def rejected_days(self, source: str) -> list[date]:
        """The days with kept rejects of a source, oldest first."""
        return sorted(
            date.fromisoformat(path.stem) for path in (self._home.rejects / source).glob("*.parquet")
        )

    def offers(self, source: str, day: date) -> list[Offer]:
        """The accepted offers of one source and day. Raises FileNotFoundError and RecordError."""
        path = self._home.offers / source / f"{day}.parquet"
        try:
            frame = pl.read_parquet(path)
            return [Offer.model_validate(row) for row in frame.iter_rows(named=True)]
        except (pl.exceptions.PolarsError, ValidationError) as error:
            raise RecordError(
                f"{path} is damaged or of an older version; remove it and read that day again: "
                f"gpufare refresh --day {day} --pages archive --source {source} ({str(error)[:200]})"
            ) from error

    def offer_count(self, source: str, day: date) -> int:
        """How many offers were accepted. Raises FileNotFoundError."""
        path = self._home.offers / source / f"{day}.parquet"
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())

    def rate_days(self) -> list[date]:
        """The days with kept exchange rates, oldest first."""
        return sorted(date.fromisoformat(path.stem) for path in self._home.exchange_rates.glob("*.json"))

    def rejects(self, source: str, day: date) -> list[dict[str, Any]]:
        """The rejects of one source and day, none when nothing was kept; ``raw`` is decoded."""
        path = self._home.rejects / source / f"{day}.parquet"
        if not path.exists():
            return []
        rows = pl.read_parquet(path).iter_rows(named=True)
        return [row | {"raw": json.loads(row["raw"])} for row in rows]

    def _write_json(self, path: Path, content: Any) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, default=str, indent=1) + "\n", encoding="utf-8")

    def _write_parquet(self, path: Path, contract: type[BaseModel], rows: Sequence[dict[str, Any]]) -> None:
        with replacing(path) as temporary:
            pl.DataFrame(rows, schema=parquet_schema(contract), orient="row").write_parquet(temporary)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path and rename it onto ``path``, once on the disk, when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
