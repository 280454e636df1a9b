"""Dagster's graph: its shape, its schedules, and the daily job as runs, with sources that fail."""

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from markdown_it import MarkdownIt

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry
from pipeline.health.digest import Problem, digest_of, harmless
from pipeline.health.source_states import source_states
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.record.months import Month, rows_of, write_days
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.permissions import disable, enable
from pipeline.warehouse.checks import checks
from pipeline.warehouse.query import ask, reader
from tests.health.test_source_states import asked as asked_at
from tests.health.test_source_states import write
from tests.homes import PAGES
from tests.orchestration.conftest import THREE, TODAY, Dagster, three_that_break
from tests.pages_server import PagesServer
from tests.scenario import BAD, GOOD, HOSTILE, HOSTILE_NAMES

if TYPE_CHECKING:
    import dagster as dg

MORNING_OF_TODAY = datetime(TODAY.year, TODAY.month, TODAY.day, 6, tzinfo=UTC)
NOTHING_LISTENS = "http://127.0.0.1:9"
PAGES_VARIABLE = "GPUFARE_PAGES"
ENABLED = {name for name, config in configs().items() if config.disabled is None}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


# The graph.


def test_the_assets_are_every_source_and_every_table_in_order(defs: "dg.Definitions") -> None:
    graph = defs.resolve_asset_graph()
    paths = {tuple(key.path): key for key in graph.get_all_asset_keys()}
    kinds = {kind: {path[-1] for path in paths if path[0] == kind} for kind in {path[0] for path in paths}}
    assert kinds.pop("offers") | kinds.pop("exchange_rates") == ENABLED
    assert {"cheapest_gpu_per_workload", "plan_grid"} < kinds.pop("published")
    assert kinds == {"report": {"report"}, "morning": {"morning"}}

    def before(*path: str) -> set[tuple[str, ...]]:
        return {tuple(key.path) for key in graph.get_ancestor_asset_keys(paths[path])}

    assert ("offers", "runpod") in before("published", "offers")
    assert ("exchange_rates", "ecb") in before("published", "exchange_rates")
    assert ("offers", "runpod") in before("morning")


def test_each_asset_has_its_version_and_its_freshness(defs: "dg.Definitions") -> None:
    specs = {tuple(spec.key.path): spec for spec in defs.resolve_all_asset_specs()}
    daily = [path for path in specs if path[0] in ("offers", "exchange_rates", "published")]
    assert [path for path in daily if not specs[path].code_version] == []
    assert specs["offers", "aws"].code_version != specs["offers", "gcp"].code_version
    policies = {path: policy for path in daily if (policy := specs[path].freshness_policy) is not None}
    hours = {
        path: tuple(window.to_timedelta() / timedelta(hours=1) for window in (of.fail_window, of.warn_window))
        for path, of in policies.items()
    }
    last = {name: ("exchange_rates" if name == "ecb" else "offers", name) for name in ENABLED}
    expected = {path: (configs()[name].stale_after_days * 24, 30) for name, path in last.items()}
    assert hours == expected | {path: (49, 25) for path in daily if path[0] == "published"}


# The schedules.


def test_the_morning_runs_in_order_and_in_few_steps(defs: "dg.Definitions") -> None:
    """A process starts once for all sources; a run of sources has a pool and is not retried as a whole."""
    repository = defs.get_repository_def()
    assert {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs} == {
        "capture": "0 6 * * *",
        "capture_again": "30 6 * * *",
        "publish_tables": "0 7 * * *",
        "morning_digest": "15 7 * * *",
    }
    # The slowest visit is over before the next capture, and that one before the publishing.
    assert max(config.time_limit_seconds for config in configs().values()) < 30 * 60
    running = [*repository.schedule_defs, *repository.sensor_defs]
    assert {each.default_status.value for each in running} == {"RUNNING"}
    names = ("capture", "publish_tables", "morning_digest")
    jobs = {name: defs.resolve_job_def(name) for name in names}
    assert {name: {node.name for node in job.graph.nodes} for name, job in jobs.items()} == {
        "capture": {"capture_and_read"},
        "publish_tables": {"publish", "report"},
        "morning_digest": {"morning"},
    }
    (node,) = jobs["capture"].graph.nodes
    assert (node.definition.pool, jobs["capture"].tags["dagster/max_retries"]) == ("capture", "0")


@pytest.fixture
def tick(defs: "dg.Definitions", home: Home) -> Callable[..., Any]:
    import dagster as dg

    from pipeline.orchestration.resources import GpufareHome
    from pipeline.orchestration.schedules import schedules

    def evaluate(name: str) -> Any:
        context = dg.build_schedule_context(
            scheduled_execution_time=MORNING_OF_TODAY,
            repository_def=defs.get_repository_def(),
            resources={"home": GpufareHome(root=f"{home.root}")},
        )
        return {schedule.name: schedule for schedule in schedules()}[name].evaluate_tick(context)

    return evaluate


def asked(tick: Any) -> set[str]:
    """The sources of the tick's one run."""
    (request,) = tick.run_requests
    assert (request.partition_key, request.run_key) == (None, MORNING_OF_TODAY.isoformat())
    keys = [tuple(key.path) for key in request.asset_selection]
    names = {name for kind, name in keys if kind in ("offers", "exchange_rates")}
    assert len(keys) == len(names)
    return names


def test_at_six_every_source_that_may_be_asked_is_and_the_tick_says_why_others_are_not(
    monkeypatch: pytest.MonkeyPatch, home: Home, tick: Callable[..., Any]
) -> None:
    keys = [variable for name in ENABLED for variable in configs()[name].key_variables]
    for variable in (PAGES_VARIABLE, *keys):
        monkeypatch.delenv(variable, raising=False)
    first = asked(tick("capture"))
    assert {"ecb", "modal"} <= first < ENABLED
    assert not {"aws", "primeintellect"} & first  # by its terms, and for want of a key
    disable(["modal"], home, TODAY)
    assert asked(tick("capture")) == first - {"modal"}
    with monkeypatch.context() as patch:
        three = [source_config(name) for name in ("primeintellect", "modal", "aws")]
        patch.setattr("pipeline.orchestration.schedules.enabled_sources", lambda: three)
        none = tick("capture")
    assert not none.run_requests
    assert "primeintellect is off: it needs a key: set PRIME_API_KEY" in none.skip_message
    assert f"modal is off: you disabled it on {TODAY}: gpufare sources enable modal" in none.skip_message
    assert "aws is off: its terms are reported to forbid" in none.skip_message
    enable(["modal"], home, TODAY, {})
    monkeypatch.setenv(PAGES_VARIABLE, NOTHING_LISTENS)
    for variable in keys:
        monkeypatch.setenv(variable, "a key")
    assert asked(tick("capture")) == ENABLED, "a replay needs no permission"


# A morning on which a source fails.


def test_a_source_that_fails_is_shown_and_asked_once_more_alone(
    tmp_path: Path, home: Home, dagster: Dagster, tick: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "pages"
    for source in ("runpod", "lambda"):
        shutil.copytree(PAGES / source, pages / source)
    for page in (pages / "lambda").glob("*.html"):
        page.write_text("<html><body>We moved.</body></html>")
    monkeypatch.setenv(PAGES_VARIABLE, NOTHING_LISTENS)  # for permission
    assert tick("capture_again").skip_message == "no source to ask"
    with PagesServer(pages) as server:
        run = dagster.sources("lambda runpod", home, server.base_url)
    unread = "https://lambda.ai/pricing: no pricing row (tr with data-plan) on the page"
    (failure,) = run.failures
    assert f"1 of 2 sources failed: lambda: {unread}" in failure
    broken, well = run.checked["lambda"], run.checked["runpod"]
    assert (broken.passed, broken.severity.value, well.passed) == (False, "ERROR", True)
    assert broken.description == unread.replace("://", ":∕∕")
    assert broken.metadata["last good day"].value == "never"
    assert well.metadata["last good day"].value == str(TODAY)
    assert (well.metadata["requests"].value, broken.metadata["requests"].value) == (1, 2)
    assert run.made == {("offers", "runpod")}
    assert broken.target_materialization_data is None
    assert well.target_materialization_data.run_id == run.result.run_id
    made_from = {"read from": "answers of this run"}
    assert run.metadata("offers", "runpod") == {"day": str(TODAY), "dagster/row_count": 47} | made_from

    assert asked(tick("capture_again")) == {"lambda"}
    shutil.copytree(PAGES / "lambda", pages / "lambda", dirs_exist_ok=True)
    with PagesServer(pages) as server:
        again = dagster.sources("lambda", home, server.base_url)
    assert (again.success, again.checked["lambda"].passed) == (True, True)
    assert not tick("capture_again").run_requests
    archive = Archive(home.archive)
    assert [len(archive.captures(name, TODAY)) for name in ("lambda", "runpod")] == [2, 1]


def test_tables_the_report_and_the_digest_are_made_whatever_failed(
    copy_of: Callable[..., Home], dagster: Dagster
) -> None:
    from pipeline.orchestration.morning import morning_digest
    from pipeline.orchestration.tables import report

    home = copy_of(BAD)
    published = dagster.publish(home)
    assert published.success
    assert published.metadata("published", "offers_latest") == {"dagster/row_count": 253}
    assert published.checked.keys() == {check.name for check in checks()}
    labels = published.checked["labels_are_understood"]
    assert (labels.passed, labels.severity.value) == (False, "WARN")
    answered = published.checked["a_source_answered_today"]
    assert (answered.passed, answered.severity.value) == (False, "ERROR")  # as when the network is down
    due = published.checked["sources_were_asked"]
    assert (due.passed, due.severity.value) == (False, "WARN")
    with reader(home.published) as connection:
        assert ask(connection, "SELECT as_of_day FROM main.publication").rows == [(TODAY,)]
    digest = dagster.run([morning_digest], home).metadata("morning")
    assert (
        "not asked since 2026\u201108\u201123, when it failed: read, but not believed"
        in digest["Broke: linode"]
    )
    assert digest["Published"].startswith(f"**Published:** {TODAY} ")
    assert digest["What changed"].startswith("**Moved:** ")
    assert digest["Digest"] == "no webhook is set in GPUFARE_WEBHOOK_URL"
    assert dagster.run([report], home).success
    assert (home.report / "index.html").exists()


def test_the_morning_s_check_is_red_and_says_what_broke_what_stands_in_and_what_to_do(
    tmp_path: Path, home: Home, dagster: Dagster
) -> None:
    """For three sources that broke in three ways; the other source is green."""
    from pipeline.orchestration.morning import CHECK, morning_digest

    names = (*THREE, "runpod")
    write(home, *(asked_at(name, MORNING_OF_TODAY - timedelta(days=1)) for name in THREE))
    with three_that_break(tmp_path / "pages", names) as server:
        run = dagster.sources(" ".join(names), home, server.base_url)
    assert {name for name, check in run.checked.items() if not check.passed} == {*THREE}
    morning = dagster.run([morning_digest], home)
    check = morning.checked[CHECK]
    assert (check.passed, check.severity.value) == (False, "ERROR")
    lines = str(check.description).replace("\u2011", "-").replace("  \n", "\n").splitlines()
    days = [f"{TODAY - timedelta(days=1)}", f"{TODAY + timedelta(days=6)}"]
    stay = "its prices of {} stay in the rankings until {}".format(*days)
    assert lines[:2] == [lines[0], "  → gpufare refresh"]
    assert lines[0].startswith("- **publication**: NOT PUBLISHED: nothing is published at ")
    broke, steps = lines[2::2], lines[3::2]
    assert broke == [
        f"- [**lambda**](/assets/offers/lambda): the page or the API has changed (since {TODAY}): the answer "
        "could not be read: https:∕∕lambda.ai/pricing: no pricing row (tr with data-plan) on the page; "
        f"{stay}",
        f"- [**linode**](/assets/offers/linode): read, but not believed (since {TODAY}): 13 of 13 prices are "
        f"not between 0.2 and 12 USD per GPU-hour, as expected of this source; {stay}",
        broke[2],
    ]
    assert broke[2].startswith(
        "- [**verda**](/assets/offers/verda): the host was not reached or did not answer"
    )
    assert steps == [f"  → {problem.step}" for problem in digest_of(home, datetime.now(UTC)).problems[1:]]
    assert "gpufare confirm linode" in steps[1]
    assert "gpufare refresh --source verda" in steps[2]
    told = morning.metadata("morning")
    assert list(told)[:4] == [f"Broke: {name}" for name in ("publication", "lambda", "linode", "verda")]
    assert [f"- {told[f'Broke: {name}']}" for name in ("lambda", "linode")] == [
        "\n".join(str(check.description).splitlines()[at : at + 2]) for at in (2, 4)
    ]


def test_nothing_that_a_page_says_is_a_link_or_markup_in_the_morning() -> None:
    from pipeline.orchestration.morning import problems_by_subject, problems_list

    hostile = [
        *HOSTILE_NAMES,
        HOSTILE,
        "www.evil.example",
        "# x",
        "a_b_c | d",
        "![i](http://evil.example/i.png)",
    ]
    problems = [
        Problem(harmless(text), harmless(text), harmless(text), "its prices stay") for text in hostile
    ]
    entries = problems_by_subject([*problems, Problem("lambda", "x")])
    markdown = "\n\n".join([problems_list(problems), *(str(value.value) for value in entries.values())])
    page = MarkdownIt("commonmark", {"html": True}).render(markdown)
    assert set(re.findall(r"<(\w+)", page)) == {"ul", "li", "strong", "p", "a"}
    assert set(re.findall(r'href="([^"]*)"', page)) == {"/assets/offers/lambda"}
    assert re.search(r"https?://|www\.", page) is None, "no address that Dagster would make a link of"


def test_a_quiet_morning_is_green(home: Home) -> None:
    from pipeline.orchestration.morning import problems_by_subject, problems_list

    assert problems_list([]) == "nothing"
    assert {name: value.value for name, value in problems_by_subject([]).items()} == {"Broke": "nothing"}


def test_a_check_that_stops_the_publishing_is_shown_with_all_others(
    copy_of: Callable[..., Home], dagster: Dagster
) -> None:
    """And the published file stays; the failure is one incident, whoever notices it first."""
    home = copy_of(GOOD)
    before = home.published.read_bytes()
    month = Month.of("offers", "runpod", GOOD)
    doubled = rows_of(home, month)[GOOD].with_columns((pl.col("usd_per_hour") * 2).cast(pl.Decimal(18, 8)))
    write_days(home, month, {GOOD: doubled})
    run = dagster.publish(home)
    assert (run.success, home.published.read_bytes() == before) == (False, True)
    assert run.checked.keys() == {check.name for check in checks()}
    failed = run.checked["price_per_gpu_is_the_whole_price_shared"]
    assert (failed.passed, failed.severity.value) == (False, "ERROR")
    assert failed.metadata["first rows"].value[0]["source"] == "runpod"
    run.notice_failure(home)
    (incident,) = kept_incidents(home)
    assert (incident.kind, incident.day, incident.source) == ("not_published", TODAY, None)
    assert incident.remedy == "the file published before stays"


# Sources and runs that fail otherwise.


def test_an_error_in_one_source_s_reading_stops_no_other(
    home: Home, dagster: Dagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record_day_or_break(config: Any, *arguments: Any) -> Any:
        if config.name == "modal":
            raise ZeroDivisionError("a mistake of ours")
        return record_day(config, *arguments)

    monkeypatch.setattr("pipeline.orchestration.source_assets.record_day", record_day_or_break)
    with PagesServer(PAGES) as server:
        run = dagster.sources("modal runpod", home, server.base_url)
    assert "modal: ZeroDivisionError: a mistake of ours" in run.failures[0]
    assert ("offers", "runpod") in run.made
    run.notice_failure(home)
    why = {row["source"]: row["why"] for row in source_states(home, TODAY).dicts()}
    assert "a mistake of ours" in why["modal"]
    assert [incident.source for incident in kept_incidents(home)] == ["modal"]


def test_killed_and_canceled_runs_leave_an_outcome_and_an_incident(
    tmp_path: Path, dagster: Dagster, defs: "dg.Definitions"
) -> None:
    import dagster as dg

    from pipeline.orchestration.failures import canceled_runs, failed_runs
    from pipeline.orchestration.keys import offers_key
    from pipeline.orchestration.resources import GpufareHome

    keys, instance = {offers_key("modal")}, dagster.instance
    job = defs.resolve_job_def("capture").get_subset(asset_selection=keys)
    for kind, what in (("killed", "Exceeded maximum runtime."), ("canceled", "A person ended it.")):
        home = Home(tmp_path / kind)
        run = instance.create_run_for_job(job, tags=job.tags, asset_selection=frozenset(keys))
        end = instance.report_run_failed if kind == "killed" else instance.report_run_canceled
        context = dg.build_run_status_sensor_context("sensor", end(run, what), instance, run)
        resource = GpufareHome(root=f"{home.root}")
        if kind == "killed":
            failed_runs(context.for_run_failure(), home=resource)
            what = f"it was ended from outside, killed, out of memory or too slow ({what})"
        else:
            canceled_runs(context, home=resource)
        (outcome,) = Records(home).outcomes("modal", TODAY)
        error = f"the run ended without an outcome: {what}"
        assert (outcome["status"], outcome["error"]) == ("failed", error)
        (incident,) = kept_incidents(home)
        assert (incident.kind, incident.source, incident.day) == ("run_failed", "modal", TODAY)
        assert incident.reason == f"the run of capture (modal) failed: {what}"
        assert incident.remedy == f"look at the run {run.run_id} in Dagster, and start it again"


# Days other than today, and sources that are off.


def test_on_a_past_day_captured_sources_are_read_again_and_others_skipped(
    copy_of: Callable[..., Home], dagster: Dagster
) -> None:
    """Without a request."""
    home = copy_of(GOOD)
    shutil.rmtree(home.record / "offers")
    run = dagster.sources("modal runpod", home, day=GOOD)
    assert (run.success, run.made) == (True, {("offers", "runpod")})
    made_from = {"read from": f"the archive: {GOOD} is past, no request was sent"}
    assert run.metadata("offers", "runpod") == {"day": str(GOOD), "dagster/row_count": 46} | made_from
    assert len(Archive(home.archive).captures("runpod", GOOD)) == 1
    title, day = source_config("modal").title, GOOD
    why = f"{title} was not captured on {day}: a live page shows today's prices only"
    assert run.skipped() == {("offers", "modal"): why}


def test_a_future_day_and_the_demos_home_fail_plainly_without_an_outcome(
    home: Home, dagster: Dagster
) -> None:
    tomorrow = TODAY + timedelta(days=1)
    run = dagster.sources("runpod", home, day=tomorrow)
    assert f"{tomorrow} is in the future: today is {TODAY} (UTC)" in run.failures[0]
    run.notice_failure(home)
    assert Records(home).outcome_days() == []
    shutil.rmtree(home.root)
    home.root.mkdir()
    home.demo.write_text("{}")
    refused = dagster.sources("runpod", home)
    assert "Unset GPUFARE_HOME" in refused.failures[0]
    assert list(home.root.iterdir()) == [home.demo]


def test_the_asset_of_a_source_that_is_off_is_not_red(
    home: Home, dagster: Dagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFARE_PROXY", NOTHING_LISTENS)
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    run = dagster.sources("crusoe", home)
    assert (run.success, run.made) == (True, set())
    assert run.skipped().keys() == {("offers", "crusoe")}
    (why,) = set(run.skipped().values())
    assert why.startswith("its terms are reported to forbid automated reading")
    (outcome,) = Records(home).outcomes("crusoe", TODAY)
    assert (outcome["status"], outcome["requests"]) == ("needs_permission", 0)


# Sample pages.


def test_a_schedules_run_takes_sample_pages_from_a_replay_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dagster: Dagster, defs: "dg.Definitions"
) -> None:
    from pipeline.orchestration.keys import offers_key

    job = defs.resolve_job_def("capture")
    options: dict[str, Any] = {"asset_selection": [offers_key("modal")]}
    options |= {"instance": dagster.instance}
    with PagesServer(PAGES) as server:
        monkeypatch.setenv(PAGES_VARIABLE, server.base_url)
        assert job.execute_in_process(**options).success
        captures = Archive(tmp_path / "home" / "archive").captures("modal", TODAY)
        assert [capture.replayed_from for capture in captures] == [server.base_url]


def test_sample_pages_are_not_filed_among_live_prices(home: Home, dagster: Dagster) -> None:
    writer = Archive(home.archive).start("runpod", TODAY)
    writer.add(Entry(url="https://api.runpod.io/graphql", outcome=OutcomeCode.OK), b"{}")
    live = writer.finish("captured")
    run = dagster.sources("runpod", home, NOTHING_LISTENS)
    assert f"{home.root} has live prices of runpod, and {NOTHING_LISTENS} has saved pages" in run.failures[0]
    assert Archive(home.archive).captures("runpod", TODAY) == [live]
