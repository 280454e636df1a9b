"""Incidents are kept as files, and reporting one never stops anything."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident

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
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(home.incidents.iterdir())]


def test_an_incident_is_kept_as_plain_text(tmp_path: Path) -> None:
    report_incident(Home(tmp_path), incident())
    (row,) = kept(Home(tmp_path))
    assert (row["kind"], row["source"], row["day"]) == ("damaged_file", "acme", "2026-08-21")
    assert row["sentence"] == IncidentKind.DAMAGED_FILE.sentence
    assert row["reason"] == "it is empty\ufffd[31m"


@pytest.mark.parametrize(("kind", "times"), [(IncidentKind.DAMAGED_FILE, 2), (IncidentKind.STRAY_FILE, 1)])
def test_a_cause_that_stays_in_place_is_reported_once(kind: IncidentKind, times: int, tmp_path: Path) -> None:
    for at in (AT, AT.replace(day=23)):
        report_incident(Home(tmp_path), incident(kind, at))
    assert len(kept(Home(tmp_path))) == times


def test_an_incident_that_cannot_be_kept_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "incidents").write_text("a file where the folder belongs")
    report_incident(Home(tmp_path), incident())
    assert "offers/acme/2026-08-21.parquet: it is empty" in caplog.text
    assert str(tmp_path / "incidents") in caplog.text
