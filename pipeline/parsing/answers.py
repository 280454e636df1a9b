"""The answers of a source together: one that is refused stops no other, but nothing at all is a failure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TypeVar

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.json_objects import FieldAudit

_T = TypeVar("_T")

Answers = Sequence[Answer]
"""What a reader is given: the answers to one visit's requests."""

Reading = Iterator[Row]
"""What ``read`` yields: listings, rejects, and at the end warnings."""

Rows = Iterator[Listing | Reject]
"""What a part of a reader yields."""

Listings = Iterator[Listing]

ReadAnswer = Callable[[Answer, FieldAudit], Rows]
ReadAnswers = Callable[[Answers, SourceConfig], Reading]


def reader(complaint: str | None = None) -> Callable[[ReadAnswer], ReadAnswers]:
    """Make a source's ``read`` of a function that reads one of its answers.

    It yields each answer's rows and then the audit's warnings. Raises SourceChangedError with the complaint
    when no answer has a row; without a complaint, the function itself raises for an answer without rows.
    """

    def read_all(read_one: ReadAnswer) -> ReadAnswers:
        @wraps(read_one)
        def read(answers: Answers, config: SourceConfig) -> Reading:
            audit = FieldAudit(config)
            rows = (row for answer in answers for row in read_one(answer, audit))
            yield from at_least_one(rows, f"{config.name}: {complaint}") if complaint else rows
            yield from audit.warnings()

        return read

    return read_all


def at_least_one(rows: Iterable[_T], complaint: str) -> Iterator[_T]:
    """The rows as they come. Raises SourceChangedError with the complaint when there was none."""
    found = False
    for row in rows:
        found = True
        yield row
    if not found:
        raise SourceChangedError(complaint)


def each_answer(
    answers: Answers, read: Callable[[Answer], _T]
) -> tuple[list[tuple[Answer, _T]], list[Reject]]:
    """What ``read`` makes of answers to independent questions, such as one per region.

    One that it refuses becomes a reject. Raises SourceChangedError when it refuses all.
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
