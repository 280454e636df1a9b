"""Homes to hurt: refreshed in processes of their own on made-up pages, and looked at from outside."""

import json
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
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
from tests.nightly.stress.market import FIRST_DAY, PRICES, SOURCES, Market, key_of
from tests.refresh.faulty_server import Fault, FaultyServer, Host

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.nightly.stress.homes"])

LIMITS = Limits(
    connect_seconds=10,
    read_seconds=10,
    response_seconds=20,
    backoff_seconds=0.01,
    backoff_max_seconds=0.05,
)
CHILD_SECONDS = 300


def use_catalogue(folder: Path) -> None:
    """Let this process publish with another catalogue."""
    paths.CATALOG_DIR = folder


class CountingServer(FaultyServer):
    """Serves pages, and counts the answers that it has sent whole, by source. ``robots`` are sources whose
    robots.txt is unreachable."""

    def __init__(
        self, directory: Path, faults: dict[str, Fault] | None = None, robots: Sequence[str] = ()
    ) -> None:
        self.served: Counter[str] = Counter()
        self.robots_down = frozenset(robots)
        super().__init__(directory, faults or {})

    def _handler(self) -> type[Any]:
        server, plain = self, super()._handler()

        class Handler(plain):  # type: ignore[valid-type,misc]
            def do_GET(self) -> None:
                source = self.headers.get(SOURCE_HEADER, "")
                if self.path == "/robots.txt":
                    if source in server.robots_down:
                        Host.say(self, 503)  # type: ignore[arg-type]
                        return
                    super().do_GET()
                    return
                super().do_GET()
                if source not in server._faults:
                    server.served[source] += 1

            do_POST = do_GET

        return Handler


@dataclass(frozen=True)
class Task:
    """A refresh to be made in a separate process."""

    catalogue: Path
    home: Path
    url: str
    day: date | None
    now: datetime | None
    answer: Path
    sources: tuple[str, ...] = SOURCES
    file_bytes: int | None = None
    """The largest file that the process may write; None for no limit."""


def noon(day: date) -> datetime:
    """Noon of a day (UTC)."""
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


def _refresh(task: Task) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.CRITICAL)  # incidents are read from the home, not from this terminal
    use_catalogue(task.catalogue)
    if task.file_bytes is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (task.file_bytes, task.file_bytes))
    answer: dict[str, Any] = {}
    try:
        report = refresh(
            Home(task.home),
            day=task.day,
            sources=task.sources,
            pages=task.url,
            environment={},
            now=task.now,
            limits=LIMITS,
        )
        answer = {
            "published": str(report.published_day) if report.published else None,
            "lines": [*report.lines(), *filter(None, [report.failure()])],
            "accepted": sorted(o.source for o in report.outcomes if o.accepted),
        }
    except GpufareError as error:
        answer = {"refused": str(error), "published": None}
    except BaseException:
        answer = {"crash": traceback.format_exc(), "published": None}
    if task.file_bytes is None:
        task.answer.write_text(json.dumps(answer), encoding="utf-8")
    else:
        print(json.dumps(answer))
        task.answer.write_text(json.dumps(answer)[: task.file_bytes], encoding="utf-8")


@dataclass
class Child:
    """A refresh under way."""

    process: BaseProcess
    task: Task

    def kill(self) -> bool:
        """kill -9. Whether it was still running."""
        running = self.process.is_alive()
        if running and self.process.pid:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        return running

    def wait(self) -> dict[str, Any]:
        """Return the refresh's report."""
        self.process.join(CHILD_SECONDS)
        if self.process.is_alive():
            self.kill()
            return {"crash": f"still running after {CHILD_SECONDS} s", "published": None}
        if not self.task.answer.exists():
            return {"crash": f"ended with {self.process.exitcode}", "published": None}
        answer: dict[str, Any] = json.loads(self.task.answer.read_text(encoding="utf-8"))
        self.task.answer.unlink()
        return answer


def start(task: Task) -> Child:
    """Start a refresh in a separate process."""
    process = PROCESSES.Process(target=_refresh, args=(task,))
    process.start()
    return Child(process, task)


@dataclass(frozen=True)
class Lab:
    """A folder to work in: made-up pages, homes, and the small catalogue. ``shared`` is for all labs of a
    seed."""

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
        shutil.rmtree(root, ignore_errors=True)
        if days == 0:
            return planned_home(self.shared, root)

        def live(new: Path) -> None:
            before = Lab(self.shared, self.shared, self.market).home(new.name, days - 1)
            answer = Lab(self.shared, self.shared, self.market).refresh(
                before, FIRST_DAY + timedelta(days=days - 1)
            )
            if not answer["published"]:
                raise RuntimeError(f"a day without any harm was not published: {answer}")

        shutil.copytree(made_once(self.shared / f"home-of-{days}-days", live), root)
        return Home(root)

    @contextmanager
    def serving(self, day: date, **faults: Any) -> Iterator[CountingServer]:
        """A server with the pages of a day."""
        misread = faults.pop("misread", None)
        with tempfile.TemporaryDirectory(dir=self.folder) as pages:
            self.market.write(Path(pages), day, misread)
            with CountingServer(Path(pages), **faults) as server:
                yield server

    def start(self, home: Home, server: CountingServer | str, day: date | None, **options: Any) -> Child:
        """Start a refresh of a home as of noon of ``day``."""
        url = server if isinstance(server, str) else server.base_url
        answer = self.folder / f"answer-{os.getpid()}-{time.monotonic_ns()}.json"
        options = {"now": noon(day) if day else None} | options
        return start(Task(self.catalogue, home.root, url, day, answer=answer, **options))

    def refresh(self, home: Home, day: date, **faults: Any) -> dict[str, Any]:
        """Refresh a home with the pages of a day, in a separate process, and wait for it."""
        with self.serving(day, **faults) as server:
            return self.start(home, server, day).wait()


# ------------------------------------------------------------------ looking at a home


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


def price_problems(home: Home, market: Market, day: date, sources: Sequence[str] = PRICES) -> list[str]:
    """Return the offers of a day that differ from its true prices. Held ones may be missing."""
    truth, problems = market.truth(day), []
    found = rows(home, f"FROM main.offers WHERE day = DATE '{day}'")
    held = Counter(
        row["source"]
        for row in rows(
            home,
            f"FROM main.rejects JOIN main.reject_reasons USING (reason) WHERE held AND day = DATE '{day}'",
        )
    )
    for source in sources:
        offers = {key_of(source, row): row["native_price"] for row in found if row["source"] == source}
        wrong = {key for key, price in offers.items() if truth[source].get(key) != price}
        missing = truth[source].keys() - offers.keys()
        if wrong or len(missing) > held[source]:
            example = f", such as {sorted(wrong or missing)[0]}"
            problems.append(f"{source} on {day}: {len(wrong)} wrong, {len(missing)} missing{example}")
    return problems


def bytes_of(folder: Path) -> int:
    """The size of all files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
