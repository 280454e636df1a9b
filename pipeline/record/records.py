"""The record of each source and day on disk: accepted offers and rejects as Parquet, outcomes as JSON; months
that are over as Parquet.

Files are written under another name and renamed, so a reader sees a whole file or none.
"""

import json
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, TypeAdapter

from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.offer import Offer, RejectedRow, column_types
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.rates import Rate
from pipeline.contracts.tiers import tier_class
from pipeline.home.disk import is_exhaustion, replacing
from pipeline.home.paths import Home
from pipeline.record.months import Part, Stamp, read_month, stamp_of
from pipeline.record.record_files import Damage, RecordFile, record_file, record_files

MAX_RATE_AGE_DAYS = 7
"""Exchange rates older than this convert nothing: foreign prices then have no dollars."""

_OUTCOME = TypeAdapter(Outcome)

_DEFAULTS = {
    name: field.default
    for name, field in Offer.model_fields.items()
    if not field.is_required() and field.default is not None
}
"""Columns that earlier versions did not keep, where null is no value."""

_PARQUET_TYPES: dict[type, Any] = {
    str: pl.String,
    bool: pl.Boolean,
    int: pl.Int32,
    float: pl.Float64,
    Decimal: pl.Decimal(18, 8),
    date: pl.Date,
    datetime: pl.Datetime("us", "UTC"),
    tuple: pl.List(pl.Int32),
}


def parquet_schema(contract: type[BaseModel]) -> dict[str, Any]:
    """The columns of a contract as polars types, in its order."""
    return {name: _PARQUET_TYPES[kind] for name, kind in column_types(contract).items()}


class RecordError(GpufareError):
    """A file of the record cannot be read: says which, why, and what to do."""

    def __init__(self, file: RecordFile, error: Exception) -> None:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        again = "remove it"
        if file.month:
            again = "`gpufare refresh` moves it aside and reads its days again from the archive"
        elif file.source is not None:
            again += f" and read that day again: gpufare refresh --day {file.day} --pages archive"
            again += f" --source {file.source}"
        super().__init__(f"{file.path} is damaged or of an older version; {again} ({reason})")
        self.damage = Damage(file, reason)


class Records:
    """Reads and writes the record files under one home.

    Whatever is read raises RecordError when its file is damaged, whatever is written UnwritableError.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        # The last month that was read: days are asked for one after the other.
        self._month: tuple[Path, Stamp, dict[Part, pl.DataFrame]] | None = None

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

    def remove_outcome_of_earlier_version(self, source: str, day: date) -> None:
        """Remove the one outcome of a day that earlier versions kept, when its attempt has its own."""
        with suppress(OSError):
            self._outcome_file(source, day, "").unlink(missing_ok=True)

    def outcomes(self, source: str, day: date) -> list[dict[str, Any]]:
        """The outcome rows of a day's attempts at a source, oldest first."""
        return [self._outcome(file) for file in record_files(self._home, "outcomes", source, day)]

    def outcome(self, source: str, day: date) -> dict[str, Any] | None:
        """The outcome row of the day's newest attempt, None when the source was not asked that day."""
        return next(reversed(self.outcomes(source, day)), None)

    def write_exchange_rates(self, day: date, rows: Sequence[dict[str, Any]]) -> None:
        """Keep the rates that a day's prices are converted with."""
        self._write_json(self._home.exchange_rates / f"{day}.json", list(rows))

    def usd_rates(self, day: date) -> dict[str, Rate]:
        """Dollars per unit of each currency, from the newest rates up to ``day``; none when they are older
        than MAX_RATE_AGE_DAYS."""
        files = [file for file in self._files("exchange_rates") if file.day <= day]
        if not files or (day - files[-1].day).days > MAX_RATE_AGE_DAYS:
            return {}
        return self._rates(files[-1])

    def last_accepted(self, source: str, before: date) -> tuple[date, list[Offer]] | None:
        """The accepted offers of the last day before ``before``; None when there are none."""
        days = [day for day in self.accepted_days(source) if day < before]
        return (days[-1], self.offers(source, days[-1])) if days else None

    def accepted_days(self, source: str) -> list[date]:
        """The days with accepted offers of a source, oldest first."""
        return [file.day for file in self._files("offers", source)]

    def rejected_days(self, source: str) -> list[date]:
        """The days with kept rejects of a source, oldest first."""
        return [file.day for file in self._files("rejects", source)]

    def rate_days(self) -> list[date]:
        """The days with kept exchange rates, oldest first."""
        return [file.day for file in self._files("exchange_rates")]

    def offers(self, source: str, day: date) -> list[Offer]:
        """The accepted offers of one source and day. Raises FileNotFoundError."""
        return self._offers(record_file(self._home, "offers", source, day))

    def rejects(self, source: str, day: date) -> list[dict[str, Any]]:
        """The rejects of one source and day, none when nothing was kept; ``raw`` is decoded."""
        try:
            return self._rejects(record_file(self._home, "rejects", source, day))
        except FileNotFoundError:
            return []

    def check(self, file: RecordFile) -> None:
        """Read all of a file. Raises RecordError when it is damaged, FileNotFoundError when it is gone."""
        readers: dict[str, Callable[[RecordFile], object]] = {
            "offers": self._offers,
            "rejects": self._rejects,
            "outcomes": self._outcome,
            "exchange_rates": self._rates,
        }
        readers[file.folder](file)

    def damages(self, folder: str, source: str | None = None, day: date | None = None) -> list[Damage]:
        """The damaged files of a folder (of one source and day), which are all read for it, oldest first; a
        month's file once."""
        found: dict[Path, Damage] = {}
        for file in record_files(self._home, folder, source, day):
            if file.path in found:
                continue
            try:
                self.check(file)
            except FileNotFoundError:
                continue
            except RecordError as error:
                found[file.path] = error.damage
        return list(found.values())

    def _files(self, folder: str, source: str | None = None) -> list[RecordFile]:
        return record_files(self._home, folder, source)

    def frame(self, file: RecordFile) -> pl.DataFrame:
        """The rows of a day's offers or rejects as they were written; columns that only other days of its
        month have are null. Raises FileNotFoundError and RecordError."""
        with _readable(file):
            try:
                return self._frame(file)
            except FileNotFoundError:
                # Merged into its month meanwhile, or it is gone.
                return self._frame(self._found_again(file))

    def _frame(self, file: RecordFile) -> pl.DataFrame:
        return self._part(file) if file.month else pl.read_parquet(file.path, glob=False)

    def text(self, file: RecordFile) -> str:
        """An outcome or a day's exchange rates as they were written. Raises FileNotFoundError and
        RecordError."""
        with _readable(file):
            try:
                return self._text(file)
            except FileNotFoundError:
                return self._text(self._found_again(file))

    def _text(self, file: RecordFile) -> str:
        if not file.month:
            return file.path.read_bytes().decode()
        ((text,),) = self._part(file).select("content").rows()
        return str(text)

    def _part(self, file: RecordFile) -> pl.DataFrame:
        stamp = stamp_of(file.path)
        if self._month is None or self._month[:2] != (file.path, stamp):
            self._month = (file.path, stamp, read_month(file.path, file.month))
        return self._month[2][file.part]

    def _found_again(self, file: RecordFile) -> RecordFile:
        return record_file(self._home, file.folder, file.source, file.day, file.attempt)

    def _offers(self, file: RecordFile) -> list[Offer]:
        with _readable(file):
            rows = self.frame(file).iter_rows(named=True)
            offers = [Offer.model_validate(_completed(row)) for row in rows]
            _check_place(file, {offer.source for offer in offers} - {file.source})
            return offers

    def _rejects(self, file: RecordFile) -> list[dict[str, Any]]:
        with _readable(file):
            rows = self.frame(file).select(list(RejectedRow.model_fields)).iter_rows(named=True)
            found = [row | {"raw": json.loads(row["raw"])} for row in rows]
            _check_place(file, {row["source"] for row in found} - {file.source})
            return found

    def _outcome(self, file: RecordFile) -> dict[str, Any]:
        with _readable(file):
            row = {"attempt": ""} | dict(json.loads(self.text(file)))
            place = {"source": file.source, "day": f"{file.day}", "attempt": file.attempt}
            _check_place(file, {str(row[name]) for name in place if row[name] != place[name]})
            _OUTCOME.validate_python(row | {"warnings": ()})
            return row

    def _rates(self, file: RecordFile) -> dict[str, Rate]:
        with _readable(file):
            rows = json.loads(self.text(file))
            _check_place(file, {str(row["day"]) for row in rows} - {f"{file.day}"})
            rates = {
                row["currency"]: Rate(Decimal(row["usd_per_unit"]), date.fromisoformat(row["rate_date"]))
                for row in rows
            }
            if not rates or not all(rate.usd.is_finite() and rate.usd > 0 for rate in rates.values()):
                raise ValueError("it has no rates, or rates that are no amounts")
            return rates

    def _outcome_file(self, source: str, day: date, attempt: str) -> Path:
        """Earlier versions kept one outcome per day, without an attempt."""
        folder = self._home.outcomes / source
        return folder / f"{day}" / f"{attempt}.json" if attempt else folder / f"{day}.json"

    def _write_json(self, path: Path, content: Any) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, default=str, indent=1) + "\n", encoding="utf-8")

    def _write_parquet(self, path: Path, contract: type[BaseModel], rows: Sequence[dict[str, Any]]) -> None:
        # Through memory: of a full disk polars says no more than that the file is out of specification.
        buffer = BytesIO()
        pl.DataFrame(rows, schema=parquet_schema(contract), orient="row").write_parquet(buffer)
        with replacing(path) as temporary:
            temporary.write_bytes(buffer.getbuffer())


@contextmanager
def _readable(file: RecordFile) -> Iterator[None]:
    """Whatever a damaged file makes its reader raise is a RecordError; FileNotFoundError stays."""
    try:
        yield
    except (FileNotFoundError, RecordError):
        raise
    except Exception as error:
        if is_exhaustion(error):
            raise
        raise RecordError(file, error) from error


def _completed(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the columns that records of earlier versions lack and that no offer is without, and with the
    kind and tier that serverless spot has now. The loader has the same rules in SQL."""
    for name, default in _DEFAULTS.items():
        if row.get(name, default) is None:  # in a month of which other days have the column
            row |= {name: default}
    if (row["price_kind"], row["tier"]) == ("serverless", "spot"):
        row |= {"price_kind": "spot", "tier": "serverless"}
    if row.get("tier_class") is None:
        source = configs().get(row["source"])
        of_source = source.attributes.tier_class if source else "dedicated"
        row |= {"tier_class": tier_class(row["tier"], row["price_kind"], of_source)}
    return row


def _check_place(file: RecordFile, foreign: Set[object]) -> None:
    if foreign:
        raise ValueError(f"it is of {', '.join(sorted(map(str, foreign)))}, which is not its place")
