"""The newest published file, kept open between questions."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event, Thread

from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.questions.job import JobError
from pipeline.questions.prices import prices_of
from pipeline.questions.session import Session
from pipeline.warehouse.query import NotPublishedError, age_note


def today() -> date:
    """Return the current day (UTC)."""
    return datetime.now(UTC).date()


MOST_SECONDS = 60
"""The most time for a question about a job; the slowest plans take a few seconds."""

AGAIN_SECONDS = 0.05
"""Time until a question that goes on is interrupted again: an interrupt between two queries stops neither."""

_State = tuple[int, int, int]


def _state(path: Path) -> _State | None:
    """Return what changes whenever a file is written anew or replaced; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Published:
    """The published file of a home, open until another one is published or the home's own models or runs
    change. Not thread-safe."""

    def __init__(self, home: Home, most_seconds: float = MOST_SECONDS) -> None:
        self.home = home
        self.most_seconds = most_seconds
        self._open = ExitStack()
        self._files: tuple[_State | None, ...] = ()
        self._session: Session | None = None

    def session(self) -> Session:
        """Return a session on the newest published file and the home's own models and runs. Raises
        NotPublishedError and DamagedError."""
        files = tuple(map(_state, (self.home.published, self.home.models, self.home.own_runs)))
        if files[0] is None:
            self.close()
            raise NotPublishedError(
                "nothing is published yet: run `gpufare refresh`, or `gpufare demo` for sample prices, with "
                "the same GPUFARE_HOME as this server"
            )
        if self._session is None or files != self._files:
            self.close()
            self._session = Session(self._open.enter_context(prices_of(self.home, None, today())))
            self._files = files
        return self._session

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Interrupt what the block asks of the file after MOST_SECONDS. Raises JobError if that happened."""
        interrupted, is_over = Event(), Event()

        def interrupt() -> None:
            seconds = self.most_seconds
            while not is_over.wait(seconds):
                if self._session is not None:
                    interrupted.set()
                    self._session.connection.interrupt()
                seconds = AGAIN_SECONDS

        Thread(target=interrupt, daemon=True).start()
        try:
            yield
        except GpufareError as error:
            if interrupted.is_set():
                raise JobError(
                    f"this took more than {self.most_seconds:g} s and was stopped: constrain the job"
                ) from error
            raise
        finally:
            is_over.set()

    def age_notes(self) -> list[str]:
        """Return a note on the age of the prices, if they are old."""
        note = age_note(self.session().connection, self.home, today())
        return [note] if note else []

    def close(self) -> None:
        """Close the file, if it is open."""
        self._open.close()
        self._session = None
