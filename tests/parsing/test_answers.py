"""The frame around a reader, and answers to independent questions: one that is refused stops no other."""

from collections.abc import Iterator

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Listing, ReaderWarning, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import each_answer, joint_reader, reader
from pipeline.parsing.json_objects import FieldAudit
from tests.parsing.cases import outcome
from tests.sources.helpers import answer

LINODE = source_config("linode")
PAGE = answer("[]")


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
    for pages in ([answer({"data": []})], []):
        read = reader("no row")(rows_of)
        assert outcome(lambda read=read, pages=pages: list(read(pages, LINODE))) == "linode: no row"
    assert list(reader()(rows_of)([answer({"data": []})], LINODE)) == []


def test_a_warning_and_a_refused_answer_are_not_rows() -> None:
    others: list[Row] = [ReaderWarning("odd"), Reject(RejectReason.UNREADABLE_ANSWER, "bad", "", PAGE)]
    row = Reject(RejectReason.NOT_OFFERED, "sold out", "", PAGE)
    with pytest.raises(SourceChangedError, match="linode: no row"):
        list(joint_reader("no row")(lambda answers, audit: iter(others))([PAGE], LINODE))
    for rows in ([*others, row], [row, *others]):
        read = joint_reader("no row")(lambda answers, audit, rows=rows: iter(rows))
        assert list(read([PAGE], LINODE)) == rows


def length_of(page: Answer) -> int:
    if page.body.startswith((b"bad", b"\xff")):
        raise SourceChangedError(f"{page.body[:5]!r} is not a page")
    return len(page.body)


def test_a_refused_answer_is_a_reject_next_to_the_others() -> None:
    pages = [answer("one"), answer("bad 1" + "x" * 300), answer("three"), answer(b"\xff\xfe")]
    known, refused = each_answer(pages, length_of)
    assert known == [(pages[0], 3), (pages[2], 5)]
    reason = RejectReason.UNREADABLE_ANSWER
    assert refused == [
        Reject(reason, "b'bad 1' is not a page", "bad 1" + "x" * 195, pages[1]),
        Reject(reason, "b'\\xff\\xfe' is not a page", "\N{REPLACEMENT CHARACTER}" * 2, pages[3]),
    ]


def test_when_every_answer_is_refused_the_source_fails_with_the_first_reason() -> None:
    with pytest.raises(SourceChangedError, match="bad 1' is not a page"):
        each_answer([answer("bad 1"), answer("bad 2")], length_of)
    assert each_answer([], length_of) == ([], [])
