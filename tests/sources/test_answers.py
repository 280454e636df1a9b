"""Answers to independent questions: one that is refused stops no other."""

import pytest

from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one, each_answer
from tests.sources.helpers import answer


def length_of(page: Answer) -> int:
    if page.body.startswith(b"bad"):
        raise SourceChangedError(f"{page.text()[:5]} is not a page")
    return len(page.body)


def test_a_refused_answer_is_a_reject_next_to_the_others() -> None:
    pages = [answer("one"), answer("bad 1" + "x" * 300), answer("three")]
    known, refused = each_answer(pages, length_of)
    assert known == [(pages[0], 3), (pages[2], 5)]
    (reject,) = refused
    assert reject.reason is RejectReason.UNREADABLE_ANSWER
    assert reject.detail == "bad 1 is not a page"
    assert reject.raw == "bad 1" + "x" * 195
    assert reject.answer is pages[1]


def test_an_answer_that_is_no_text_is_shown_all_the_same() -> None:
    def refuse(page: Answer) -> int:
        if page.body.startswith(b"\xff"):
            raise SourceChangedError("not text")
        return 0

    _, refused = each_answer([answer(b"\xff\xfe"), answer("good")], refuse)
    assert refused[0].raw == "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


def test_when_every_answer_is_refused_the_source_fails_with_the_first_reason() -> None:
    with pytest.raises(SourceChangedError, match="bad 1 is not a page"):
        each_answer([answer("bad 1"), answer("bad 2")], length_of)
    assert each_answer([], length_of) == ([], [])


def test_no_row_at_all_is_a_failure() -> None:
    assert list(at_least_one([1, 2], "no rows")) == [1, 2]
    with pytest.raises(SourceChangedError, match="no rows"):
        list(at_least_one([], "no rows"))
