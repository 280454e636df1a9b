"""CPU seconds of a whole replay: every source's saved answers archived, read, normalized, published.

    python benchmarks/replay_all_sources.py [PAGES]

Prints where the time goes. The goal is 20 s of CPU on two cores for everything, plans computed anew.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

AT_START = process_time()

from pipeline.capture.archive import Archive  # noqa: E402 - what importing costs is counted too
from pipeline.capture.replay import capture_pages  # noqa: E402
from pipeline.catalog.source_config import SourceConfig, configs  # noqa: E402
from pipeline.contracts.paths import Home  # noqa: E402
from pipeline.daily.demo import sample_days  # noqa: E402
from pipeline.daily.exchange_rates import record_rates  # noqa: E402
from pipeline.offers.acceptance import judge  # noqa: E402
from pipeline.offers.build import build_offers  # noqa: E402
from pipeline.offers.records import Records  # noqa: E402
from pipeline.sources import source_module  # noqa: E402
from pipeline.warehouse.publish import publish  # noqa: E402

GOAL_SECONDS = 20.0
SLOWEST = 8


class Clock:
    """CPU and wall seconds by step."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = defaultdict(float)
        self.wall: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        cpu, wall = process_time(), perf_counter()
        yield
        self.cpu[name] += process_time() - cpu
        self.wall[name] += perf_counter() - wall


class Steps:
    """A build's progress lines as steps of a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step = ExitStack()

    def __call__(self, text: str) -> None:
        self._step.close()
        self._step.enter_context(self._clock.step(text))

    def end(self) -> None:
        self._step.close()


def main() -> int:
    pages = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "tests" / "pages"
    by_step, by_source = Clock(), Clock()
    by_step.cpu["import gpufare"] = by_step.wall["import gpufare"] = process_time() - AT_START
    found = [config for config in configs().values() if (pages / config.name).is_dir()]
    chosen = sorted(found, key=lambda config: config.kind != "exchange_rates")
    day = sample_days(pages)[0]
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        offers = 0
        for config in chosen:
            with by_source.step(config.name):
                offers += _replay(config, pages, day, home, by_step)
        by_table = Clock()
        with by_step.step("publish: plans computed"):
            publish(home, day, datetime.now(UTC))
        with by_step.step("publish: plans kept from before"):
            steps = Steps(by_table)
            publish(home, day, datetime.now(UTC), steps)
            steps.end()
    _show(f"{len(chosen)} sources, {offers} offers", by_step)
    _show(f"the {SLOWEST} slowest sources", by_source, SLOWEST)
    _show("publish, plans kept: the slowest tables (the last one with the checks)", by_table, SLOWEST)
    spent = sum(by_step.cpu.values()) - by_step.cpu["publish: plans kept from before"]
    print(f"{spent:.1f} s of CPU for everything once, plans computed; the goal is {GOAL_SECONDS:.0f} s")
    return 0


def _replay(config: SourceConfig, pages: Path, day: date, home: Home, clock: Clock) -> int:
    """What the daily job does with one source, step by step. Returns the number of offers."""
    archive, records = Archive(home.archive), Records(home)
    with clock.step("archive the answers"):
        capture = capture_pages(pages, config, day=day, archive=archive)
    with clock.step("read them back, hashes checked"):
        answers = archive.answers(capture)
    if config.kind == "exchange_rates":
        record_rates(config, day, answers, records)
        return 0
    with clock.step("read the pages"):
        listings = list(source_module(config.name).read(answers, config))
    with clock.step("normalize"):
        built = build_offers(listings, config, records.usd_rates(day))
    with clock.step("judge and write the record"):
        assert judge(built.offers, config, None, built.rejects).accepted, config.name
        records.write_accepted(day, config.name, built.offers)
        records.write_rejects(day, config.name, built.rejects)
    return len(built.offers)


def _show(title: str, clock: Clock, rows: int | None = None) -> None:
    table = Table("", "CPU s", "wall s", title=title, title_justify="left", box=None)
    for name in sorted(clock.cpu, key=lambda name: -clock.cpu[name])[:rows]:
        table.add_row(name, f"{clock.cpu[name]:.2f}", f"{clock.wall[name]:.2f}")
    table.add_section()
    table.add_row("together", f"{sum(clock.cpu.values()):.2f}", f"{sum(clock.wall.values()):.2f}")
    Console().print(table)
    print()


if __name__ == "__main__":
    sys.exit(main())
