"""The daily line end to end: what three refreshed days report and publish, and what a broken source does."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.index import read_body
from pipeline.capture.permissions import Choices, why_off
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.refresh import demo
from pipeline.refresh.inputs import ARCHIVE
from pipeline.refresh.refresh import refresh
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.refresh.faulty_server import FaultyServer, refusing, says
from tests.scenario import AHEAD, BAD, GOOD, HOSTILE_NAMES, MENDED, Scenario

JOB = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")
REPORTS = Path(__file__).with_name("reports.txt")
CONTROLS = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]"
KEPT_NAMES = {name if kept is None else kept for name, kept in HOSTILE_NAMES.items()}


def test_each_refresh_reports_every_source_and_what_it_published(scenario: Scenario) -> None:
    """Each line of three reports; of what a check found, DuckDB may give any row first."""
    told = {day: "\n".join(scenario.report(day).lines()) for day in (GOOD, BAD, MENDED)}
    text = "\n\n".join(f"{day}\n{re.sub(r'; first: .*', '; first: …)', told[day])}" for day in told)
    assert text == REPORTS.read_text(encoding="utf-8").rstrip("\n")
    assert all(line.isprintable() for line in "\n".join(told.values()).splitlines())
    assert [scenario.report(day).failure() for day in told] == [None, None, None]
    assert ("vast", "VAST_API_KEY") in scenario.rows(GOOD, "SELECT source, key_variables FROM main.sources")


def test_the_outcomes_of_the_bad_day_are_published(scenario: Scenario) -> None:
    """Among them is each class of result but that of a source without permission: a replay needs none."""
    counts = "requests, failed_requests, retries, rows, rejects, matched, ambiguous, unknown, regions"
    columns = f"source, status, result, code, accepted, stands, {counts}"
    query = f"SELECT {columns} FROM main.capture_outcomes WHERE day = '{BAD}' ORDER BY source"
    assert scenario.rows(BAD, query) == [
        ("crusoe", "failed", "refused_by_host", "http_403", False, False, 1, 1, 0, 0, 0, 0, 0, 0, 0),
        ("cudo", "captured", "fresh", None, True, True, 1, 0, 0, 25, 5, 16, 0, 9, 13),
        ("ecb", "captured", "failed_here", None, False, False, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        ("hyperstack", "failed", "refused_by_us", "redirect_refused", False, False, 1, 1, *7 * (0,)),
        ("lambda", "captured", "changed", None, False, False, 2, 0, 0, 0, 0, 0, 0, 0, 0),
        ("linode", "captured", "doubted", None, False, False, 1, 0, 0, 0, 14, 0, 0, 0, 0),
        ("primeintellect", "needs_key", "needs_key", "needs_key", False, False, 1, 1, *7 * (0,)),
        ("runpod", "captured", "fresh", None, True, True, 1, 0, 0, 46, 91, 46, 0, 0, 0),
        ("scaleway", "captured", "fresh", None, True, True, 18, 0, 0, 16, 1, 16, 0, 0, 2),
        ("tensordock", "disabled", "retired", None, False, False, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        ("together", "failed", "unreachable", "incomplete_body", False, False, 1, 1, 2, *6 * (0,)),
        ("vast", "partial", "partial", "http_404", True, True, 5, 1, 0, 21, 1, 21, 0, 0, 13),
    ]
    facts = "observed_at, duration_seconds > 0, replayed, warnings"
    of_scaleway = f"FROM main.capture_outcomes WHERE day = '{BAD}' AND source = 'scaleway'"
    observed = datetime(BAD.year, BAD.month, BAD.day, 6, tzinfo=UTC)
    warned = (observed, True, True, "new field 'cpus', which is not read")
    assert scenario.rows(BAD, f"SELECT {facts} {of_scaleway}") == [warned]
    answers = f"(SELECT capture_sha256 FROM main.offers WHERE day = '{BAD}' AND source = 'scaleway')"
    assert scenario.rows(BAD, f"SELECT sha256 IN {answers} {of_scaleway}") == [(True,)]


def test_a_refused_source_keeps_its_last_good_prices_with_their_age(scenario: Scenario) -> None:
    columns = "source, raw_label, gpu_count, price_kind, term_days, region, tier, native_price, ranked"
    refused = "source IN ('crusoe', 'hyperstack', 'lambda', 'linode', 'together')"
    query = f"SELECT {columns} FROM main.offers_latest WHERE {refused} ORDER BY ALL"
    assert scenario.rows(BAD, query) == scenario.rows(GOOD, query)
    query = "SELECT source, age_days, count(*) FROM main.offers_latest GROUP BY ALL ORDER BY ALL"
    assert scenario.rows(BAD, query) == [
        *(("crusoe", 1, 7), ("cudo", 0, 25), ("hyperstack", 1, 25), ("lambda", 1, 28), ("linode", 1, 13)),
        *(("runpod", 0, 46), ("salad", 1, 60), ("scaleway", 0, 16), ("together", 1, 12), ("vast", 0, 21)),
    ]


def test_rates_that_are_not_believed_leave_those_of_the_day_before(scenario: Scenario) -> None:
    rates = "SELECT DISTINCT rate_date FROM main.exchange_rates WHERE day <= as_of_day()"
    used = "SELECT DISTINCT fx_date FROM main.offers WHERE source = 'scaleway' AND day = "
    ((rate_day,),) = scenario.rows(GOOD, rates.replace("as_of_day()", f"'{GOOD}'"))
    assert scenario.rows(BAD, f"{used} '{BAD}'") == [(rate_day,)]
    assert scenario.rows(BAD, f"SELECT count(*) FROM main.exchange_rates WHERE day = '{BAD}'") == [(0,)]


def test_a_price_that_jumps_is_held_and_one_that_moves_is_a_change(scenario: Scenario) -> None:
    jumps = f"SELECT source, detail FROM main.rejects WHERE day = '{BAD}' AND reason = 'moved_by_a_unit'"
    (detail,) = (each for each in scenario.report(BAD).held["runpod"] if "RTX 4090" in each)
    assert scenario.rows(BAD, jumps) == [("runpod", detail)]
    card = "source = 'runpod' AND gpu_id = 'rtx-4090' AND tier = 'secure' AND price_kind = 'on_demand'"
    query = f"SELECT native_price, doubt, believed_on, ranked FROM main.offers_latest WHERE {card}"
    assert scenario.rows(GOOD, query) == [(Decimal("0.74"), None, None, True)]
    assert scenario.rows(BAD, query) == [(Decimal("0.74"), "moved_by_a_unit", GOOD, True)]
    refused = "SELECT DISTINCT source, doubt FROM main.offers_latest WHERE doubt = 'reading_refused'"
    assert scenario.rows(BAD, refused) == [("linode", "reading_refused")]
    columns = "day, gpu_id, source, previous_usd_per_gpu_hour, usd_per_gpu_hour"
    change = (BAD, "a100-pcie-80gb", "runpod", Decimal("1.39000000"), Decimal("1.30000000"))
    assert scenario.rows(BAD, f"SELECT {columns} FROM main.price_changes WHERE change = 'moved'") == [change]


def test_a_price_of_zero_is_a_reject_and_a_spot_price_above_on_demand_is_not_ranked(
    scenario: Scenario,
) -> None:
    zero = "SELECT detail FROM main.rejects WHERE source = 'together' AND reason = 'zero_price'"
    assert scenario.rows(GOOD, zero) == [("NVIDIA HGX B200, on_demand: the price is 0.00",)]
    columns = "native_price, flag_reason, ranked, not_ranked_reason"
    spot = f"SELECT {columns} FROM main.offers_latest WHERE source = 'crusoe' AND price_kind = 'spot'"
    assert scenario.rows(GOOD, spot) == [(Decimal("9.99"), "spot_not_below_on_demand", False, "flagged")]


def test_no_wrong_price_is_in_any_ranking(scenario: Scenario) -> None:
    """Only prices that the sample page also has are ranked, and the one that moved."""
    wrong = []
    query = "SELECT DISTINCT source, native_price FROM main.cheapest_gpu_per_workload"
    for day in (GOOD, BAD, MENDED):
        ranked = scenario.rows(day, query)
        assert len({source for source, _ in ranked}) > 5
        for source in {source for source, _ in ranked}:
            with (PAGES / source / "expected.csv").open(encoding="utf-8") as file:
                right = {Decimal(row["native_price"]) for row in csv.DictReader(file)}
            right |= {Decimal("1.30")} if (source, day) == ("runpod", BAD) else set()
            wrong += [(day, source, price) for of, price in ranked if of == source and price not in right]
    assert wrong == []


def test_imported_prices_are_history_and_future_ones_nothing(scenario: Scenario) -> None:
    columns = "day, provider, usd_per_gpu_hour, flag_reason"
    query = f"SELECT {columns} FROM main.offers WHERE source = 'imported'"
    yesterday = (GOOD - timedelta(days=1), "AWS", Decimal("6.88000000"), "imported")
    assert scenario.rows(MENDED, query) == [yesterday], "older days are in price_history alone"
    history = "SELECT day, usd_per_gpu_hour FROM main.price_history WHERE source = 'imported' ORDER BY day"
    assert scenario.rows(MENDED, history)[0] == (date(2025, 6, 5), Decimal("6.88000000"))
    for table in ("offers", "capture_outcomes", "price_history"):
        assert scenario.rows(MENDED, f"SELECT max(day) FROM main.{table}") == [(MENDED,)]
    assert scenario.rows(MENDED, "SELECT kind, day FROM main.incidents") == [("future_day", AHEAD)]


# ------------------------------------------------------------------ hostile strings


def test_a_hostile_string_is_kept_as_plain_text(scenario: Scenario) -> None:
    query = "SELECT region, gpu_id, ranked FROM main.offers_latest WHERE source = 'cudo'"
    rows = scenario.rows(BAD, query)
    regions = {region: (gpu, ranked) for region, gpu, ranked in rows if region in KEPT_NAMES}
    # Two of the names differ only in what must not be shown; their offers are then one.
    assert regions == dict.fromkeys(KEPT_NAMES, ("l40s", True))
    query = "SELECT instance_type, match_status, gpu_id, not_ranked_reason FROM main.offers_latest"
    labels = {row for row in scenario.rows(BAD, query) if row[0] in KEPT_NAMES}
    assert labels == {(name, "unknown", None, "gpu_not_settled") for name in KEPT_NAMES}
    unmatched = scenario.rows(BAD, "SELECT raw_label FROM main.unmatched_labels WHERE source = 'cudo'")
    assert {label for (label,) in unmatched} == KEPT_NAMES


def test_a_label_without_end_is_a_reject(scenario: Scenario) -> None:
    query = "SELECT detail, raw FROM main.rejects WHERE source = 'cudo' AND reason = 'text_too_long'"
    rejects = scenario.rows(BAD, query)
    assert len(rejects) == 2
    assert max(len(detail) + len(raw) for detail, raw in rejects) < 5_000


def test_a_hostile_string_harms_no_spreadsheet(scenario: Scenario, tmp_path: Path) -> None:
    tables = "offers,offers_latest,rejects,unmatched_labels,unmatched_regions,capture_outcomes,rentals"
    options = ("--format", "csv", "--tables", tables)
    assert gpufare("export", str(tmp_path / "csv"), *options, home=scenario.home(BAD)).returncode == 0
    cells = set()
    for file in (tmp_path / "csv").rglob("*.csv"):
        with file.open(encoding="utf-8", newline="") as rows:
            cells |= {cell for row in csv.reader(rows) for cell in row}
    assert [cell for cell in cells if re.match(r"[=@\t\r]|[+-](?![\d.]+$)", cell)] == []
    assert [cell for cell in cells if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", cell)] == []
    formulas = {name for name in HOSTILE_NAMES if name[0] in "=@"}
    assert {f"'{name}" for name in formulas} | KEPT_NAMES - formulas <= cells


def test_a_hostile_string_harms_no_terminal_and_no_reader_of_its_output(scenario: Scenario) -> None:
    query = "SELECT region, instance_type FROM main.offers_latest WHERE source = 'cudo'"
    shown = {
        form: gpufare("sql", query, "--format", form, home=scenario.home(BAD)).stdout
        for form in ("table", "csv", "json", "record")
    }
    assert {form for form, text in shown.items() if re.search(CONTROLS, text)} == set()
    for form in ("table", "record"):
        assert "[red]eu-west[/red][link=http://evil.example]x[/link]" in shown[form]
        assert "<script>alert(1)</script>" in shown[form]
    assert {row["region"] for row in json.loads(shown["json"])} > KEPT_NAMES
    cells = {cell for row in csv.reader(shown["csv"].splitlines()) for cell in row}
    assert {"x'); DROP TABLE main.offers; --", "'@SUM(1+1)*cmd|' /C calc'!A0"} <= cells


# ------------------------------------------------------------------ days that publish nothing, or nothing new


PUBLISHED = (
    "SELECT as_of_day, (SELECT count(*) > 0 FROM main.cheapest_gpu_per_workload) FROM main.publication"
)


def test_nine_days_later_no_host_answers_and_no_price_is_recent_enough(copy_of: Callable[..., Home]) -> None:
    """The rankings are empty then, people are told so, and whoever has the old file open keeps it."""
    home, late = copy_of(BAD), BAD + timedelta(days=9)
    with reader(home.published) as opened, refusing() as url:
        sources = ("--source", "lambda", "--source", "vast")
        done = gpufare("refresh", "--day", f"{late}", "--pages", url, *sources, home=home)
        assert ask(opened, PUBLISHED).rows == [(BAD, True)]
    nothing = f"no source answered (2 asked); the newest prices are of {BAD}"
    assert (done.returncode, done.stderr) == (1, f"Error: {nothing}\n")  # progress is for terminals only
    none = "no price is recent enough to be ranked: the rankings are empty"
    assert done.stdout.splitlines()[-2:] == [f"published as of {late}: 253 offers", none]
    with reader(home.published) as connection:
        ask(connection, f"SET VARIABLE today = DATE '{late}'")
        assert ask(connection, PUBLISHED).rows == [(late, False)]
        kept = "SELECT DISTINCT day FROM main.ranking_history ORDER BY day"
        assert ask(connection, kept).rows == [(GOOD,), (BAD,)]


def test_a_home_that_cannot_be_written_is_refused_before_any_request(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder belongs")
    server = FaultyServer(PAGES, {"modal": says(500)})
    with server, pytest.raises(GpufareError) as refused:
        refresh(Home(tmp_path / "home"), sources=["modal"], pages=server.base_url, environment={})
    assert str(refused.value) == (
        f"nothing can be written in {tmp_path / 'home'} (File exists): "
        "set GPUFARE_HOME to a folder that can be written"
    )
    assert server.asked == {}


def test_a_live_refresh_refuses_the_demos_home_and_the_demo_runs_on_it_again(tmp_path: Path) -> None:
    home, said = Home(tmp_path / "demo"), list[str]()
    shutil.copytree(PAGES / "ecb", tmp_path / "pages" / "ecb")
    for _ in range(2):  # prices of no GPU: nothing is published
        with pytest.raises(GpufareError, match=r"^nothing was published: no source was accepted"):
            demo.run(tmp_path / "pages", home, said.append)
    assert said[1::2] == ["ecb  accepted  5 exchange rates"] * 2
    before = sorted(home.root.rglob("*"))
    answer = gpufare("refresh", home=home)
    refused = f"Error: {home.root} is the demo's: today's prices do not belong beside its sample prices."
    assert (answer.returncode, answer.stdout, answer.stderr.startswith(refused)) == (1, "", True)
    assert sorted(home.root.rglob("*")) == before


# ------------------------------------------------------------------ replayed prices beside live ones


NOW = datetime.now(UTC)
TODAY = NOW.date()
REPLAYED = "among them, replayed from saved pages and no live prices: "


@pytest.fixture
def mixed(copy_of: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> Home:
    """RunPod's prices came from the provider today; those of the others were replayed in August."""
    for name in {name for config in configs().values() for name in config.key_variables}:
        monkeypatch.delenv(name, raising=False)
    home = copy_of(BAD)
    writer = Archive(home.archive).start("runpod", TODAY)
    for entry in page_entries(PAGES / "runpod", source_config("runpod")):
        body = read_body(PAGES / "runpod", entry)
        writer.add(entry.model_copy(update={"observed_at": NOW, "file": None}), body)
    writer.finish()
    return home


def test_people_learn_which_prices_were_replayed_and_which_sources_are_off(mixed: Home) -> None:
    # A page observed in August, filed under today.
    refresh(mixed, day=TODAY, sources=["lambda"], pages=str(PAGES), environment={}, now=NOW)
    why = gpufare("explain", *JOB[1:], home=mixed).stdout
    assert f"Price seen {GOOD} at" in why
    assert "CAREFUL: the price was replayed from a saved page" in why
    assert "CAREFUL: rank 1: the price was replayed from a saved page" in gpufare(*JOB, home=mixed).stdout
    report = refresh(mixed, day=TODAY, sources=["runpod"], pages=ARCHIVE, environment={}, now=NOW)
    good = f"crusoe, hyperstack, lambda, linode, salad, together (observed on {GOOD})"
    assert report.lines()[-1] == f"{REPLAYED}{good}, cudo, scaleway, vast (observed on {BAD})"
    # RunPod's price is live, and its terms forbid to ask it again; saved pages need no permission.
    off = [each.name for each in configs().values() if why_off(each, Choices(), {}) and not each.disabled]
    forbidden = [name for name in off if name not in ("crusoe", "vast")]
    asked = gpufare(*JOB, home=mixed)
    why = gpufare("explain", *JOB[1:], home=mixed).stdout
    assert (f"Price seen {TODAY} at https://api.runpod.io" in why, "replayed" in why) == (True, False)
    assert f"not asked: {', '.join(forbidden)} (their terms); see gpufare sources" in asked.stderr
