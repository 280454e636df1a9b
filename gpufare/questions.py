"""The Python interface: questions about jobs and GPUs, answered from the published file as rows."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import wraps
from html import escape
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from pipeline.contracts.errors import GpufareError
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.questions import fit as fitting
from pipeline.questions import gpu_prices, why
from pipeline.questions.alternatives import advice, foreseen
from pipeline.questions.fit import Fit
from pipeline.questions.job import Job, JobError, given_job, number, whole
from pipeline.questions.prices import prices_of
from pipeline.questions.session import Session
from pipeline.questions.tables import cell_text, table_for_people
from pipeline.questions.why import Explanation
from pipeline.questions.words import assumptions, machine_lines, nothing_fits
from pipeline.warehouse.query import Result, age_note, one_query

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel

Row = dict[str, Any]
Asked = ParamSpec("Asked")
Answered = TypeVar("Answered")


SHOWN_ROWS = 20
"""The most rows that a notebook shows."""


class Answer(Sequence[Row]):
    """The rows of an answer as dictionaries, best first; amounts of money are floats, rounded as in SQL.
    ``columns`` are the keys of each row, set even if there are no rows; ``assumptions`` maps each setting
    that the question left open to the value assumed for it; ``notes`` are for people: the picks, the main
    assumptions in one line, what another method or precision would cost, offers skipped because of their
    place, sequences too long for the model, the ranks of quotes and own machines, the reason for an empty
    answer and what would have to change, and the age of the prices. A notebook shows an answer as a table."""

    def __init__(self, result: Result, notes: Sequence[str] = ()) -> None:
        self.columns = result.columns
        self.notes = tuple(notes)
        self._rows = [_floats(row) for row in result.dicts()]
        self._result = result
        is_ranking = bool(self._rows) and {"rank", "pick", "assumptions"} <= self._rows[0].keys()
        self.assumptions: Row = json.loads(self._rows[0]["assumptions"] or "{}") if is_ranking else {}

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        """Return a row, or a slice of the rows."""
        return self._rows[place]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Return the text for the prompt: the number of rows and the columns, or why there are no rows."""
        if not self._rows:
            return "\n".join(["<Answer of 0 rows>", *self.notes])
        return f"<Answer of {len(self)} rows: {', '.join(self.columns[:6])}, ...>"

    def _repr_html_(self) -> str:
        """Return the first rows as a table for a notebook, in the columns that people read, and notes."""
        shown = table_for_people(self._result.first(SHOWN_ROWS))
        heads = "".join(f"<th>{escape(name)}</th>" for name in shown.columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell_text(value))}</td>' for value in row)}</tr>"
            for row in shown.rows
        )
        more = [f"first {SHOWN_ROWS} of {len(self)} rows"] if len(self) > SHOWN_ROWS else []
        notes = "".join(f"<li>{escape(note)}</li>" for note in (*more, *self.notes))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><ul>{notes}</ul>"


class Prices:
    """The published file, kept open: use this as a context manager, or call ``close`` at the end.

    All answers come from the file that was the newest when it was opened. Each job's plans are kept, so
    asking about it again with a different token count, deadline or filter is fast. Not thread-safe.
    """

    def __init__(self, home: str | Path | None = None) -> None:
        """Open the file published in ``home``, by default $GPUFARE_HOME or the user's data folder.

        Raises NotPublishedError if nothing is published, and DamagedError if the file cannot be read.
        """
        self._home = Home(Path(home).expanduser().absolute()) if home is not None else paths.home()
        self._open = ExitStack()
        self._is_closed = False
        self._sessions: dict[str | None, Session] = {}
        self._session()

    def __enter__(self) -> "Prices":
        """Return this object, which must still be open."""
        self._require_open()
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; any later question raises GpufareError."""
        self._is_closed = True
        self._open.close()
        self._sessions.clear()

    def cheapest(
        self, /, *, config: str | Path | None = None, limit: int | None = None, **job: Any
    ) -> Answer:
        """Rank the ways to run a job by US dollars for the finished job, or by ``objective``.

        ``job`` takes the settings of a job, which are also the options of ``gpufare cheapest`` and the
        columns that the ``cheapest_for`` macro reads; ``config`` is the path of a config.json to use instead
        of ``model``. The answer has the columns of ``cheapest_for`` and its first ``limit`` rows, or all rows
        without a limit; if there are no rows, ``notes`` say why. Raises JobError for an invalid job.
        """
        if limit is not None:
            limit = whole("limit", limit, least=1)
        session, asked = self._asked(config, job)
        found = (
            session.cheapest(asked) if limit is None else session.with_picks(asked, limit, foreseen(asked))
        )
        result = found if limit is None else found.first(limit)
        notes = [*machine_lines(asked, session, limit or len(found.rows)), *self._notes(session)]
        if not result.rows:
            notes.insert(0, nothing_fits(asked, session))
        rows = list(found.dicts())
        for row in rows[:1]:
            notes = [*advice(session, asked, rows), *assumptions(row), *notes]
        return Answer(result, notes)

    def fit(self, /, *, config: str | Path | None = None, **job: Any) -> Fit:
        """Return how a job fits on exactly ``gpus`` (default 1) cards of type ``gpu``: P(fits), memory in GiB
        part by part, tokens per second, and the largest micro-batch that fits with 90% probability.

        Raises JobError if such a run cannot be planned.
        """
        return fitting.fit(*self._asked(config, job))

    def fits_on(self, gpu: str, *, gpus: int = 1, seq_len: int | None = None) -> Answer:
        """List each model and method with its fit on ``gpus`` cards of type ``gpu``, for sequences of
        ``seq_len`` tokens (by default, a job's default). Raises JobError for an unknown GPU."""
        session = self._session()
        found = fitting.fits_on(session, gpu, gpus, seq_len)
        return Answer(found, [*fitting.family_notes(session, gpu), *fitting.largest_that_fit(found)])

    def explain(
        self,
        /,
        *,
        rank: int = 1,
        not_gpu: str | None = None,
        config: str | Path | None = None,
        **job: Any,
    ) -> Explanation:
        """Explain the cost of the answer with this rank, in US dollars part by part, and why ``not_gpu`` (a
        GPU or a family of GPUs) is not the answer. Raises JobError for an unknown rank or GPU."""
        rank = whole("rank", rank, least=1)
        session, asked = self._asked(config, job)
        found = why.explain(session, asked, rank, not_gpu)
        return replace(found, row=_floats(found.row), why_not=[_floats(row) for row in found.why_not])

    def history(self, /, *, config: str | Path | None = None, **job: Any) -> Answer:
        """Return a job's lowest cost in US dollars on each day on record: the rows of the ``cost_history``
        macro. Raises JobError for an invalid job."""
        session, asked = self._asked(config, job)
        found = why.history(session, asked)
        if not found.rows:
            return Answer(found, [nothing_fits(asked, session)])
        notes = (why.HISTORY_LEAVES_OUT, why.age_of_newest(found, _today()))
        return Answer(found, notes)

    def watch(self, /, *, below: float, config: str | Path | None = None, **job: Any) -> dict[str, Any]:
        """Compare a job's lowest cost with ``below`` US dollars. Return ``below`` (True if the job
        costs less), ``limit_usd``, columns of the cheapest answer and, if there is no answer, ``reason``.
        Raises JobError for an invalid job, and for a limit that is not an amount of money."""
        session, asked = self._asked(config, job)
        return _floats(why.watched(session, asked, number("below", below, "USD")))

    def compare(self, /, one: str, other: str, *, config: str | Path | None = None, **job: Any) -> Answer:
        """Put two GPUs side by side, one row per fact, in the units that ``meaning`` gives; if a job is
        given, its lowest cost on each GPU comes first. Raises JobError for an unknown GPU."""
        if config is None and not job:
            session, asked = self._session(), None
        else:
            session, asked = self._asked(config, job)
        compared = fitting.compare(session, one, other, asked)
        return Answer(compared, fitting.family_notes(session, one, other))

    def prices(
        self, gpu: str | Sequence[str] | None = None, /, *, daily: bool = False, **constraints: Any
    ) -> Answer:
        """Return today's prices in US dollars per GPU-hour, cheapest first: the lowest of each card,
        provider, kind and term. ``gpu`` names cards or families, by default all; ``constraints`` are settings
        of a job that choose offers, such as ``kind`` and ``country``. With ``daily``, return the lowest price
        of each card and kind on each day on record instead. Raises JobError."""
        ask = gpu_prices.daily_prices if daily else gpu_prices.prices
        session = self._session()
        found, asked = ask(session, {"gpu": gpu, **constraints})
        notes = gpu_prices.price_notes(found, asked) if found.rows else [gpu_prices.no_price_text(asked)]
        return Answer(found, [*notes, *self._notes(session)])

    def gpus(self, text: str | None = None) -> Answer:
        """List the GPUs, or those with ``text`` in a name, with specifications and the cheapest prices in US
        dollars per GPU-hour. Raises JobError if there is none."""
        return Answer(gpu_prices.gpus(self._session(), text))

    def models(self, text: str | None = None) -> Answer:
        """List the models, or those with ``text`` in a name, with parameters in billions and context in
        tokens. Raises JobError if there is none."""
        return Answer(gpu_prices.models(self._session(), text))

    def sql(self, query: str) -> Answer:
        """Return the rows of an SQL query on the published file, which is read-only. Raises QueryError, also
        for two columns of one name, of which a row could keep only one."""
        return Answer(one_query(self._session().connection, query))

    def _asked(self, config: str | Path | None, job: dict[str, Any]) -> tuple[Session, Job]:
        if (config is None) == (job.get("model") is None):
            raise JobError("give either model or config")
        settings: dict[str, Any] = {name: value for name, value in job.items() if name != "model"}
        path = None if config is None else Path(config)
        asked, given, _ = given_job(job.get("model"), path, settings)
        return self._session(given), asked

    def _session(self, given: "OwnModel | None" = None) -> Session:
        """Return a session on the published file; if a config.json is given, its model is added."""
        self._require_open()
        key = None if given is None else given.model_dump_json()
        if key not in self._sessions:
            opened = prices_of(self._home, None, _today(), given)
            self._sessions[key] = Session(self._open.enter_context(opened))
        return self._sessions[key]

    def _require_open(self) -> None:
        if self._is_closed:
            raise GpufareError("these prices are closed: gpufare.open() opens the newest")

    def _notes(self, session: Session) -> Iterator[str]:
        note = age_note(session.connection, self._home, _today())
        if note is not None:
            yield note


def _floats(row: Row) -> Row:
    """Return a row with decimals as floats, by which people can divide."""
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}


def _today() -> date:
    """Return the current day (UTC)."""
    return datetime.now(UTC).date()


def open(home: str | Path | None = None) -> Prices:
    """Open the newest published file; see Prices."""
    return Prices(home)


def _ask_newest(method: Callable[Concatenate[Prices, Asked], Answered]) -> Callable[Asked, Answered]:
    """Turn a method of Prices into a function that gets its answer from the newest published file."""

    @wraps(method)
    def ask(*args: Asked.args, **kwargs: Asked.kwargs) -> Answered:
        with Prices() as prices:
            return method(prices, *args, **kwargs)

    _, *parameters = signature(method).parameters.values()
    ask.__signature__ = signature(method).replace(parameters=parameters)  # type: ignore[attr-defined]
    ask.__doc__ = f"``Prices.{method.__name__}`` on the newest published file."
    return ask


cheapest = _ask_newest(Prices.cheapest)
fit = _ask_newest(Prices.fit)
fits_on = _ask_newest(Prices.fits_on)
compare = _ask_newest(Prices.compare)
prices = _ask_newest(Prices.prices)
gpus = _ask_newest(Prices.gpus)
models = _ask_newest(Prices.models)
sql = _ask_newest(Prices.sql)
explain = _ask_newest(Prices.explain)
history = _ask_newest(Prices.history)
watch = _ask_newest(Prices.watch)
