"""Every kind of damaged file in every folder of the home: publishing goes on, and somebody is told."""

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from random import Random

import polars as pl
import pytest

from pipeline.home.paths import Home
from tests.nightly.stress.homes import ALL, SEED, Lab, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY

DAYS = 2
"""Days of the record before one of its files is damaged."""

OLD = FIRST_DAY + timedelta(days=DAYS - 2)
DAY = FIRST_DAY + timedelta(days=DAYS)


PLACES: dict[str, Callable[[Home, date], Path]] = {
    "offers": lambda home, day: home.record / "offers" / "crusoe" / f"{day:%Y-%m}.parquet",
    "rejects": lambda home, day: home.record / "rejects" / "crusoe" / f"{day:%Y-%m}.parquet",
    "rankings": lambda home, day: home.record / "rankings" / f"{day:%Y-%m}.parquet",
    "journal": lambda home, day: home.record / "journal.sqlite",
    "cache": lambda home, day: min(home.cache.rglob("*.duckdb")),
    "index of a capture": lambda home, day: min((home.archive / "crusoe" / str(day)).rglob("index.json")),
    "body of a capture": lambda home, day: min((home.archive / "crusoe" / str(day)).rglob("0001*")),
    "published file": lambda home, day: home.published,
}
LOST = ("rankings", "index of a capture", "body of a capture")
"""What these say cannot be made again from the archive."""


def _write(file: Path, body: bytes) -> None:
    file.chmod(0o644)
    file.write_bytes(body)


def _wrong_shape(file: Path) -> None:
    """Replace the file by one in its format with other contents."""
    if file.suffix == ".parquet":
        file.unlink()
        pl.DataFrame({"a": [1, 2]}).write_parquet(file)
    else:
        _write(file, b'{"a": 1}' if file.suffix == ".json" else b"")


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


HARMS: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: _write(file, file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: _write(file, b""),
    "garbage": lambda file: _write(file, b"\x00\xff garbage \n" * 50),
    "wrong shape": _wrong_shape,
    "stray copy": lambda file: shutil.copy(file, file.with_name(f"{file.stem} (copy){file.suffix}")),
    "a folder in its place": _folder,
    "missing": lambda file: file.unlink(),
}


EVERY = [(place, harm) for place in PLACES for harm in HARMS]
MIXED = Random(SEED).sample(list(HARMS), len(HARMS)) * 2
SOME = list(zip(PLACES, MIXED, strict=False))
"""Every place and every harm, but not each with each."""


@pytest.mark.parametrize(("place", "harm"), EVERY if ALL else SOME)
def test_damage_is_mended_and_somebody_is_told(place: str, harm: str, lab: Lab) -> None:
    """Two days, the damage, and the next day."""
    home = lab.home("home", days=DAYS)
    file = PLACES[place](home, OLD)
    HARMS[harm](file)
    answer = lab.refresh(home, DAY)
    assert answer.published == DAY, answer.said
    assert published_problems(home, [DAY]) + price_problems(home, lab.market, DAY) == []
    # The next refresh replaces the published file or one that is missing, and an old capture is read again
    # only when that day's record must be rebuilt; doctor checks them all. Anything else must be an incident.
    is_harmless = place in ("published file", "index of a capture", "body of a capture")
    if not (is_harmless or harm == "missing" or (place, harm) == ("cache", "stray copy")):
        wanted = str(file.relative_to(home.root))
        paths = [str(row["path"]) for row in rows(home, "SELECT path FROM main.incidents")]
        stem = wanted.removesuffix(file.suffix)
        assert any(path.startswith(stem) or wanted.startswith(f"{path}/") for path in paths), paths
    again = price_problems(home, lab.market, OLD)
    # What can not be made again may be missing, but must not be wrong.
    assert [problem for problem in again if place not in LOST or ": 0 wrong" not in problem] == []
