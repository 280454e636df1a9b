"""The frame around a reader, and answers to independent questions: one that is refused stops no other."""

from collections.abc import Iterator

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Listing, ReaderWarning, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import each_answer, joint_reader, reader
from pipeline.parsing.json_objects import FieldAudit
from tests.sources.helpers import answer

LINODE = source_config("linode")


def rows_of(page: Answer, audit: FieldAudit) -> Iterator[Listing | Reject]:
    """A reject for each item of a list."""
    for item in audit.items(page, "data"):
        yield Reject(RejectReason.NOT_OFFERED, item.text("label"), item.raw, page)


def test_a_reader_gives_every_answers_rows_and_then_one_warning_per_field() -> None:
    pages = [answer({"data": [{"label": label, "colour": "red"}]}) for label in ("a", "b")]
    first, second, *warnings = reader("no row")(rows_of)(pages, LINODE)
    assert [row.detail for row in (first, second) if isinstance(row, Reject)] == ["a", "b"]
    assert warnings == [ReaderWarning("new field 'colour', which is not read")]


def test_a_reader_without_a_row_fails_with_its_complaint_unless_it_has_none() -> None:
    with pytest.raises(SourceChangedError, match="linode: no row"):
        list(reader("no row")(rows_of)([answer({"data": []})], LINODE))
    with pytest.raises(SourceChangedError, match="linode: no row"):
        list(reader("no row")(rows_of)([], LINODE))
    assert list(reader()(rows_of)([answer({"data": []})], LINODE)) == []


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


def test_an_answer_that_is_not_text_is_still_shown() -> None:
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


def test_a_warning_and_a_refused_answer_are_not_rows() -> None:
    page = answer("[]")
    others = [ReaderWarning("odd"), Reject(RejectReason.UNREADABLE_ANSWER, "bad", "", page)]
    row = Reject(RejectReason.NOT_OFFERED, "sold out", "", page)
    with pytest.raises(SourceChangedError, match="linode: no row"):
        list(joint_reader("no row")(lambda answers, audit: iter(others))([page], LINODE))
    read = joint_reader("no row")(lambda answers, audit: iter([*others, row]))
    assert list(read([page], LINODE)) == [*others, row]
