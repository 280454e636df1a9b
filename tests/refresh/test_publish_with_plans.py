"""Prices are published first, and once more when the plans of every model are computed."""

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.demo import sample_days
from pipeline.refresh.publishing import publish_with_plans
from pipeline.refresh.refresh import refresh
from pipeline.warehouse import plan_grid
from pipeline.warehouse.query import reader
from tests.homes import PAGES
from tests.scenario import noon

DAY = sample_days(PAGES)[0]
MODEL = "smollm2-135m"


@pytest.fixture
def home(small_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with prices, in which one model more than those of the workloads is to be planned."""
    monkeypatch.setattr(plan_grid, "_MODELS", f"SELECT '{MODEL}' AS model")
    for source in ("ecb", "verda"):
        refresh(small_home, sources=[source], pages=str(PAGES), environment={}, now=noon(DAY))
    return small_home


def models_planned(home: Home) -> set[str]:
    with reader(home.published) as connection:
        return {model for (model,) in connection.execute("SELECT DISTINCT model FROM plan_grid").fetchall()}


def publications(home: Home) -> int:
    """How often a home is published by publish_with_plans."""
    lines: list[str] = []
    publish_with_plans(home, DAY, noon(DAY), lines.append)
    return lines.count("building offers_latest")


def test_missing_plans_are_computed_and_published(home: Home) -> None:
    assert MODEL not in models_planned(home)
    assert publications(home) == 2
    assert MODEL in models_planned(home)
    assert publications(home) == 1


def test_a_refresh_from_the_providers_computes_plans_and_a_replay_does_not(home: Home) -> None:
    assert MODEL not in models_planned(home)
    report = refresh(home, sources=["akash"], environment={})
    assert [each.status for each in report.outcomes] == ["needs_permission"], "nothing is sent"
    assert MODEL in models_planned(home)


def test_a_model_without_plans_is_not_published_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_grid, "compute", lambda _connection, _model: None)
    assert publications(home) == 1


def test_plans_that_cannot_be_computed_are_an_incident(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(connection: duckdb.DuckDBPyConnection, model: str) -> None:
        connection.execute("SELECT error('no such shape')")

    monkeypatch.setattr(plan_grid, "compute", compute)
    before = home.published.stat().st_mtime_ns
    report = publish_with_plans(home, DAY, noon(DAY))
    assert home.published.stat().st_mtime_ns > before
    (incident,) = report.incidents
    assert (incident.kind, incident.day) == ("not_planned", DAY)
    assert "no such shape" in incident.reason
    assert kept_incidents(home)[-1] == incident
