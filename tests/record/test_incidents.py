"""Incidents are kept in the journal, and reporting one never stops anything."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.record.incidents import cause_of, kept_incidents, report_incident
from pipeline.record.journal import Journal

AT = datetime(2026, 8, 22, 6, tzinfo=UTC)


def incident(kind: IncidentKind = IncidentKind.DAMAGED_FILE, at: datetime = AT) -> Incident:
    return Incident(
        at=at,
        kind=kind,
        day=date(2026, 8, 21),
        source="acme",
        path="offers/acme/2026-08-21.parquet",
        reason="it is empty\x1b[31m",
        remedy="read again from the archive",
    )


def kept(home: Home) -> list[dict[str, object]]:
    return [json.loads(entry.content) for entry in Journal(home).entries("incident")]


def test_an_incident_is_kept_as_plain_text(tmp_path: Path) -> None:
    report_incident(Home(tmp_path), incident())
    (row,) = kept(Home(tmp_path))
    assert (row["kind"], row["source"], row["day"]) == ("damaged_file", "acme", "2026-08-21")
    assert row["sentence"] == IncidentKind.DAMAGED_FILE.sentence
    assert row["reason"] == "it is empty\ufffd[31m"


def test_incidents_come_back_as_they_were(tmp_path: Path) -> None:
    home = Home(tmp_path)
    report_incident(home, incident())
    later = incident(IncidentKind.UNWRITABLE, AT.replace(hour=7))
    report_incident(home, later)
    assert [each.at for each in kept_incidents(home)] == [AT, later.at]
    kept_later = kept_incidents(home)[-1]
    assert (kept_later.kind, kept_later.day, kept_later.path) == (later.kind, later.day, later.path)


def test_a_cause_is_the_same_as_kept_and_another_for_another_reason(tmp_path: Path) -> None:
    report_incident(Home(tmp_path), incident())
    (found,) = kept_incidents(Home(tmp_path))
    assert cause_of(found) == cause_of(incident())
    assert cause_of(replace(incident(), reason="line 7: no number")) != cause_of(found)


@pytest.mark.parametrize(("kind", "times"), [(IncidentKind.DAMAGED_FILE, 2), (IncidentKind.STRAY_FILE, 1)])
def test_a_cause_that_stays_in_place_is_reported_once(kind: IncidentKind, times: int, tmp_path: Path) -> None:
    for at in (AT, AT.replace(day=23)):
        report_incident(Home(tmp_path), incident(kind, at))
    assert len(kept(Home(tmp_path))) == times


def test_an_incident_that_cannot_be_kept_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "record").write_text("a file where the folder belongs")
    report_incident(Home(tmp_path), incident())
    assert "offers/acme/2026-08-21.parquet: it is empty" in caplog.text
    assert str(tmp_path / "record") in caplog.text
