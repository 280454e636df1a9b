"""Reading all of a source's answers: a refused answer does not stop the others, but if no answer gives a row,
the reading fails."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TypeVar

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, ReaderWarning, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.json_objects import FieldAudit

_T = TypeVar("_T")

Answers = Sequence[Answer]
"""The argument of a reader: the answers to one visit's requests."""

Reading = Iterator[Row]
"""The result of ``read``: listings and rejects, then warnings."""

Rows = Iterator[Listing | Reject]
"""The result of a function that is part of a reader."""

Listings = Iterator[Listing]

ReadAnswer = Callable[[Answer, FieldAudit], Rows]
ReadAudited = Callable[[Answers, FieldAudit], Reading]
ReadAnswers = Callable[[Answers, SourceConfig], Reading]


def reader(complaint: str | None = None) -> Callable[[ReadAnswer], ReadAnswers]:
    """Return a decorator that turns a function that reads one answer into a source's ``read``, as
    ``joint_reader`` does."""

    def decorated(read_one: ReadAnswer) -> ReadAnswers:
        @wraps(read_one)
        def read_each(answers: Answers, audit: FieldAudit) -> Reading:
            return (row for answer in answers for row in read_one(answer, audit))

        return joint_reader(complaint)(read_each)

    return decorated


def joint_reader(complaint: str | None = None) -> Callable[[ReadAudited], ReadAnswers]:
    """Return a decorator that turns a function that reads all answers into a source's ``read``.

    ``read`` yields the rows, then the audit's warnings. Raises SourceChangedError with the complaint if no
    answer gave a row; without a complaint, the decorated function itself raises if an answer has no rows.
    """

    def decorated(read_rows: ReadAudited) -> ReadAnswers:
        @wraps(read_rows)
        def read(answers: Answers, config: SourceConfig) -> Reading:
            audit = FieldAudit(config)
            rows = read_rows(answers, audit)
            yield from _at_least_one(rows, f"{config.name}: {complaint}") if complaint else rows
            yield from audit.warnings()

        return read

    return decorated


def _at_least_one(rows: Iterable[Row], complaint: str) -> Reading:
    """Yield the rows. Raises SourceChangedError if every row is a refused answer or a warning."""
    found = False
    for row in rows:
        is_refusal = isinstance(row, Reject) and row.reason is RejectReason.UNREADABLE_ANSWER
        found = found or not (is_refusal or isinstance(row, ReaderWarning))
        yield row
    if not found:
        raise SourceChangedError(complaint)


def each_answer(
    answers: Answers, read: Callable[[Answer], _T]
) -> tuple[list[tuple[Answer, _T]], list[Reject]]:
    """Read independent answers, such as one per region; return each answer with the result of ``read``.

    An answer that ``read`` refuses becomes a reject. Raises SourceChangedError if every answer is refused.
    """
    known: list[tuple[Answer, _T]] = []
    refused: list[Reject] = []
    problem: SourceChangedError | None = None
    for answer in answers:
        try:
            known.append((answer, read(answer)))
        except SourceChangedError as error:
            problem = problem or error
            raw = answer.body[:200].decode(errors="replace")
            refused.append(Reject(RejectReason.UNREADABLE_ANSWER, str(error), raw, answer))
    if problem is not None and not known:
        raise problem
    return known, refused
