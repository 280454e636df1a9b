"""The answers of a source together: one that is refused stops no other, but nothing at all is a failure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pipeline.contracts.listing import Answer, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason

T = TypeVar("T")


def at_least_one(rows: Iterable[T], complaint: str) -> Iterator[T]:
    """The rows as they come. Raises SourceChangedError with the complaint when there was none."""
    found = False
    for row in rows:
        found = True
        yield row
    if not found:
        raise SourceChangedError(complaint)


def each_answer(
    answers: Sequence[Answer], read: Callable[[Answer], T]
) -> tuple[list[tuple[Answer, T]], list[Reject]]:
    """What ``read`` makes of answers to independent questions, such as one per region.

    One that it refuses becomes a reject. Raises SourceChangedError when it refuses all.
    """
    known: list[tuple[Answer, T]] = []
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
