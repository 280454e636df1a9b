"""Prices are published first, and once more when the plans of every model are computed."""

from datetime import timedelta

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.demo import sample_days
from pipeline.refresh.publishing import publish_plans
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


def test_missing_plans_are_computed_and_published_once(home: Home) -> None:
    assert MODEL not in models_planned(home)
    report = publish_plans(home, DAY, noon(DAY))
    assert report is not None
    assert report.incidents == []
    assert MODEL in models_planned(home)
    assert publish_plans(home, DAY, noon(DAY)) is None


def test_a_refresh_from_the_providers_computes_plans_and_a_replay_does_not(home: Home) -> None:
    assert MODEL not in models_planned(home)
    report = refresh(home, sources=["akash"], environment={})
    assert [each.status for each in report.outcomes] == ["needs_permission"], "nothing is sent"
    assert MODEL in models_planned(home)


def test_a_model_without_plans_is_not_published_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_grid, "compute", lambda _connection, _model: None)
    assert publish_plans(home, DAY, noon(DAY)) is None


def test_a_model_that_cannot_be_planned_keeps_no_other_from_being_published(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_grid, "_MODELS", f"SELECT unnest(['no-such-shape', '{MODEL}']) AS model")
    compute = plan_grid.compute

    def computed(connection: duckdb.DuckDBPyConnection, model: str) -> None:
        if model == "no-such-shape":
            connection.execute("SELECT error('no such shape')")
        compute(connection, model)

    monkeypatch.setattr(plan_grid, "compute", computed)
    assert publish_plans(home, DAY, noon(DAY)) is not None
    assert MODEL in models_planned(home)
    incident = kept_incidents(home)[-1]
    assert incident.kind == "not_planned"
    assert "no-such-shape: " in incident.reason


def test_a_refresh_that_began_later_publishes_the_plans(home: Home) -> None:
    """The older one leaves them in the cache, and says so."""
    assert publish_plans(home, DAY, noon(DAY) - timedelta(seconds=1)) is None
    assert "a refresh that began later has published" in kept_incidents(home)[-1].reason
    assert [each.kind for each in kept_incidents(home)] == ["not_planned"]
    refresh(home, sources=["verda"], pages=str(PAGES), environment={}, now=noon(DAY))
    assert MODEL in models_planned(home)
