"""Homes to hurt: refreshed in processes of their own on made-up pages, and looked at from outside."""

import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import SOURCE_HEADER, Limits
from pipeline.contracts.errors import GpufareError
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh
from pipeline.warehouse.query import ask, reader
from tests.homes import made_once, planned_home, small_catalogue
from tests.nightly.stress.market import FIRST_DAY, PRICES, SOURCES, Market, Misread, key_of
from tests.refresh.faulty_server import Fault, FaultyHandler, FaultyServer

SEED = os.environ.get("STRESS_SEED", "night")
ALL = "STRESS_ALL" in os.environ
"""All units of every part, as `make stress` runs them; otherwise a few, which take some minutes."""

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.nightly.stress.homes"])

LIMITS = Limits(
    connect_seconds=10, read_seconds=10, response_seconds=20, backoff_seconds=0.01, backoff_max_seconds=0.05
)
CHILD_SECONDS = 300


class CountingHandler(FaultyHandler):
    server: "CountingServer"

    def do_GET(self) -> None:
        source = self.headers.get(SOURCE_HEADER, "")
        if self.path == "/robots.txt" and source in self.server.robots_down:
            self.say(503)
            return
        super().do_GET()
        self.server.served[source] += self.path != "/robots.txt" and source not in self.server.faults

    do_POST = do_GET


class CountingServer(FaultyServer):
    """Serves pages, and counts the answers that were sent whole in ``served``. The robots.txt of the sources
    in ``robots`` is unreachable."""

    handler = CountingHandler

    def __init__(self, directory: Path, faults: dict[str, Fault], robots: Sequence[str]) -> None:
        self.served: Counter[str] = Counter()
        self.robots_down = frozenset(robots)
        super().__init__(directory, faults)


@dataclass(frozen=True)
class Answer:
    """What a refresh in another process came to. ``said`` are its lines, its refusal or its traceback."""

    published: date | None = None
    accepted: frozenset[str] = frozenset()
    said: str = ""
    crashed: bool = False


def _run(
    catalogue: Path, home: Path, url: str, day: date, file_bytes: int | None, sender: Connection
) -> None:
    logging.disable(logging.CRITICAL)  # incidents are read from the home, not from this terminal
    paths.CATALOG_DIR = catalogue
    if file_bytes is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    try:
        sender.send(refreshed(Home(home), url, day))
    except GpufareError as error:
        sender.send(Answer(said=str(error)))
    except BaseException:
        sender.send(Answer(said=traceback.format_exc(), crashed=True))


def refreshed(home: Home, url: str, day: date) -> Answer:
    """Refresh a home in this process, as of noon of a day."""
    now = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    report = refresh(home, day=day, sources=SOURCES, pages=url, environment={}, now=now, limits=LIMITS)
    said = "\n".join([*report.lines(), *filter(None, [report.failure()])])
    accepted = frozenset(outcome.source for outcome in report.outcomes if outcome.accepted)
    return Answer(report.published_day if report.published else None, accepted, said)


@dataclass
class Child:
    """A refresh under way."""

    process: BaseProcess
    receiver: Connection

    def kill(self) -> bool:
        """kill -9. Whether it was still running."""
        running = self.process.is_alive()
        self.process.kill()
        self.process.join()
        return running

    def wait(self) -> Answer:
        try:
            if not self.receiver.poll(CHILD_SECONDS):
                self.kill()
                return Answer(said=f"still running after {CHILD_SECONDS} s", crashed=True)
            answer: Answer = self.receiver.recv()
        except EOFError:
            answer = Answer(said="ended without an answer", crashed=True)
        self.process.join()
        return answer


@dataclass(frozen=True)
class Lab:
    """A folder to work in: made-up pages, homes, and the small catalogue. ``shared`` is for all labs."""

    folder: Path
    shared: Path
    market: Market

    @property
    def catalogue(self) -> Path:
        """The small catalogue, made when it is asked for first."""
        return made_once(self.shared / "catalog", small_catalogue)

    def home(self, name: str, days: int = 1) -> Home:
        """A home that was refreshed on the first ``days`` days; its plans are computed."""
        root = self.folder / name
        if days == 0:
            return planned_home(self.shared, root)

        def live(new: Path) -> None:
            lab = Lab(self.shared, self.shared, self.market)
            answer = lab.refresh(lab.home(new.name, days - 1), FIRST_DAY + timedelta(days=days - 1))
            assert answer.published, f"a day without any harm was not published: {answer.said}"

        shutil.copytree(made_once(self.shared / f"home-of-{days}-days-{self.market.seed}", live), root)
        return Home(root)

    @contextmanager
    def serving(
        self,
        day: date,
        faults: dict[str, Fault] | None = None,
        robots: Sequence[str] = (),
        misread: dict[str, Misread] | None = None,
    ) -> Iterator[CountingServer]:
        """A server with the pages of a day."""
        with tempfile.TemporaryDirectory(dir=self.folder) as pages:
            self.market.write(Path(pages), day, misread)
            with CountingServer(Path(pages), faults or {}, robots) as server:
                yield server

    def start(self, home: Home, server: CountingServer, day: date, file_bytes: int | None = None) -> Child:
        """Start a refresh of a home in a process of its own; ``file_bytes`` is the largest file that it may
        write."""
        receiver, sender = PROCESSES.Pipe(duplex=False)
        asked = (self.catalogue, home.root, server.base_url, day, file_bytes, sender)
        process = PROCESSES.Process(target=_run, args=asked)
        process.start()
        sender.close()
        return Child(process, receiver)

    def refresh(self, home: Home, day: date) -> Answer:
        """Refresh a home with the pages of a day, in a separate process, and wait for it."""
        with self.serving(day) as server:
            return self.start(home, server, day).wait()


# ------------------------------------------------------------------ looking at a home


def problems_of(lab: Lab, home: Home, day: date) -> list[str]:
    """What is wrong with a home on a day: its published file, the day's prices, or files that are left."""
    left = [f"litter is left: {name}" for name in litter(home)]
    return published_problems(home, [day]) + price_problems(home, lab.market, day) + left


def published_problems(home: Home, days: Sequence[date]) -> list[str]:
    """Return the problems of the published file, which must open, be whole, and be as of one of ``days``."""
    try:
        with reader(home.published) as connection:
            (day,) = ask(connection, "SELECT as_of_day FROM main.publication").rows[0]
            ranked = ask(connection, "SELECT count(*) FROM main.cheapest_gpu_per_workload").rows[0][0]
            ask(connection, "SELECT sum(hash(o)) FROM main.offers AS o")
    except GpufareError as error:
        return [f"the published file cannot be read: {error}"]
    problems = [] if day in days else [f"published as of {day}, not {' or '.join(map(str, days))}"]
    return problems + ([] if ranked else [f"nothing is ranked as of {day}"])


def price_problems(
    home: Home, market: Market, day: date, sources: Iterable[str] = PRICES, may_miss: float = 0
) -> list[str]:
    """The sources whose offers of a day differ from its true prices. Held ones may be missing, and otherwise
    this share of them."""
    truth, problems = market.truth(day), []
    found = rows(home, f"FROM main.offers WHERE day = DATE '{day}'")
    refused = "FROM main.rejects JOIN main.reject_reasons USING (reason) WHERE held"
    held = Counter(row["source"] for row in rows(home, f"{refused} AND day = DATE '{day}'"))
    for source in sources:
        offers = {key_of(source, row): row["native_price"] for row in found if row["source"] == source}
        wrong = {key for key, price in offers.items() if truth[source].get(key) != price}
        missing = truth[source].keys() - offers.keys()
        if wrong or len(missing) > max(held[source], may_miss * len(truth[source])):
            example = f", such as {sorted(wrong or missing)[0]}"
            problems.append(f"{source} on {day}: {len(wrong)} wrong, {len(missing)} missing{example}")
    return problems


def litter(home: Home) -> list[str]:
    """Files and folders that only a run under way may have."""
    return sorted(
        str(path.relative_to(home.root))
        for path in home.root.rglob(".*")
        if path.name.endswith((".tmp", ".writing")) or path.name.startswith(".building-")
    )


def archived(home: Home) -> Counter[str]:
    """How many answers the archive gives back by source, interrupted captures included. Raises PagesError
    for one that is not as it was fetched."""
    archive = Archive(home.archive)
    found: Counter[str] = Counter()
    for source in archive.sources():
        for capture in archive.captures(source):
            found[source] += len(archive.answers(capture))
    return found


def rows(home: Home, query: str) -> list[dict[str, Any]]:
    """Rows of the published file."""
    with reader(home.published) as connection:
        return list(ask(connection, query).dicts())
