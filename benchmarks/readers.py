"""Times for reading each source's saved answers, and for refreshing all sources as far as the record."""

from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lines import Line, Taken, clock, timed, together
from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.gates.reading import check_reading
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.records import Records
from pipeline.refresh.demo import sample_days
from pipeline.refresh.ingest import record_day
from pipeline.sources import source_module

REPEATS = 3


class Read(NamedTuple):
    """The offers and times of one source."""

    source: str
    bytes: int
    listings: int
    offers: int
    steps: dict[str, Taken]


class Replay(NamedTuple):
    """The day of the sample pages, and the results of all sources."""

    day: date
    sources: list[Read]


def replay(home: Home, pages: Path) -> Replay:
    """Run the daily job for every source up to the writing of the record, without HTTP."""
    found = [
        config for config in configs().values() if config.disabled is None and (pages / config.name).is_dir()
    ]
    day = sample_days(pages)[0]
    chosen = sorted(found, key=lambda config: config.kind != "exchange_rates")
    return Replay(day, [_replay(config, pages, day, home) for config in chosen])


def _replay(config: SourceConfig, pages: Path, day: date, home: Home) -> Read:
    archive, records = Archive(home.archive), Records(home)
    steps: dict[str, Taken] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        with clock() as read:
            answer = work()
        steps[name] = read()
        return answer

    capture = step("archive the answers", lambda: capture_pages(pages, config, day=day, archive=archive))
    answers = step("read the answers back, with their hashes checked", lambda: archive.answers(capture))
    size = sum(len(answer.body) for answer in answers)
    if config.kind == "exchange_rates":
        record_day(config, day, [capture], home)
        return Read(config.name, size, 0, 0, steps)
    reader = source_module(config.name).read
    listings = step("read the pages", lambda: list(reader(answers, config)))
    steps["read the pages"] = timed(lambda _: list(reader(answers, config)), REPEATS)
    built = step("normalize", lambda: build_offers(listings, config, records.usd_rates(day)))

    def record() -> None:
        assert check_reading(built.offers, config, built.rejects).accepted, config.name
        records.write_accepted(day, config.name, built.offers)
        records.write_rejects(day, config.name, built.rejects)

    step("judge and write the record", record)
    return Read(config.name, size, len(listings), len(built.offers), steps)


def readers(work: Path, pages: Path) -> list[Line]:
    """Time all sources step by step, and measure each reader's rate."""
    found = replay(Home(work / "readers"), pages).sources
    steps: dict[str, Taken] = defaultdict(lambda: Taken(0, 0))
    for read in found:
        for name, taken in read.steps.items():
            steps[name] = together(steps[name], taken)
    offers, size = sum(read.offers for read in found), sum(read.bytes for read in found)
    rates = {
        "read the pages": f"{size / 1e6 / steps['read the pages'].processor:.1f} MB per second",
        "normalize": f"{offers / steps['normalize'].processor:,.0f} offers per second",
    }
    rated = sorted((read for read in found if "read the pages" in read.steps), key=_rate)
    return [
        *(Line(f"{len(found)} sources: {name}", taken, rates.get(name, "")) for name, taken in steps.items()),
        *(
            Line(
                f"reader of {read.source}",
                read.steps["read the pages"],
                f"{_rate(read):.1f} MB per second; {read.bytes / 1e3:.0f} kB, {read.listings} listings",
            )
            for read in rated
        ),
    ]


def _rate(read: Read) -> float:
    """Return MB per second."""
    return read.bytes / 1e6 / read.steps["read the pages"].processor
