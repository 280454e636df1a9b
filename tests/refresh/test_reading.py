"""Answers are read in a process that can be stopped: what it returns, and what becomes of a source whose page
takes too much time or memory, or ends the process."""

import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.request import Entry
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh import reading
from pipeline.refresh.ingest import record_day
from pipeline.refresh.reading import ReadingStoppedError, read_answers, read_rates, within_limits
from pipeline.sources import linode
from tests.sources.helpers import RATES, answer, page, read_sample, sample_answers

DAY = date(2026, 8, 22)
LAMBDA = source_config("lambda")
TABLE = answer("<html><table>" + "<tr><td>$1" * 100_000 + "</table></html>")


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading may take a fiftieth of a second per page."""
    monkeypatch.setattr(reading, "THRESHOLDS", THRESHOLDS.model_copy(update={"read_seconds_per_page": 0.02}))


def archived(home: Home, source: str, given: Answer) -> Outcome:
    """Archive an answer and read it into the record, as the daily job does it."""
    writer = Archive(home.archive).start(source, DAY)
    writer.add(Entry(url=given.url, observed_at=given.observed_at, outcome="ok"), given.body)
    return record_day(source_config(source), DAY, [writer.finish()], home)


def process_id() -> int:
    return reading._process()._process.pid


def test_the_process_returns_what_the_reader_returns_and_serves_all_sources() -> None:
    assert within_limits(read_answers, sample_answers("lambda"), LAMBDA, RATES) == read_sample("lambda")
    serving = process_id()
    rates = within_limits(read_rates, sample_answers("ecb"), source_config("ecb"))
    assert rates == read_rates(sample_answers("ecb"), source_config("ecb"))
    with pytest.raises(SourceChangedError, match=r"^https://prices.example/list: "):
        within_limits(read_answers, [answer("<html></html>")], LAMBDA)
    assert process_id() == serving


def test_the_process_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNPOD_API_KEY", "rpa_secret")
    reading._process().end()
    environment = Path(f"/proc/{process_id()}/environ")
    if not environment.exists():
        pytest.skip("this system does not show the environment of a process")
    within_limits(read_rates, sample_answers("ecb"), source_config("ecb"))
    assert b"rpa_secret" not in environment.read_bytes()


@pytest.mark.usefixtures("limited")
def test_a_reading_that_takes_too_long_fails_only_its_source(tmp_path: Path) -> None:
    home = Home(tmp_path)
    stopped = archived(home, "lambda", TABLE)
    error = (
        "reading an answer (1.0 MB) of lambda took more than 0.02 s and was stopped "
        "(read_seconds_per_page; the limits are in catalog/gate_thresholds.csv)"
    )
    assert (stopped.accepted, stopped.result, stopped.error) == (False, "refused_by_us", error)
    assert stopped.reason == "the answer could not be read within the limits"
    assert Records(home).outcomes("lambda")[0]["error"] == error


def test_the_reading_after_a_stopped_one_is_whole(tmp_path: Path, limited: None) -> None:
    """The time counts per page and, in all, per source; the limits on a source hold for many pages, too."""
    with pytest.raises(ReadingStoppedError, match=r"^reading 3 answers \(3.0 MB\) .* took more than 0.06 s"):
        within_limits(read_answers, 3 * [TABLE], LAMBDA)
    reading.THRESHOLDS = THRESHOLDS  # put back by the fixture
    assert archived(Home(tmp_path), "linode", answer(page("linode", "types.json"))).rows > 0
    reading.THRESHOLDS = THRESHOLDS.model_copy(update={"read_seconds_per_source": 0.03})
    with pytest.raises(ReadingStoppedError, match=r"^reading 3 answers .* took more than 0.03 s"):
        within_limits(read_answers, 3 * [TABLE], LAMBDA)


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="this system does not limit memory")
def test_a_reading_that_takes_too_much_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "THRESHOLDS", THRESHOLDS.model_copy(update={"read_memory_mib": 200}))
    reading._process().end()
    with pytest.raises(ReadingStoppedError, match="took more than 200 MiB of memory and was stopped"):
        within_limits(read_answers, [TABLE], LAMBDA)
    reading._process().end()


def test_a_process_that_dies_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a reading without a trace; during one, the source fails."""
    ecb = source_config("ecb")
    killed = reading._process()._process
    killed.kill()
    killed.wait()
    assert within_limits(read_rates, sample_answers("ecb"), ecb).usd_per_unit
    during = reading._process()._process
    assert during.pid != killed.pid
    monkeypatch.setattr(during, "poll", lambda: None)  # as if it were still alive when the reading begins
    during.kill()
    with pytest.raises(ReadingStoppedError, match=r" of ecb ended its process \(exit status -9\)$"):
        within_limits(read_rates, sample_answers("ecb"), ecb)
    monkeypatch.undo()
    assert within_limits(read_rates, sample_answers("ecb"), ecb).usd_per_unit


def test_a_reader_that_breaks_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise AttributeError("no \x1b[31m here")

    monkeypatch.setattr(linode, "read", breaks)
    given = replace(answer(page("linode", "types.json")), url="https://api.linode.com/v4/linode/types")
    error = r"^the linode reader does not understand the answer \(AttributeError: no \ufffd\[31m here\)$"
    with pytest.raises(SourceChangedError, match=error):
        read_answers([given], source_config("linode"))
