"""Answers that no reader understands, and readers that break: each costs its source alone, with a reason."""

import re
from datetime import date
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.sources import linode
from tests.sources.helpers import answer, page, read

DAY = date(2026, 8, 22)


def recorded(source: str, home: Home, body: str) -> Outcome:
    """The outcome of a day on which the source gave this answer, archived and read into the record."""
    writer, given = Archive(home.archive).start(source, DAY), answer(body)
    writer.add(Entry(url=given.url, observed_at=given.observed_at, outcome="ok"), given.body)
    return record_day(source_config(source), DAY, [writer.finish()], home)


def test_a_column_that_is_gone_moves_no_price_into_another() -> None:
    text = page("together", "pricing.html")
    for term in ("Pay as you go", "7-30 days", "31-90 days", "91-180 days"):
        without = re.sub(rf"<th(?:(?!</th>).)*{term}(?:(?!</th>).)*</th>", "", text)
        assert without != text
        with pytest.raises(SourceChangedError, match="expected one column"):
            read("together", answer(without))


def test_an_answer_of_another_shape_fails_its_source_with_a_reason(tmp_path: Path) -> None:
    shapes = ("null", "[]", '{"data": [null]}', '{"data": "x"}', '{"data": [{"gpus": {}}]}')
    bodies = [(name, body) for name in ("linode", "oci", "verda", "runpod") for body in shapes]
    bodies += [("ecb", body) for body in ("", "<x>", "{}", "\x00")]
    outcomes = [recorded(name, Home(tmp_path / f"{n}"), body) for n, (name, body) in enumerate(bodies)]
    assert [each for each in outcomes if each.accepted or not (each.error or each.reason)] == []


def test_a_reader_that_breaks_fails_only_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise AttributeError("no \x1b[31m here")

    types = page("linode", "types.json")
    with monkeypatch.context() as patch:
        patch.setattr(linode, "read", breaks)
        outcome = recorded("linode", Home(tmp_path), types)
    assert outcome.error == (
        "the linode reader does not understand the answer (AttributeError: no \ufffd[31m here)"
    )
    assert (outcome.reason, outcome.result) == ("the answer could not be read", "changed")
    assert recorded("linode", Home(tmp_path), types).accepted
