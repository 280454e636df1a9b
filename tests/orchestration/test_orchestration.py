"""Dagster's graph: its shape, its schedules, and the daily job as runs, with sources that fail."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry
from pipeline.definitions import defs
from pipeline.health.source_states import source_states
from pipeline.home.paths import Home
from pipeline.orchestration.failures import canceled_runs, failed_runs
from pipeline.orchestration.keys import MORNING, SOURCE_TAG, offers_key, raw_key, table_key
from pipeline.orchestration.resources import PAGES_VARIABLE, GpufareHome
from pipeline.orchestration.schedules import schedules
from pipeline.orchestration.source_assets import (
    CAPTURE_POOL,
    EXPECTATIONS,
    daily_partitions,
    first_day,
    markdown_of,
    source_assets,
)
from pipeline.orchestration.tables import morning_digest, published_tables
from pipeline.record.incidents import kept_incidents
from pipeline.record.months import Month, rows_of, write_days
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.permissions import disable, enable
from pipeline.warehouse.checks import checks
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, gpufare_process
from tests.pages_server import PagesServer

TODAY = datetime.now(UTC).date()
PAST = date(2026, 8, 22)
NEVER_CAPTURED = date(2026, 8, 5)
TOMORROW = TODAY + timedelta(days=1)
NOTHING_LISTENS = "http://127.0.0.1:9"

MORNING_OF_TODAY = datetime(TODAY.year, TODAY.month, TODAY.day, 6, tzinfo=UTC)

DAYS = dg.DailyPartitionsDefinition(start_date="2026-08-01", timezone="UTC", end_offset=2)
"""Partitions from before the sample pages to tomorrow, on any day."""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def home(small_home: Home) -> Home:
    return small_home


@pytest.fixture(scope="module")
def server() -> Iterator[PagesServer]:
    with PagesServer(PAGES) as pages:
        yield pages


def materialize(
    sources: str, home: Home, url: str, instance: dg.DagsterInstance, day: date = TODAY, *, only: str = ""
) -> dg.ExecuteInProcessResult:
    """One run of sources, whose names have spaces between."""
    names, kinds = sources.split(), [only] if only else ["raw", "offers"]
    key = {"raw": raw_key, "offers": offers_key}
    return dg.materialize(
        [source_assets([configs()[name] for name in names], DAYS)],
        selection=[key[kind](name) for name in names for kind in kinds],
        partition_key=day.isoformat(),
        resources={"home": GpufareHome(root=str(home.root), pages=url)},
        instance=instance,
        raise_on_error=False,
    )


def publish(home: Home, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [published_tables],
        resources={"home": GpufareHome(root=str(home.root))},
        instance=instance,
        raise_on_error=False,
    )


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    return [
        str(event.step_failure_data.user_failure_data or event.step_failure_data.error)
        for event in result.all_events
        if event.is_step_failure
    ]


def metadata(result: dg.ExecuteInProcessResult, key: dg.AssetKey) -> dict[str, object]:
    (event,) = [
        event.materialization
        for event in result.all_events
        if event.event_type_value == "ASSET_MATERIALIZATION" and event.asset_key == key
    ]
    return {name: value.value for name, value in event.metadata.items()}


# The graph.


def test_every_source_has_its_two_assets_and_every_table_is_one() -> None:
    keys = {spec.key for spec in defs.resolve_all_asset_specs()}
    enabled = {name for name, config in configs().items() if config.disabled is None}
    assert {key.path[-1] for key in keys if key.path[0] == "raw"} == enabled
    assert {key.path[-1] for key in keys if key.path[0] in ("offers", "exchange_rates")} == enabled
    assert {table_key("cheapest_gpu_per_workload"), MORNING, dg.AssetKey(["model", "plans_ahead"])} <= keys


def test_the_lineage_runs_from_the_raw_answers_to_the_morning() -> None:
    graph = defs.resolve_asset_graph()
    assert graph.get(offers_key("runpod")).parent_keys == {raw_key("runpod")}
    assert offers_key("runpod") in graph.get(table_key("offers")).parent_keys
    assert table_key("offers") in graph.get(table_key("offers_latest")).parent_keys
    ranking = graph.get_ancestor_asset_keys(table_key("cheapest_gpu_per_workload"))
    assert {table_key("plans"), table_key("offers_latest"), raw_key("runpod")} <= ranking
    assert raw_key("runpod") in graph.get_ancestor_asset_keys(MORNING)


def test_daily_assets_have_a_code_version() -> None:
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    daily = {key for key in specs if key.path[0] in ("raw", "offers", "exchange_rates", "published")}
    assert [key for key in daily if not specs[key].code_version] == []
    assert specs[raw_key("aws")].code_version != specs[raw_key("gcp")].code_version
    assert specs[raw_key("aws")].tags[SOURCE_TAG] == "aws"


def test_a_source_s_prices_are_fresh_for_as_long_as_its_yaml_says() -> None:
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    for config in configs().values():
        if config.disabled is None:
            policy = specs[offers_key(config.name)].freshness_policy
            assert policy.fail_window.to_timedelta() == timedelta(days=config.stale_after_days)
            assert policy.warn_window.to_timedelta() == timedelta(hours=30)
    tables = [key for key in specs if key.path[0] == "published"]
    assert [key for key in tables if specs[key].freshness_policy is None] == []


def test_the_columns_of_a_table_are_those_of_its_comments() -> None:
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    schema = specs[table_key("price_changes")].metadata["dagster/column_schema"]
    (column,) = [column for column in schema.columns if column.name == "change_share"]
    assert (column.type, column.constraints.nullable) == ("DOUBLE", False)
    assert "-0.1 means ten percent cheaper" in column.description


def test_each_file_of_checks_is_a_check_with_its_sentence() -> None:
    specs = {key.name: (key, spec) for key, spec in _check_specs().items()}
    for check in checks():
        key, spec = specs[check.name]
        assert check.sentence in str(spec.description)
        assert key.asset_key.path[0] == "published"
    assert specs["ranks_count_up"][0].asset_key == table_key("cheapest_gpu_per_workload")
    assert specs["prices_do_not_jump"][0].asset_key == table_key("price_changes")


def _check_specs() -> dict[dg.AssetCheckKey, dg.AssetCheckSpec]:
    graph = defs.resolve_asset_graph()
    return {key: graph.get_check_spec(key) for key in graph.asset_check_keys}


def test_the_models_error_is_a_check_of_its_table() -> None:
    checks = {(key.asset_key, key.name) for key in defs.resolve_asset_graph().asset_check_keys}
    assert (table_key("model_accuracy_summary"), "model_errors_do_not_grow") in checks


# The schedules.


def test_the_morning_runs_in_order() -> None:
    repository = defs.get_repository_def()
    times = {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs}
    assert times == {
        "capture": "0 6 * * *",
        "capture_again": "30 6 * * *",
        "publish_tables": "0 7 * * *",
        "morning_digest": "15 7 * * *",
        "plan_ahead": "30 7 * * *",
    }
    # The slowest visit is over before the next capture, and that one before the publishing.
    assert max(config.time_limit_seconds for config in configs().values()) < 30 * 60
    assert {schedule.default_status for schedule in repository.schedule_defs} == {
        dg.DefaultScheduleStatus.RUNNING
    }
    assert {sensor.default_status for sensor in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}


def steps_of(job: str) -> set[str]:
    return {node.name for node in defs.resolve_job_def(job).graph.nodes}


def test_each_part_of_the_morning_is_a_run_of_few_steps() -> None:
    """So that a process starts once for all sources, and the report waits for no plan."""
    assert steps_of("capture") == {"capture_and_read"}
    assert steps_of("morning_digest") == {"morning"}
    assert steps_of("publish_tables") == {"publish", "report"}
    assert steps_of("plan_ahead") == {"model__plans_ahead"}
    graph = defs.resolve_asset_graph()
    assert dg.AssetKey(["model", "plans_ahead"]) not in graph.get_ancestor_asset_keys(dg.AssetKey("report"))


def test_a_run_of_sources_has_a_pool_and_is_not_retried_as_a_whole() -> None:
    job = defs.resolve_job_def("capture")
    (node,) = job.graph.nodes
    assert node.definition.pool == CAPTURE_POOL
    assert job.tags["dagster/max_retries"] == "0"


def evaluate(name: str, at: datetime = MORNING_OF_TODAY) -> dg.SensorDefinition:
    repository = defs.get_repository_def()
    context = dg.build_schedule_context(
        scheduled_execution_time=at, repository_def=repository, resources={"home": GpufareHome()}
    )
    found = {schedule.name: schedule for schedule in schedules()}
    return found[name].evaluate_tick(context)


def asked(tick: dg.SensorDefinition) -> set[str]:
    """The sources of the tick's one run."""
    (request,) = tick.run_requests
    assert request.partition_key == TODAY.isoformat()
    names = {key.path[-1] for key in request.asset_selection}
    assert set(request.asset_selection) == {key(name) for name in names for key in (raw_key, offers_key)}
    return names


def test_at_six_every_source_that_may_be_asked_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRIME_API_KEY", raising=False)
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    enabled = {name for name, config in configs().items() if config.disabled is None}
    first = asked(evaluate("capture"))
    assert {"ecb", "modal"} <= first < enabled
    assert not {"aws", "primeintellect"} & first  # by its terms, and for want of a key
    disable(["modal"], Home(tmp_path / "home"), TODAY)
    assert asked(evaluate("capture")) == first - {"modal"}
    enable(["modal"], Home(tmp_path / "home"), TODAY, {})
    assert asked(evaluate("capture")) == first
    monkeypatch.setenv(PAGES_VARIABLE, NOTHING_LISTENS)
    for config in configs().values():
        for variable in config.key_variables:
            monkeypatch.setenv(variable, "a key")
    assert asked(evaluate("capture")) == enabled, "a replay needs no permission"


def test_tick_names_skipped_sources_and_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRIME_API_KEY", raising=False)
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    three = [source_config(name) for name in ("primeintellect", "modal", "aws")]
    monkeypatch.setattr("pipeline.orchestration.schedules.enabled_sources", lambda: three)
    disable(["modal"], Home(tmp_path / "home"), TODAY)
    tick = evaluate("capture")
    assert not tick.run_requests
    assert "needs a key: set PRIME_API_KEY" in tick.skip_message
    assert f"you disabled it on {TODAY}: gpufare sources enable modal" in tick.skip_message
    assert "reported to forbid" in tick.skip_message


# Sources that fail.


@pytest.fixture
def two_pages(tmp_path: Path) -> Path:
    """Return sample pages of two sources, one of them unreadable."""
    pages = tmp_path / "pages"
    for source in ("runpod", "lambda"):
        shutil.copytree(PAGES / source, pages / source)
    for page in (pages / "lambda").glob("*.html"):
        page.write_text("<html><body>We moved.</body></html>")
    return pages


def test_one_source_failing_stops_neither_the_others_nor_the_publishing(
    two_pages: Path, home: Home, instance: dg.DagsterInstance
) -> None:
    with PagesServer(two_pages) as server:
        result = materialize("lambda runpod", home, server.base_url, instance)
    assert not result.success
    (failure,) = failures(result)
    assert "1 of 2 sources failed: lambda: " in failure
    assert "no pricing row" in failure
    checked = {check.asset_key.path[-1]: check for check in result.get_asset_check_evaluations()}
    broken = checked["lambda"]
    assert (broken.check_name, broken.passed, broken.severity) == (
        EXPECTATIONS,
        False,
        dg.AssetCheckSeverity.ERROR,
    )
    assert "no pricing row" in str(broken.description)
    told = {name: value.value for name, value in broken.metadata.items()}
    assert (told["last good day"], told["page"]) == ("never", "https://lambda.ai/pricing")
    folder = Path(str(told["capture"]))
    assert folder.parent == home.archive / "lambda" / TODAY.isoformat()
    assert (folder / "index.json").exists()
    assert checked["runpod"].passed
    assert checked["runpod"].metadata["last good day"].value == str(TODAY)
    made = {key for event in result.all_events if (key := event.asset_key) and event.is_step_materialization}
    assert made == {raw_key("lambda"), raw_key("runpod"), offers_key("runpod")}
    assert metadata(result, offers_key("runpod"))["dagster/partition_row_count"] > 10
    published = publish(home, instance)
    assert published.success
    assert metadata(published, table_key("offers"))["dagster/row_count"] > 10
    results = {check.check_name: check for check in published.get_asset_check_evaluations()}
    assert results.keys() == {check.name for check in checks()}
    assert not results["every_workload_has_an_answer"].passed or results["prices_do_not_jump"].passed
    with reader(home.published) as connection:
        assert ask(connection, "SELECT DISTINCT source FROM main.offers").rows == [("runpod",)]
        why = ask(connection, "SELECT why FROM main.source_health WHERE source = 'lambda'").rows[0][0]
    assert "no pricing row" in why
    digest = dg.materialize(
        [morning_digest], resources={"home": GpufareHome(root=str(home.root))}, instance=instance
    )
    assert "no pricing row" in str(metadata(digest, MORNING)["Broke"])


def test_a_source_that_failed_is_asked_once_more_alone(
    two_pages: Path, home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAGES_VARIABLE, NOTHING_LISTENS)  # for permission
    assert not evaluate("capture_again").run_requests  # none was asked today
    with PagesServer(two_pages) as server:
        assert not materialize("lambda runpod", home, server.base_url, instance).success
        assert asked(evaluate("capture_again")) == {"lambda"}
    shutil.copytree(PAGES / "lambda", two_pages / "lambda", dirs_exist_ok=True)
    with PagesServer(two_pages) as server:
        again = materialize("lambda", home, server.base_url, instance)
    assert again.success
    assert [check.passed for check in again.get_asset_check_evaluations()] == [True]
    assert not evaluate("capture_again").run_requests
    archive = Archive(home.archive)
    assert [len(archive.captures(name, TODAY)) for name in ("lambda", "runpod")] == [2, 1]


def test_an_error_in_one_source_s_reading_stops_no_other(
    home: Home, server: PagesServer, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record_day_or_break(config, *arguments):
        if config.name == "modal":
            raise ZeroDivisionError("a mistake of ours")
        return record_day(config, *arguments)

    monkeypatch.setattr("pipeline.orchestration.source_assets.record_day", record_day_or_break)
    result = materialize("modal runpod", home, server.base_url, instance)
    assert "modal: ZeroDivisionError: a mistake of ours" in failures(result)[0]
    assert metadata(result, offers_key("runpod"))["dagster/partition_row_count"] > 10
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    why = {row["source"]: row["why"] for row in source_states(home, TODAY).dicts()}
    assert "a mistake of ours" in why["modal"]
    assert [incident["source"] for incident in incidents(home)] == ["modal"]


def broken_url(home: Home) -> str:
    return "not an address"


def blocked_archive(home: Home) -> str:
    shutil.rmtree(home.archive / "modal")
    (home.archive / "modal").write_text("a file where the source's folder belongs")
    return NOTHING_LISTENS


@pytest.mark.parametrize(
    ("breakage", "reason"), [(broken_url, "not an address"), (blocked_archive, "archive/modal")]
)
def test_a_source_that_cannot_even_be_archived_shows_in_every_face(
    breakage, reason: str, home: Home, server: PagesServer, instance: dg.DagsterInstance
) -> None:
    assert materialize("modal", home, server.base_url, instance).success
    broken = materialize("modal", home, breakage(home), instance)
    assert not broken.success
    assert reason in failures(broken)[0]
    assert publish(home, instance).success
    with reader(home.published) as connection:
        health = "SELECT last_error FROM main.source_health WHERE source = 'modal'"
        assert reason in ask(connection, health).rows[0][0]
    shown = gpufare_process("sources", "--format", "jsonl", home=home)
    (row,) = [row for line in shown.stdout.splitlines() if (row := json.loads(line))["source"] == "modal"]
    assert reason in row["why"]


def test_a_check_that_stops_the_publishing_is_shown_with_all_others(
    home: Home, server: PagesServer, instance: dg.DagsterInstance
) -> None:
    assert materialize("runpod", home, server.base_url, instance).success
    month = Month.of("offers", "runpod", TODAY)
    doubled = rows_of(home, month)[TODAY].with_columns((pl.col("usd_per_hour") * 2).cast(pl.Decimal(18, 8)))
    write_days(home, month, {TODAY: doubled})
    result = publish(home, instance)
    assert not result.success
    assert not home.published.exists()
    evaluated = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert evaluated.keys() == {check.name for check in checks()}
    failed = evaluated["price_per_gpu_is_the_whole_price_shared"]
    assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert failed.asset_key == table_key("offers")
    first = failed.metadata["first rows"].value[0]
    assert first["source"] == "runpod"
    assert evaluated["ranks_count_up"].passed


def status_context(
    run: dg.DagsterRun, event: dg.DagsterEvent, instance: dg.DagsterInstance
) -> dg.RunStatusSensorContext:
    return dg.build_run_status_sensor_context("sensor", event, instance, run)


def incidents(home: Home) -> list[dict[str, object]]:
    return [asdict(incident) for incident in kept_incidents(home)]


def unfinished_run(instance: dg.DagsterInstance, day: date) -> dg.DagsterRun:
    keys = [raw_key("modal"), offers_key("modal")]
    job = defs.resolve_job_def("capture").get_subset(asset_selection=set(keys))
    return instance.create_run_for_job(
        job, tags={**job.tags, "dagster/partition": day.isoformat()}, asset_selection=frozenset(keys)
    )


def test_a_killed_run_leaves_an_outcome_and_an_incident(home: Home, instance: dg.DagsterInstance) -> None:
    run = unfinished_run(instance, TODAY)
    event = instance.report_run_failed(run, "Exceeded maximum runtime of 3600 seconds.")
    context = status_context(run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    (row,) = [row for row in source_states(home, TODAY).dicts() if row["source"] == "modal"]
    assert row["state"] == "never_accepted"
    assert "maximum runtime" in row["why"]
    (incident,) = incidents(home)
    assert (incident["kind"], incident["source"], incident["day"]) == ("run_failed", "modal", TODAY)
    assert "maximum runtime" in incident["reason"]
    assert run.run_id in incident["remedy"]


def test_a_canceled_run_leaves_a_trace_too(home: Home, instance: dg.DagsterInstance) -> None:
    run = unfinished_run(instance, TODAY)
    event = instance.report_run_canceled(run, "A person ended it.")
    canceled_runs(status_context(run, event, instance), home=GpufareHome(root=str(home.root)))
    assert "A person ended it." in incidents(home)[0]["reason"]
    assert Records(home).outcomes("modal", TODAY)


def test_a_run_that_left_its_outcome_leaves_no_second_one(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAGES_VARIABLE, NOTHING_LISTENS)
    job = defs.resolve_job_def("capture")
    result = job.execute_in_process(
        partition_key=TODAY.isoformat(),
        instance=instance,
        raise_on_error=False,
        asset_selection=[raw_key("runpod"), offers_key("runpod")],
    )
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    before = Records(home).outcomes("runpod", TODAY)
    assert len(before) == 1
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    assert Records(home).outcomes("runpod", TODAY) == before
    assert incidents(home) == []


def test_a_failed_publishing_is_an_incident(home: Home, instance: dg.DagsterInstance) -> None:
    (home.root / "published").write_text("a file where the folder belongs")
    result = publish(home, instance)
    assert not result.success
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    (incident,) = incidents(home)  # kept by publish_day, or by the sensor: once
    assert incident["kind"] in ("not_published", "run_failed")
    assert incident["source"] is None
    assert "published" in incident["reason"]


def test_text_of_a_page_is_not_markup_in_a_check() -> None:
    told = markdown_of("price '![x](http://evil.example/x.png) <b>1</b>' is no price")
    assert "](" not in told
    assert "://" not in told
    assert "<" not in told
    assert "is no price" in told


# Days other than today.


def test_an_archived_day_is_read_again_without_a_request(
    home: Home, server: PagesServer, instance: dg.DagsterInstance
) -> None:
    assert materialize("runpod", home, server.base_url, instance, PAST).success
    shutil.rmtree(home.record / "offers")
    again = materialize("runpod", home, "", instance, PAST)
    assert again.success
    assert "no request was sent" in str(metadata(again, raw_key("runpod"))["read again"])
    assert metadata(again, offers_key("runpod"))["dagster/partition_row_count"] > 10
    assert len(Archive(home.archive).captures("runpod", PAST)) == 1


def test_on_a_past_day_captured_sources_are_read_and_others_skipped(
    home: Home, server: PagesServer, instance: dg.DagsterInstance
) -> None:
    assert materialize("runpod", home, server.base_url, instance, PAST).success
    result = materialize("modal runpod", home, "", instance, PAST)
    assert result.success
    made = {event.asset_key for event in result.all_events if event.is_step_materialization}
    assert made == {raw_key("runpod"), offers_key("runpod")}
    assert instance.get_materialized_partitions(offers_key("runpod")) == {str(PAST)}
    assert instance.get_materialized_partitions(offers_key("modal")) == set()


def test_no_request_is_made_for_the_demos_home(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    home = Home(tmp_path / "demo")
    home.root.mkdir()
    home.demo.write_text("{}")
    refused = materialize("runpod", home, "", instance, only="raw")
    assert "Unset GPUFARE_HOME" in failures(refused)[0]
    assert list(home.root.iterdir()) == [home.demo]


@pytest.mark.parametrize("only", ["", "offers"])
def test_a_day_that_was_never_captured_is_skipped_with_a_reason(
    only: str, home: Home, instance: dg.DagsterInstance
) -> None:
    result = materialize("runpod", home, "", instance, NEVER_CAPTURED, only=only)
    assert result.success
    assert not [event for event in result.all_events if event.event_type_value == "ASSET_MATERIALIZATION"]
    seen = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type_value == "ASSET_OBSERVATION"
    ]
    assert [each.asset_key for each in seen] == [raw_key("runpod"), offers_key("runpod")][bool(only) :]
    assert all(str(NEVER_CAPTURED) in each.metadata["skipped"].value for each in seen)
    assert Records(home).outcome_days() == []


def test_a_future_day_fails_plainly(home: Home, instance: dg.DagsterInstance) -> None:
    result = materialize("runpod", home, "", instance, TOMORROW)
    assert not result.success
    assert f"{TOMORROW} is in the future" in failures(result)[0]
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    assert Records(home).outcome_days() == []  # no outcome of a day that has not begun


def test_the_days_begin_at_the_first_archived_one(tmp_path: Path) -> None:
    home = Home(tmp_path / "nowhere")
    assert first_day(home, TODAY) == TODAY
    for source, day in (("aws", "2026-08-24"), ("runpod", "2026-08-23"), ("gcp", "2962-08-22")):
        (home.archive / source / day).mkdir(parents=True)
    (home.archive / "runpod" / "notes").mkdir()
    assert first_day(home, TODAY) == date(2026, 8, 23)
    keys = daily_partitions(home).get_partition_keys()
    assert (keys[0], keys[-1]) == ("2026-08-23", TODAY.isoformat())
    shutil.rmtree(home.archive)
    home.archive.write_text("not a folder")
    assert first_day(home, TODAY) == TODAY


# Sample pages.


def test_a_schedules_run_takes_sample_pages_from_a_replay_server(
    server: PagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """With the variable, and with the address in the run's configuration."""
    job = defs.resolve_job_def("capture")
    modal = {"asset_selection": [raw_key("modal"), offers_key("modal")], "instance": instance}
    by_configuration = {"resources": {"home": {"config": {"pages": server.base_url}}}}
    (request,) = evaluate("capture").run_requests
    first = job.execute_in_process(run_config=by_configuration, partition_key=request.partition_key, **modal)
    assert first.success
    monkeypatch.setenv(PAGES_VARIABLE, server.base_url)
    second = job.execute_in_process(partition_key=request.partition_key, **modal)
    assert second.success
    captures = Archive(tmp_path / "home" / "archive").captures("modal", TODAY)
    assert [capture.replayed_from for capture in captures] == [server.base_url] * 2


def test_sample_pages_are_not_filed_among_live_prices(
    home: Home, server: PagesServer, instance: dg.DagsterInstance
) -> None:
    writer = Archive(home.archive).start("runpod", TODAY)
    writer.add(Entry(url="https://api.runpod.io/graphql", outcome=OutcomeCode.OK), b"{}")
    live = writer.finish("captured")
    result = materialize("runpod", home, server.base_url, instance)
    assert not result.success
    assert "has live prices" in failures(result)[0]
    assert Archive(home.archive).captures("runpod", TODAY) == [live]
