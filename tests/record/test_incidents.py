"""Incidents are kept in the journal, and reporting one never stops anything."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.record.incidents import MAX_TEXT_CHARACTERS, cause_of, kept_incidents, report_incident
from pipeline.record.journal import Entry, Journal

AT, PATH = datetime(2026, 8, 22, 23, tzinfo=UTC), "offers/acme"


def incident(kind: IncidentKind = IncidentKind.DAMAGED_FILE, **changes: Any) -> Incident:
    path, reason, remedy = PATH + "\x1b/x.parquet", "it is empty\x1b[31m", "read again\x07 from the archive"
    facts: dict[str, Any] = {"at": AT, "day": date(2026, 8, 21), "source": "acme", "path": path}
    return Incident(kind=kind, **facts | {"reason": reason, "remedy": remedy} | changes)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def entries(home: Home) -> list[Entry]:
    return Journal(home).entries("incident")


def test_an_incident_is_kept_as_plain_text(home: Home) -> None:
    assert report_incident(home, incident())
    (entry,) = entries(home)
    assert (entry.source, entry.day, len(entry.name.split()[0])) == ("acme", date(2026, 8, 22), 12)
    assert json.loads(entry.content) == {
        "noticed_at": "2026-08-22 23:00:00+00:00",
        "at": "2026-08-22 23:00:00+00:00",
        "kind": "damaged_file",
        "sentence": IncidentKind.DAMAGED_FILE.sentence,
        "day": "2026-08-21",
        "source": "acme",
        "path": f"{PATH}\ufffd/x.parquet",
        "reason": "it is empty\ufffd[31m",
        "remedy": "read again\ufffd from the archive",
    }
    longest = "x" * MAX_TEXT_CHARACTERS
    texts = {"reason": longest + "y", "remedy": longest + "y"}
    report_incident(home, incident(**texts, source=None, path=None, day=None))
    kept = json.loads(entries(home)[0].content)
    expected = (longest, longest, None, "")
    assert (kept["reason"], kept["remedy"], kept["path"], entries(home)[0].source) == expected


def test_incidents_come_back_as_they_were_oldest_first(home: Home) -> None:
    assert kept_incidents(home) == []
    plain = {"path": "a", "reason": "it is empty", "remedy": "read again"}
    at = AT + timedelta(hours=2)
    later = incident(IncidentKind.UNWRITABLE, at=at, day=None, source=None, **plain)
    first = incident(**plain, source="zebra")
    for each in (later, first):
        report_incident(home, each)
    assert kept_incidents(home) == [first, later]


def test_a_cause_is_the_same_as_kept_and_another_for_each_of_its_facts(home: Home) -> None:
    report_incident(home, incident())
    (found,) = kept_incidents(home)
    assert cause_of(found) == cause_of(incident())
    changes: list[dict[str, Any]] = [{"kind": IncidentKind.STRAY_FILE}, {"path": None}, {"source": "other"}]
    changes += [{"day": None}, {"reason": "line 7: no number"}]
    others = {cause_of(replace(incident(), **change)) for change in changes}
    assert len({cause_of(found), *others}) == len(changes) + 1
    assert cause_of(replace(incident(), remedy="another", at=AT + timedelta(days=1))) == cause_of(found)
    long = "x" * MAX_TEXT_CHARACTERS
    assert cause_of(incident(reason=long + "y")) == cause_of(incident(reason=long))


def test_a_cause_that_stays_in_place_is_kept_once(home: Home) -> None:
    later = {"at": AT + timedelta(days=1)}
    lasting = IncidentKind.STRAY_FILE
    assert [report_incident(home, incident(lasting, **each)) for each in ({}, later)] == [True, False]
    assert report_incident(home, incident(lasting, reason="another"))
    assert [report_incident(home, incident(**each)) for each in ({}, later)] == [True, True]
    assert len(entries(home)) == 4
