"""Dagster's graph: its shape, and the daily job as runs, one source failing."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from pipeline.capture.replay import PagesServer
from pipeline.catalog.source_config import configs
from pipeline.contracts.paths import Home
from pipeline.definitions import defs
from pipeline.orchestration.assets import (
    model_does_not_get_worse,
    offers_key,
    published_tables,
    raw_key,
    source_assets,
    table_key,
)
from pipeline.orchestration.resources import GpufareHome
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES

DAY = "2026-08-22"


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def materialize(source: str, home: Home, url: str, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        source_assets,
        selection=[raw_key(source), offers_key(source)],
        partition_key=DAY,
        resources={"home": GpufareHome(root=str(home.root), replay_url=url)},
        instance=instance,
        raise_on_error=False,
    )


def test_every_source_has_its_two_assets_and_every_table_is_one() -> None:
    keys = {spec.key for spec in defs.resolve_all_asset_specs()}
    enabled = {name for name, config in configs().items() if config.disabled is None}
    assert {key.path[-1] for key in keys if key.path[0] == "raw"} == enabled
    assert {key.path[-1] for key in keys if key.path[0] in ("offers", "exchange_rates")} == enabled
    assert table_key("cheapest_gpu_per_workload") in keys
    assert dg.AssetKey(["model", "calibration"]) in keys


def test_the_lineage_runs_from_the_raw_answers_to_the_ranking() -> None:
    graph = defs.resolve_asset_graph()
    assert graph.get(offers_key("runpod")).parent_keys == {raw_key("runpod")}
    assert offers_key("runpod") in graph.get(table_key("offers")).parent_keys
    assert table_key("offers") in graph.get(table_key("offers_latest")).parent_keys
    ranking = graph.get_ancestor_asset_keys(table_key("cheapest_gpu_per_workload"))
    assert {table_key("plans"), table_key("offers_latest"), raw_key("runpod")} <= ranking


def test_the_schedules_keep_their_hours() -> None:
    repository = defs.get_repository_def()
    crons = {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs}
    assert crons == {
        "exchange_rates_daily": "30 5 * * *",
        "sources_daily": "0 6 * * *",
        "publish_daily": "0 7 * * *",
    }


def test_the_daily_schedule_asks_for_one_run_per_source_with_todays_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TENSORDOCK_API_KEY", raising=False)
    repository = defs.get_repository_def()
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 8, 22, 6, tzinfo=UTC), repository_def=repository
    )
    requests = repository.get_schedule_def("sources_daily").evaluate_tick(context).run_requests
    assert requests is not None
    names = {request.tags["source"] for request in requests}
    assert {request.partition_key for request in requests} == {DAY}
    assert len(names) == len(requests)
    assert {"runpod", "aws"} <= names
    assert "tensordock" not in names  # without its key there is nothing to ask
    assert "ecb" not in names  # the exchange rates have a schedule of their own, before


def test_one_source_failing_stops_neither_the_others_nor_the_publishing(
    tmp_path: Path, sample_home: Home, instance: dg.DagsterInstance
) -> None:
    home, pages = Home(tmp_path / "home"), tmp_path / "pages"
    shutil.copytree(sample_home.cache, home.cache)
    for source in ("runpod", "lambda"):
        shutil.copytree(PAGES / source, pages / source)
    (pages / "lambda" / "pricing.html").write_text("<html><body>We moved.</body></html>")
    with PagesServer(pages) as server:
        broken = materialize("lambda", home, server.base_url, instance)
        good = materialize("runpod", home, server.base_url, instance)
    assert not broken.success
    assert good.success
    published = dg.materialize(
        [published_tables], resources={"home": GpufareHome(root=str(home.root))}, instance=instance
    )
    assert published.success
    with reader(home.published) as connection:
        assert ask(connection, "SELECT DISTINCT source FROM main.offers").rows == [("runpod",)]
        why = ask(connection, "SELECT why FROM main.source_health WHERE source = 'lambda'").rows[0][0]
    assert "no pricing row" in why


def test_the_models_error_is_a_check_of_its_table() -> None:
    checks = {(key.asset_key, key.name) for key in defs.resolve_asset_graph().asset_check_keys}
    assert (table_key("model_accuracy"), "model_does_not_get_worse") in checks
    assert model_does_not_get_worse().passed


def test_a_past_partition_is_not_captured(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    result = materialize("runpod", Home(tmp_path / "home"), "", instance)
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "never filed under another day" in str(failure.step_failure_data.user_failure_data)
