"""Dagster's graph: its shape, its schedules, and the daily job as runs, with sources that fail."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import PagesServer
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry
from pipeline.definitions import defs
from pipeline.health.source_states import source_states
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.evidence import markdown_of
from pipeline.orchestration.failures import canceled_runs, failed_runs
from pipeline.orchestration.keys import MORNING, SOURCE_TAG, offers_key, raw_key, table_key
from pipeline.orchestration.morning import HEALTHY, morning_digest, sources_are_healthy
from pipeline.orchestration.partitions import daily_partitions, first_day
from pipeline.orchestration.resources import REPLAY_VARIABLE, GpufareHome
from pipeline.orchestration.schedules import HOURLY_VARIABLE, crons, schedules
from pipeline.orchestration.source_assets import EXPECTATIONS, source_assets
from pipeline.orchestration.tables import model_does_not_get_worse, published_tables
from pipeline.refresh.permissions import disable, enable
from pipeline.warehouse.checks import checks
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, gpufare_process

TODAY = datetime.now(UTC).date()
PAST = date(2026, 8, 22)
NEVER_CAPTURED = date(2026, 8, 5)
TOMORROW = TODAY + timedelta(days=1)
NOTHING_LISTENS = "http://127.0.0.1:9"

DAYS = dg.DailyPartitionsDefinition(start_date="2026-08-01", timezone="UTC", end_offset=2)
"""From before the sample pages to tomorrow, whatever day it is."""


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
    source: str, home: Home, url: str, instance: dg.DagsterInstance, day: date = TODAY, *, only: str = ""
) -> dg.ExecuteInProcessResult:
    chosen = {"raw": raw_key(source), "offers": offers_key(source)}
    return dg.materialize(
        source_assets(configs()[source], DAYS),
        selection=[chosen[only]] if only else list(chosen.values()),
        partition_key=day.isoformat(),
        resources={"home": GpufareHome(root=str(home.root), replay_url=url)},
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
    assert {table_key("cheapest_gpu_per_workload"), MORNING, dg.AssetKey(["model", "calibration"])} <= keys
    assert dg.AssetKey(["model", "plans_ahead"]) in keys


def test_the_lineage_runs_from_the_raw_answers_to_the_morning() -> None:
    graph = defs.resolve_asset_graph()
    assert graph.get(offers_key("runpod")).parent_keys == {raw_key("runpod")}
    assert offers_key("runpod") in graph.get(table_key("offers")).parent_keys
    assert table_key("offers") in graph.get(table_key("offers_latest")).parent_keys
    ranking = graph.get_ancestor_asset_keys(table_key("cheapest_gpu_per_workload"))
    assert {table_key("plans"), table_key("offers_latest"), raw_key("runpod")} <= ranking
    assert raw_key("runpod") in graph.get_ancestor_asset_keys(MORNING)


def test_every_asset_has_an_owner_and_what_changes_daily_a_version_of_its_code() -> None:
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    assert [key for key, spec in specs.items() if not spec.owners] == []
    daily = {key for key in specs if key.path[0] in ("raw", "offers", "exchange_rates", "published")}
    assert [key for key in daily if not specs[key].code_version] == []
    assert specs[raw_key("aws")].code_version != specs[raw_key("gcp")].code_version
    assert specs[raw_key("aws")].tags[SOURCE_TAG] == "aws"
    assert specs[table_key("gpus")].owners != specs[table_key("offers")].owners
    fresh = [key for key in daily if key.path[0] != "raw"]
    assert [key for key in fresh if specs[key].freshness_policy is None] == []


def test_the_columns_of_a_table_are_those_of_its_comments() -> None:
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    schema = specs[table_key("price_changes")].metadata["dagster/column_schema"]
    (column,) = [column for column in schema.columns if column.name == "change_share"]
    assert (column.type, column.constraints.nullable) == ("DOUBLE", False)
    assert "-0.1 is ten percent cheaper" in column.description


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
    assert (table_key("model_accuracy"), "model_does_not_get_worse") in checks
    assert model_does_not_get_worse().passed


# The schedules.


def test_each_source_has_its_own_job_between_the_rates_and_the_publishing() -> None:
    repository = defs.get_repository_def()
    times = {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs}
    captured = {name.removeprefix("capture_"): cron for name, cron in times.items() if "capture_" in name}
    assert captured.keys() == {name for name, config in configs().items() if config.disabled is None}
    assert captured.pop("ecb") == "30 5 * * *"
    minutes = [int(cron.removesuffix(" 6 * * *")) for cron in captured.values()]
    assert (min(minutes), max(minutes)) == (0, 50)
    assert len(set(minutes)) == len(minutes)  # no two at once
    latest = max(
        int(cron.split()[0]) * 60 + configs()[name].time_limit_seconds for name, cron in captured.items()
    )
    assert latest < 60 * 60  # every visit is over before the publishing
    assert times["publish_tables"] == "0 7 * * *"
    assert times["morning_digest"] == "15 7 * * *"
    assert {schedule.default_status for schedule in repository.schedule_defs} == {
        dg.DefaultScheduleStatus.RUNNING
    }
    assert {sensor.default_status for sensor in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}


def evaluate(name: str, at: datetime) -> dg.SensorDefinition:
    repository = defs.get_repository_def()
    context = dg.build_schedule_context(
        scheduled_execution_time=at, repository_def=repository, resources={"home": GpufareHome()}
    )
    return repository.get_schedule_def(name).evaluate_tick(context)


def test_a_schedule_asks_for_todays_partition_of_its_source() -> None:
    tick = evaluate("capture_modal", datetime(TODAY.year, TODAY.month, TODAY.day, 6, 28, tzinfo=UTC))
    (request,) = tick.run_requests
    assert request.partition_key == TODAY.isoformat()
    job = defs.resolve_job_def("capture_modal")
    assert set(job.asset_layer.executable_asset_keys) == {raw_key("modal"), offers_key("modal")}
    assert job.tags[SOURCE_TAG] == "modal"


def test_a_source_without_its_key_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIME_API_KEY", raising=False)
    tick = evaluate("capture_primeintellect", datetime.now(UTC))
    assert not tick.run_requests
    assert "PRIME_API_KEY" in tick.skip_message


def test_a_source_that_is_off_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.delenv(REPLAY_VARIABLE, raising=False)
    moment = datetime(TODAY.year, TODAY.month, TODAY.day, 6, 28, tzinfo=UTC)
    for name in ("crusoe", "modal"):
        disable([name], Home(tmp_path), TODAY)
        tick = evaluate(f"capture_{name}", moment)
        assert not tick.run_requests
        assert f"is off: you disabled it on {TODAY}: gpufare sources enable {name}" in tick.skip_message
        enable([name], Home(tmp_path), TODAY, {})
        assert evaluate(f"capture_{name}", moment).run_requests
    assert "reported to forbid" in evaluate("capture_aws", moment).skip_message
    monkeypatch.setenv(REPLAY_VARIABLE, "http://127.0.0.1:1")
    assert evaluate("capture_aws", moment).run_requests, "a replay needs no permission"


def test_named_sources_are_captured_and_published_every_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    daily = crons()
    monkeypatch.setenv(HOURLY_VARIABLE, "vast, runpod")
    hourly = crons()
    assert {name for name in hourly if hourly[name] != daily[name]} == {"vast", "runpod"}
    assert hourly["runpod"] == f"{daily['runpod'].split()[0]} * * * *"
    times = {schedule.name: schedule.cron_schedule for schedule in schedules()}
    assert times["publish_tables"] == "0 * * * *"
    assert times["morning_digest"] == "15 7 * * *"
    monkeypatch.setenv(HOURLY_VARIABLE, "vast,runpot")
    with pytest.raises(GpufareError, match=rf"{HOURLY_VARIABLE}.*runpot"):
        crons()


# Sources that fail.


def test_one_source_failing_stops_neither_the_others_nor_the_publishing(
    tmp_path: Path, home: Home, instance: dg.DagsterInstance
) -> None:
    pages = tmp_path / "pages"
    for source in ("runpod", "lambda"):
        shutil.copytree(PAGES / source, pages / source)
    for page in (pages / "lambda").glob("*.html"):
        page.write_text("<html><body>We moved.</body></html>")
    with PagesServer(pages) as server:
        broken = materialize("lambda", home, server.base_url, instance)
        good = materialize("runpod", home, server.base_url, instance)
    assert not broken.success
    (check,) = broken.get_asset_check_evaluations()
    assert (check.check_name, check.passed, check.severity) == (
        EXPECTATIONS,
        False,
        dg.AssetCheckSeverity.ERROR,
    )
    assert "no pricing row" in str(check.description)
    assert good.success
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
    states_as_checks(home, instance)


def states_as_checks(home: Home, instance: dg.DagsterInstance) -> None:
    """What the morning says of the two sources above."""
    result = dg.materialize(
        [morning_digest, sources_are_healthy],
        selection=dg.AssetSelection.assets(MORNING) | dg.AssetSelection.checks(sources_are_healthy),
        resources={"home": GpufareHome(root=str(home.root))},
        instance=instance,
    )
    healthy = {check.asset_key.path[-1]: check for check in result.get_asset_check_evaluations()}
    assert healthy.keys() == {name for name, config in configs().items() if config.disabled is None}
    assert {check.check_name for check in healthy.values()} == {HEALTHY}
    assert healthy["runpod"].passed
    broken = healthy["lambda"]
    assert (broken.passed, broken.severity) == (False, dg.AssetCheckSeverity.ERROR)
    told = {name: value.value for name, value in broken.metadata.items()}
    assert told["last good day"] == "never"
    assert "no pricing row" in told["reason"]
    assert told["page"] == "https://lambda.ai/pricing"
    folder = Path(str(told["capture"]))
    assert folder.parent == home.archive / "lambda" / TODAY.isoformat()
    assert (folder / "index.json").exists()
    assert "no pricing row" in str(metadata(result, MORNING)["morning"])


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
    (file,) = home.offers.glob("runpod/*.parquet")
    pl.read_parquet(file).with_columns(pl.col("usd_per_hour") * 2).write_parquet(file)
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
    return [json.loads(path.read_text()) for path in sorted(home.incidents.glob("*.json"))]


def unfinished_run(instance: dg.DagsterInstance, day: date) -> dg.DagsterRun:
    job = defs.resolve_job_def("capture_modal")
    return instance.create_run_for_job(job, tags={**job.tags, "dagster/partition": day.isoformat()})


def test_a_killed_run_leaves_an_outcome_and_an_incident(home: Home, instance: dg.DagsterInstance) -> None:
    run = unfinished_run(instance, TODAY)
    event = instance.report_run_failed(run, "Exceeded maximum runtime of 3600 seconds.")
    context = status_context(run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    (row,) = [row for row in source_states(home, TODAY).dicts() if row["source"] == "modal"]
    assert row["state"] == "never_accepted"
    assert "maximum runtime" in row["why"]
    (incident,) = incidents(home)
    assert (incident["kind"], incident["source"], incident["day"]) == ("run_failed", "modal", str(TODAY))
    assert "maximum runtime" in incident["reason"]
    assert run.run_id in incident["remedy"]


def test_a_canceled_run_leaves_a_trace_too(home: Home, instance: dg.DagsterInstance) -> None:
    run = unfinished_run(instance, TODAY)
    event = instance.report_run_canceled(run, "A person ended it.")
    canceled_runs(status_context(run, event, instance), home=GpufareHome(root=str(home.root)))
    assert "A person ended it." in incidents(home)[0]["reason"]
    assert list((home.outcomes / "modal").rglob("*.json"))


def test_a_run_that_left_its_outcome_leaves_no_second_one(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPLAY_VARIABLE, NOTHING_LISTENS)
    job = defs.resolve_job_def("capture_runpod")
    result = job.execute_in_process(partition_key=TODAY.isoformat(), instance=instance, raise_on_error=False)
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    before = list((home.outcomes / "runpod").rglob("*.json"))
    assert len(before) == 1
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    assert list((home.outcomes / "runpod").rglob("*.json")) == before
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


def test_what_a_page_says_is_no_markup_in_a_check() -> None:
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
    shutil.rmtree(home.offers)
    again = materialize("runpod", home, NOTHING_LISTENS, instance, PAST)
    assert again.success
    assert "no request was sent" in str(metadata(again, raw_key("runpod"))["read again"])
    assert metadata(again, offers_key("runpod"))["dagster/partition_row_count"] > 10
    assert len(Archive(home.archive).captures("runpod", PAST)) == 1


def test_nothing_is_asked_into_the_demos_home(tmp_path: Path, instance: dg.DagsterInstance) -> None:
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
    (observed,) = [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    told = observed.asset_observation_data.asset_observation.metadata["skipped"].value
    assert str(NEVER_CAPTURED) in told
    assert not home.outcomes.exists()


def test_a_future_day_fails_plainly(home: Home, instance: dg.DagsterInstance) -> None:
    result = materialize("runpod", home, "", instance, TOMORROW)
    assert not result.success
    assert f"{TOMORROW} is in the future" in failures(result)[0]
    (event,) = [e for e in result.all_events if e.event_type_value == "PIPELINE_FAILURE"]
    context = status_context(result.dagster_run, event, instance).for_run_failure()
    failed_runs(context, home=GpufareHome(root=str(home.root)))
    assert not home.outcomes.exists()  # no outcome of a day that has not begun


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
    """Of the environment, and with the address in the run's configuration."""
    tick = evaluate("capture_modal", datetime(TODAY.year, TODAY.month, TODAY.day, 6, tzinfo=UTC))
    job = defs.resolve_job_def("capture_modal")
    by_configuration = {"resources": {"home": {"config": {"replay_url": server.base_url}}}}
    first = job.execute_in_process(
        run_config=by_configuration, partition_key=tick.run_requests[0].partition_key, instance=instance
    )
    assert first.success
    monkeypatch.setenv(REPLAY_VARIABLE, server.base_url)
    second = job.execute_in_process(partition_key=tick.run_requests[0].partition_key, instance=instance)
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
