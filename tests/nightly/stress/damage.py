"""Every kind of damaged file in every folder of the home: publishing goes on, and somebody is told."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from pipeline.home.paths import Home
from tests.nightly.stress.homes import Lab, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY
from tests.nightly.stress.runner import Figures, Part

DAYS = 2
"""Days of the record before one of its files is damaged."""


@dataclass(frozen=True)
class Place:
    """A file of the home. ``rebuilt``: whether what it says can be made again from the archive."""

    file: Callable[[Home, date], Path]
    rebuilt: bool = True


def _one(folder: Path, pattern: str) -> Path:
    return sorted(path for path in folder.rglob(pattern) if path.is_file())[0]


PLACES = {
    "offers": Place(lambda home, day: home.record / "offers" / "crusoe" / f"{day:%Y-%m}.parquet"),
    "rejects": Place(lambda home, day: home.record / "rejects" / "crusoe" / f"{day:%Y-%m}.parquet"),
    "rankings": Place(lambda home, day: home.record / "rankings" / f"{day:%Y-%m}.parquet", rebuilt=False),
    "journal": Place(lambda home, day: home.record / "journal.sqlite"),
    "cache": Place(lambda home, day: _one(home.cache, "*.duckdb")),
    "index of a capture": Place(
        lambda home, day: _one(home.archive / "crusoe" / str(day), "index.json"), rebuilt=False
    ),
    "body of a capture": Place(
        lambda home, day: _one(home.archive / "crusoe" / str(day), "0001*"), rebuilt=False
    ),
    "published file": Place(lambda home, day: home.published),
}


def _truncate(file: Path) -> None:
    body = file.read_bytes()
    _write(file, body[: len(body) // 2])


def _wrong_shape(file: Path) -> None:
    """Replace the file by one in its format with other contents."""
    if file.suffix == ".parquet":
        file.unlink()
        pl.DataFrame({"a": [1, 2]}).write_parquet(file)
    else:
        _write(file, b'{"a": 1}' if file.suffix == ".json" else b"")


def _write(file: Path, body: bytes) -> None:
    file.chmod(0o644)
    file.write_bytes(body)


def _stray(file: Path) -> None:
    shutil.copy(file, file.with_name(f"{file.stem} (copy){file.suffix}"))


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


HARMS: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "empty": lambda file: _write(file, b""),
    "garbage": lambda file: _write(file, b"\x00\xff garbage \n" * 50),
    "wrong shape": _wrong_shape,
    "stray copy": _stray,
    "a folder in its place": _folder,
    "missing": lambda file: file.unlink(),
}

UNNAMED = {
    # The next refresh replaces the files in these places, or did not need them.
    *(("cache", harm) for harm in ("missing", "stray copy")),
    *(("published file", harm) for harm in HARMS),
    *((place, "missing") for place in PLACES),
    # Copies beside a capture's files are in nobody's way: the index names the files that count.
    *((place, "stray copy") for place in ("index of a capture", "body of a capture")),
    # An old day's capture is read again only when that day's record must be rebuilt; doctor checks them all.
    *((place, harm) for place in ("index of a capture", "body of a capture") for harm in HARMS),
}
"""Damage that need not be an incident."""


def units(seed: str) -> list[str]:
    """Every place with every harm."""
    return [f"{place}: {harm}" for place in PLACES for harm in HARMS]


def run(lab: Lab, unit: str, seed: str) -> Figures:
    """Two days, the damage, and the next day."""
    home = lab.home("home", days=DAYS)
    problems: list[str] = []
    name, _, harm = unit.partition(": ")
    place, old = PLACES[name], FIRST_DAY + timedelta(days=DAYS - 2)
    file = place.file(home, old)
    HARMS[harm](file)
    day = FIRST_DAY + timedelta(days=DAYS)
    answer = lab.refresh(home, day)
    if answer["published"] != str(day):
        said = str(answer.get("crash") or answer.get("refused") or answer.get("lines"))
        return {"problems": [*problems, f"not published: {said[-300:]}"], "named": False, "rebuilt": False}
    problems += published_problems(home, [day]) + price_problems(home, lab.market, day)
    named = _is_named(home, file)
    if not named and (name, harm) not in UNNAMED:
        problems.append(f"no incident names {file.relative_to(home.root)}")
    again = price_problems(home, lab.market, old)
    if place.rebuilt:
        problems += again
    else:
        # What can not be made again may be missing, but must not be wrong.
        problems += [problem for problem in again if ": 0 wrong" not in problem]
    return {"problems": problems, "named": named, "rebuilt": not again}


def _is_named(home: Home, file: Path) -> bool:
    """True if an incident names the file, its copy, or its folder."""
    wanted = str(file.relative_to(home.root))
    paths = [str(row["path"]) for row in rows(home, "SELECT path FROM main.incidents WHERE path IS NOT NULL")]
    stem = wanted.removesuffix(file.suffix)
    return any(path.startswith(stem) or wanted.startswith(f"{path}/") for path in paths)


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    named = sum(bool(result.get("named")) for result in results)
    stopped = sum("not published" in " ".join(result["problems"]) for result in results)
    cases = f"{len(results)} cases ({len(PLACES)} places, {len(HARMS)} kinds of damage)"
    return f"{cases}; not published in {stopped}, an incident in {named}"


PART = Part("damage", "a damaged, stray or missing file", units, run, figures, 420)
