"""Reads answers in a process of its own, which can be stopped: a page may keep its reader busy for hours.

The process is started with the first reading and serves all later ones. Its own timer and the limit on its
memory end it, even within a library's C code, and even if the process that started it is gone; the next
reading then starts another one. It has no keys: of the environment, it gets only what Python needs.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, TypeVar

from rich.filesize import decimal as size_text

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built
from pipeline.contracts.rates import ExchangeRates, Rate
from pipeline.gates.reviews import NO_REVIEWS, Reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.processes import environment_without_keys, limit_memory
from pipeline.offers.build import build_offers
from pipeline.parsing.printable import printable
from pipeline.sources import source_module

_T = TypeVar("_T")


class ReadingStoppedError(GpufareError):
    """A reading was stopped, since it took more time or memory than a reading may."""


def read_answers(
    answers: Sequence[Answer],
    config: SourceConfig,
    rates: Mapping[str, Rate] | None = None,
    reviews: Reviews = NO_REVIEWS,
    any_currency: bool = False,
) -> Built:
    """Return one source's answers as offers and rejects; see ``build_offers``.

    Raises SourceChangedError for every error in the reader: an answer may contain anything, and one source
    never stops the others.
    """

    def read() -> Built:
        rows = source_module(config.name).read(answers, config)
        return build_offers(rows, config, rates, reviews, any_currency=any_currency)

    return _understood(config, read)


def read_rates(answers: Sequence[Answer], config: SourceConfig) -> ExchangeRates:
    """Return the exchange rates in a source's answers. Raises SourceChangedError."""
    rates: ExchangeRates = _understood(config, lambda: source_module(config.name).read_rates(answers, config))
    return rates


def _understood(config: SourceConfig, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except SourceChangedError as changed:
        raise SourceChangedError(printable(str(changed))) from changed
    except Exception as error:
        raise SourceChangedError(
            f"the {config.name} reader does not understand the answer "
            f"({type(error).__name__}: {printable(str(error))})"
        ) from error


def within_limits(
    read: Callable[..., _T], answers: Sequence[Answer], config: SourceConfig, *arguments: Any
) -> _T:
    """Return what ``read``, one of the functions above, returns for the answers, within the limits of a
    reading. Raises SourceChangedError, and ReadingStoppedError with the limit that was reached."""
    seconds = min(THRESHOLDS.read_seconds_per_page * len(answers), float(THRESHOLDS.read_seconds_per_source))
    what = f"reading {_pages(answers)} of {config.name}"
    limits = "the limits are in catalog/gate_thresholds.csv"
    with _turn:
        try:
            done, result = _process().ask(read.__name__, (answers, config, *arguments), seconds)
        except TimeoutError as error:
            raise ReadingStoppedError(
                f"{what} took more than {seconds:g} s and was stopped (read_seconds_per_page; {limits})"
            ) from error
        except (EOFError, OSError) as error:
            raise ReadingStoppedError(f"{what} ended its process ({error})") from error
    if done:
        return result  # type: ignore[no-any-return]
    if result is None:
        raise ReadingStoppedError(
            f"{what} took more than {THRESHOLDS.read_memory_mib:,} MiB of memory and was stopped "
            f"(read_memory_mib; {limits})"
        )
    raise SourceChangedError(result)


def _pages(answers: Sequence[Answer]) -> str:
    size = size_text(sum(len(answer.body) for answer in answers))
    return f"an answer ({size})" if len(answers) == 1 else f"{len(answers)} answers ({size})"


class _Process:
    """The process that reads, as seen by the one that started it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-P", "-m", __name__, f"{theirs.fileno()}", f"{THRESHOLDS.read_memory_mib}"],
                env=environment_without_keys(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt from the terminal is for the one that waits
            )
        atexit.register(self.end)

    @property
    def is_usable(self) -> bool:
        """True if the process lives, and was started by this process rather than by one that forked it."""
        return self.owner == os.getpid() and self._process.poll() is None

    def ask(self, function: str, arguments: tuple[Any, ...], seconds: float) -> tuple[bool, Any]:
        """Have the process read; return whether it succeeded, and the result, or else the complaint of the
        reader (None if memory ran out). Raises TimeoutError, and EOFError if the process ended otherwise."""
        try:
            self._connection.send((function, arguments, seconds))
            answer: tuple[bool, Any] = self._connection.recv()
        except BaseException as error:  # an interrupt, too, leaves a process that is still reading
            ended = self.end()
            if ended == -signal.SIGALRM:
                raise TimeoutError from error
            if isinstance(error, EOFError | OSError):
                raise EOFError(f"exit status {ended}") from error
            raise
        return answer

    def end(self) -> int:
        """End the process, unless it has ended, and return its exit status; in a fork, leave it alone."""
        self._connection.close()
        if self.owner != os.getpid():
            return 0
        atexit.unregister(self.end)
        self._process.kill()
        return self._process.wait()


_turn = Lock()
_started: list[_Process] = []


def _process() -> _Process:
    """Return the process that reads, after starting one if there is none."""
    if not _started or not _started[0].is_usable:
        _started[:] = [_Process()]
    return _started[0]


# ---------------------------------------------------------------- in the process that reads


def _serve(connection: Connection) -> None:
    """Read what is asked for until the other side is gone."""
    functions = {function.__name__: function for function in (read_answers, read_rates)}
    with suppress(EOFError, OSError):
        while True:
            function, arguments, seconds = connection.recv()
            # Nothing handles the timer's signal, so it ends the process.
            signal.setitimer(signal.ITIMER_REAL, seconds)
            answer = _answer(functions[function], arguments)
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send(answer)


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments)
    except SourceChangedError as changed:
        return False, None if isinstance(changed.__cause__, MemoryError) else str(changed)


if __name__ == "__main__":
    limit_memory(int(sys.argv[2]) * 2**20)
    _serve(Connection(int(sys.argv[1])))
