"""Faults of providers, against the whole daily job over real HTTP.

Every fault hits one source on a day when other sources are well. The others are published as ever, no
wrong price is published or ranked, and the outcome says what went wrong.
"""

import csv
import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.http.client import Limits
from pipeline.home.paths import Home
from pipeline.refresh.refresh import RefreshReport, refresh
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, gpufare, reader_on
from tests.refresh.faulty_server import (
    Fault,
    FaultyServer,
    breaks_off,
    drips,
    first,
    listening,
    redirects_to,
    redirects_to_untrusted_tls,
    refusing,
    says,
    sends_200_mb,
    sends_gzip_bomb,
)

DAY = date(2026, 8, 22)
# Long enough that a busy machine is not taken for a slow host, short enough for the drip to be waited out.
LIMITS = Limits(
    response_seconds=6, read_seconds=6, body_bytes=2**21, backoff_seconds=0.02, backoff_max_seconds=0.1
)
WELL = ("aws", "azure", "ecb", "ovh", "runpod", "scaleway", "verda")

Edit = Callable[[str], str]


@dataclass
class Published:
    """A day's refresh: what it reported, what it published, and what it read elsewhere."""

    home: Home
    report: RefreshReport
    elsewhere: list[str] = field(default_factory=list)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with reader_on(self.home.published, self.report.day) as connection:
            return list(ask(connection, query).dicts())

    def row(self, query: str) -> dict[str, Any]:
        (row,) = self.rows(query)
        return row

    def outcome(self, source: str, day: date = DAY) -> dict[str, Any]:
        return self.row(f"FROM main.capture_outcomes WHERE source = '{source}' AND day = DATE '{day}'")

    def health(self, source: str) -> dict[str, Any]:
        return self.row(f"FROM main.source_health WHERE source = '{source}'")

    def offers(self, source: str, condition: str = "true") -> list[dict[str, Any]]:
        return self.rows(f"FROM main.offers_latest WHERE source = '{source}' AND {condition} ORDER BY ALL")

    def prices(self, source: str) -> list[tuple[Any, ...]]:
        columns = "raw_label, instance_type, gpu_count, price_kind, term_days, region, tier, native_price"
        rows = self.rows(f"SELECT {columns} FROM main.offers_latest WHERE source = '{source}' ORDER BY ALL")
        return [tuple(row.values()) for row in rows]


def edited(folder: Path, edits: dict[tuple[str, str], Edit]) -> Path:
    """Return the sample pages with edits of some files; an edit that changes nothing is an error."""
    shutil.copytree(PAGES, folder)
    for (source, name), edit in edits.items():
        page = folder / source / name
        before = page.read_text(encoding="utf-8")
        after = edit(before)
        assert after != before, f"the page of {source} is not what the fault was written for"
        page.write_text(after, encoding="utf-8")
    return folder


def published(
    home: Home, pages: Path, faults: dict[str, Fault], day: date = DAY, sources: tuple[str, ...] = ()
) -> Published:
    with FaultyServer(pages, faults) as server:
        report = refresh(home, day=day, pages=server.base_url, sources=sources, environment={}, limits=LIMITS)
    assert report.published, report.failure()
    return Published(home, report)


# ------------------------------------------------------------------ faults of the network and of the answer


@dataclass(frozen=True)
class Broken:
    """A source that fails: by its host or by its page, and what its outcome must say."""

    source: str
    message: str
    fault: Fault | None = None
    page: str = ""
    edit: Edit | None = None


def cut_in_half(page: str) -> str:
    return page[: len(page) // 2]


ELSEWHERE = "http://elsewhere.invalid/"
JSON = "application/json"

BROKEN = {
    "untrusted certificate": Broken("crusoe", "tls_error", redirects_to_untrusted_tls),
    "403": Broken("coreweave", "http_403", says(403, b"<h1>Forbidden</h1>")),
    "429 for an hour": Broken("together", "asks to wait 3600 s", says(429, retry_after="3600")),
    "endless 500": Broken("baseten", "http_5xx", says(500)),
    "slow drip": Broken("jarvislabs", "response_timeout", drips),
    "200 MB": Broken("replicate", "too_large", sends_200_mb),
    "gzip bomb": Broken("thundercompute", "too_large", sends_gzip_bomb),
    "redirect to another loopback port": Broken("hyperstack", "redirect_refused", redirects_to(ELSEWHERE)),
    "redirect to the metadata service": Broken(
        "nebius", "169.254.169.254", redirects_to("http://169.254.169.254/latest/meta-data/")
    ),
    "connection cut in the middle": Broken("oci", "incomplete_body", breaks_off),
    "empty body": Broken("gcp", "empty_body", says(200, b"", content_type="text/html")),
    "HTML instead of JSON": Broken(
        "cudo", "wrong_content_type", says(200, b"<html>", content_type="text/html")
    ),
    "HTML that says it is JSON": Broken(
        "voltagepark", "sent an HTML page as application/json", says(200, b"<html>", content_type=JSON)
    ),
    "truncated JSON": Broken("linode", "the answer is not JSON", None, "types.json", cut_in_half),
    "empty table": Broken(
        "salad", "no GPU in a table", None, "pricing.html", lambda page: re.sub(r"<tr>.*</tr>", "", page)
    ),
    "columns of a page renamed": Broken(
        "digitalocean",
        "expected one column",
        None,
        "droplets_pricing.html",
        lambda page: page.replace("<th>Price</th>", "<th>Points</th>"),
    ),
    "fields of a JSON answer renamed": Broken(
        "vultr",
        "rejects: 11, not_offered: 10, for example: ",
        None,
        "plans_metal.json",
        lambda page: page.replace("hourly_cost", "hourly").replace("monthly_cost", "monthly"),
    ),
}
RECOVERING = {
    "429, then an answer": ("lambda", first(1, says(429, retry_after="1")), 1),
    "500 twice, then an answer": ("modal", first(2, says(500)), 2),
}


@pytest.fixture(scope="module")
def bad_day(small_homes: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A first day on which every fault happens, each to another source."""
    folder = tmp_path_factory.mktemp("bad-day")
    edits = {(b.source, b.page): b.edit for b in BROKEN.values() if b.edit}
    edits |= {("vultr", "plans_vcg.json"): BROKEN["fields of a JSON answer renamed"].edit}
    faults = {b.source: b.fault for b in BROKEN.values() if b.fault}
    faults |= {source: fault for source, fault, _ in RECOVERING.values()}
    taken, url = listening()
    faults["hyperstack"] = redirects_to(f"{url}/latest")
    with taken:
        result = published(small_homes(folder / "home"), edited(folder / "pages", edits), faults)
        taken.setblocking(False)
        with suppress(BlockingIOError):
            taken.accept()
            result.elsewhere.append(url)
    return result


@pytest.mark.parametrize("name", BROKEN)
def test_broken_source_is_skipped_and_its_outcome_names_the_cause(name: str, bad_day: Published) -> None:
    broken = BROKEN[name]
    outcome, health = bad_day.outcome(broken.source), bad_day.health(broken.source)
    assert not outcome["accepted"]
    assert broken.message in f"{outcome['reason']} {outcome['error']}"
    assert health["state"] == "never_accepted"
    assert broken.message in health["why"]
    assert bad_day.offers(broken.source) == []
    assert bad_day.rows(f"FROM main.cheapest_gpu_per_workload WHERE source = '{broken.source}'") == []


@pytest.mark.parametrize("name", RECOVERING)
def test_a_source_that_comes_round_is_published(name: str, bad_day: Published, sample_home: Home) -> None:
    source, _, retries = RECOVERING[name]
    outcome = bad_day.outcome(source)
    assert (outcome["accepted"], outcome["status"], outcome["retries"]) == (True, "captured", retries)
    assert bad_day.prices(source) == Published(sample_home, bad_day.report).prices(source)


@pytest.mark.parametrize("source", WELL)
def test_the_other_sources_are_published_as_ever(source: str, bad_day: Published, sample_home: Home) -> None:
    assert bad_day.outcome(source)["accepted"]
    assert bad_day.health(source)["state"] == "current"
    assert bad_day.prices(source) == Published(sample_home, bad_day.report).prices(source)


def test_redirect_to_another_port_of_this_machine_is_refused(bad_day: Published) -> None:
    assert bad_day.elsewhere == []


def test_a_host_that_refuses_connections_costs_only_its_own_newness(
    bad_day: Published, tmp_path: Path
) -> None:
    """All of a replay server's sources are on one port, so this one is asked alone: the day after."""
    home = Home(tmp_path / "home")
    shutil.copytree(bad_day.home.root, home.root)
    with refusing() as url:
        options: dict[str, Any] = {"sources": ("runpod",), "environment": {}, "limits": LIMITS}
        report = refresh(home, day=DAY + timedelta(days=1), pages=url, **options)
    after = Published(home, report)
    assert "connection_refused" in after.outcome("runpod", DAY + timedelta(days=1))["error"]
    assert (after.health("runpod")["state"], after.health("runpod")["age_days"]) == ("failing", 1)
    for source in WELL:
        assert after.prices(source) == bad_day.prices(source)


# ------------------------------------------------------------------ wrong prices on the first day


def times(factor: str) -> Callable[[re.Match[str]], str]:
    return lambda found: found[1] + f"{Decimal(found[2].replace(',', '')) * Decimal(factor):f}"


def each_dollar_price(factor: str) -> Edit:
    return lambda page: re.sub(r"(\$\s?)([\d,]+\.\d+)", times(factor), page)


def each_number(name: str, factor: str) -> Edit:
    return lambda page: re.sub(rf'("{name}": )(\d+\.?\d*)', times(factor), page)


def doubled_list(name: str) -> Edit:
    def edit(page: str) -> str:
        content = json.loads(page)
        content[name] += content[name]
        return json.dumps(content)

    return edit


def second_spot_price(page: str) -> str:
    """Crusoe asks nothing for an H100 on spot; here it asks more than on demand."""
    before, h100, after = page.partition('<h4 class="pricing-item-heading">NVIDIA H100</h4>')
    return before + h100 + re.sub(r"<p><a [^>]*>Contact sales</a></p>", "<p>$9.99/GPU-hr</p>", after, count=1)


# How strings of a page could do harm: in SQL, spreadsheets, browsers, terminals, rich, C, and the eye.
HOSTILE = {
    "sql": "x'); DROP TABLE main.offers; --",
    "formula": '=HYPERLINK("http://evil.example","free GPUs")',
    "formula with a sign": "@SUM(1+1)*cmd|' /C calc'!A0",
    "html": "<script>alert(1)</script>",
    "markup": "[red]eu-west[/red][link=http://evil.example]x[/link]",
    "escape code": "\x1b]0;owned\x07\x1b[31mred\x9b2J",
    "nul": "eu\x00west",
    "half a character": "eu\ud800west",
    "turned round": "eu\u202etsew",
    "lines": "eu\r\nwest",
}
PLAIN = HOSTILE | {
    "escape code": "\ufffd]0;owned\ufffd\ufffd[31mred\ufffd2J",
    "nul": "eu\ufffdwest",
    "half a character": "eu\ufffdwest",
    "turned round": "eutsew",
    "lines": "eu  west",
}
LONG = "H100 " * 100_000
HOLD_TEXT_OF_PAGES = (
    "offers",
    "offers_latest",
    "rejects",
    "unmatched_labels",
    "unmatched_regions",
    "capture_outcomes",
    "rentals",
)


def hostile_machines(page: str) -> str:
    """Return a page with each string as a machine's region and as the name of an unknown GPU."""
    content = json.loads(page)
    machine = next(each for each in content["machineTypes"] if each["gpuModel"] == "L40S")
    for text in HOSTILE.values():
        content["machineTypes"].append(machine | {"dataCenterId": text})
        content["machineTypes"].append(machine | {"gpuModel": text, "machineType": text})
    content["machineTypes"].append(machine | {"gpuModel": LONG})
    content["machineTypes"].append(machine | {"dataCenterId": LONG})
    return json.dumps(content)


def ten_times_the_price_of(plan_code: str) -> Edit:
    """One plan of OVHcloud's catalogue, whose prices are in 1e-8 of the currency."""

    def edit(page: str) -> str:
        content = json.loads(page)
        (plan,) = [each for each in content["addons"] if each["planCode"] == plan_code]
        (pricing,) = plan["pricings"]
        pricing["price"] *= 10
        pricing["formattedPrice"] = f"{Decimal(pricing['price']).scaleb(-8):.2f} €"
        return json.dumps(content)

    return edit


RUNPOD_PRICES = "(?:secure|community|secureSpot|communitySpot|oneWeek|oneMonth|threeMonth|sixMonth)Price"

WRONG_PRICES: dict[tuple[str, str], Edit] = {
    ("lambda", "pricing.html"): each_dollar_price("10"),
    ("linode", "types.json"): each_number("hourly", "100"),
    ("digitalocean", "droplets_pricing.html"): each_dollar_price("0.01"),
    ("runpod", "gpu_types.json"): each_number(RUNPOD_PRICES, "0.1"),
    ("ovh", "catalogue_fr.json"): ten_times_the_price_of("l40s-360.consumption"),
    ("together", "pricing.html"): lambda page: page.replace("$8.19", "$0.00"),
    ("crusoe", "pricing.html"): second_spot_price,
    ("vultr", "plans_vcg.json"): doubled_list("plans"),
    ("cudo", "machine_types.json"): hostile_machines,
}


@pytest.fixture(scope="module")
def dear_day(small_homes: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A first day on which many pages say wrong prices."""
    folder = tmp_path_factory.mktemp("dear-day")
    pages = edited(folder / "pages", WRONG_PRICES)
    return published(small_homes(folder / "home"), pages, {})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lambda", "prices are not between"),
        ("linode", "prices are not between"),
        ("digitalocean", "prices are not between"),
    ],
    ids=["prices x10", "cents for dollars", "dollars for cents"],
)
def test_a_page_whose_prices_are_out_of_bounds_fails_its_source(
    source: str, message: str, dear_day: Published
) -> None:
    assert message in dear_day.outcome(source)["reason"]
    assert message in dear_day.health(source)["why"]
    assert dear_day.offers(source) == []


def test_a_page_at_a_tenth_of_what_was_seen_fails_its_source_though_within_its_bounds(
    dear_day: Published,
) -> None:
    assert "compared prices are not believed (price_out_of_line)" in dear_day.outcome("runpod")["reason"]
    assert dear_day.offers("runpod") == []


def test_one_price_ten_times_that_of_the_same_card_is_not_ranked_and_the_rest_is(dear_day: Published) -> None:
    (wrong,) = dear_day.offers("ovh", "instance_type = 'l40s-360'")
    assert (wrong["native_price"], wrong["ranked"], wrong["flag_reason"]) == (56, False, "uneven_prices")
    others = dear_day.offers("ovh", "instance_type <> 'l40s-360'")
    assert {offer["flag_reason"] for offer in others if not offer["ranked"]} == {"coming_soon"}
    assert {offer["native_price"] for offer in others if offer["ranked"]} >= {Decimal("1.4"), Decimal("2.8")}


def test_a_price_of_zero_is_a_reject(dear_day: Published) -> None:
    rejects = dear_day.rows("FROM main.rejects WHERE source = 'together' AND reason = 'zero_price'")
    assert [("$0.00" in row["raw"] or "0.00" in row["detail"]) for row in rejects] == [True]
    assert dear_day.outcome("together")["accepted"]
    assert dear_day.offers("together", "gpu_id LIKE 'b200%' AND price_kind = 'on_demand'") == []


def test_a_spot_price_above_on_demand_is_in_doubt(dear_day: Published) -> None:
    (spot,) = dear_day.offers("crusoe", "price_kind = 'spot'")
    assert (spot["native_price"], spot["flag_reason"]) == (Decimal("9.99"), "spot_not_below_on_demand")
    assert (spot["ranked"], spot["not_ranked_reason"]) == (False, "flagged")


def test_what_stands_twice_is_published_once(dear_day: Published, sample_home: Home) -> None:
    duplicates = dear_day.rows("FROM main.rejects WHERE source = 'vultr' AND reason = 'duplicate'")
    assert len(duplicates) >= 5
    assert dear_day.prices("vultr") == Published(sample_home, dear_day.report).prices("vultr")


# None of its own prices is wrong there, and nothing that is wrong elsewhere moves its ranking.
@pytest.mark.parametrize("source", ["aws", "azure", "gcp", "oci", "nebius", "scaleway", "verda", "modal"])
def test_wrong_prices_of_some_leave_the_others_as_they_are(
    source: str, dear_day: Published, sample_home: Home
) -> None:
    query = f"SELECT raw_label, region, usd_per_gpu_hour, ranked, not_ranked_reason FROM main.offers_latest \
        WHERE source = '{source}' ORDER BY ALL"
    assert dear_day.rows(query) == Published(sample_home, dear_day.report).rows(query)


def test_no_wrong_price_is_in_any_ranking(dear_day: Published) -> None:
    """For sources with wrong prices, only prices that the sample page also has are ranked."""
    ranked = dear_day.rows("SELECT DISTINCT source, native_price FROM main.cheapest_gpu_per_workload")
    for source in {source for source, _ in WRONG_PRICES}:
        with (PAGES / source / "expected.csv").open(encoding="utf-8") as file:
            right = {Decimal(row["native_price"]) for row in csv.DictReader(file)}
        assert {row["native_price"] for row in ranked if row["source"] == source} <= right


# ------------------------------------------------------------------ hostile strings


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_string_is_kept_as_plain_text(name: str, dear_day: Published) -> None:
    with reader(dear_day.home.published) as connection:
        region = ask(
            connection,
            "SELECT gpu_id, ranked FROM main.offers_latest WHERE source = 'cudo' AND region = ?",
            [PLAIN[name]],
        )
        label = ask(
            connection,
            "SELECT DISTINCT match_status, gpu_id FROM main.offers_latest WHERE instance_type = ?",
            [PLAIN[name]],
        )
    # Two of the strings differ only in what must not be shown; their offers are then one.
    assert region.rows == [("l40s", True)]
    assert label.rows == [("unknown", None)]


def test_a_label_without_end_is_a_reject(dear_day: Published) -> None:
    rejects = dear_day.rows("FROM main.rejects WHERE source = 'cudo' AND reason = 'text_too_long'")
    assert len(rejects) == 2
    assert max(len(row["detail"]) + len(row["raw"]) for row in rejects) < 5_000


def test_a_hostile_string_harms_no_spreadsheet(dear_day: Published, tmp_path: Path) -> None:
    tables = ("--format", "csv", "--tables", ",".join(HOLD_TEXT_OF_PAGES))
    done = gpufare("export", str(tmp_path / "csv"), *tables, home=dear_day.home)
    assert done.returncode == 0, done.stderr
    seen = set()
    files = sorted((tmp_path / "csv").rglob("*.csv"))
    assert len(files) >= len(HOLD_TEXT_OF_PAGES)
    for file in files:
        with file.open(encoding="utf-8", newline="") as rows:
            for row in csv.reader(rows):
                for cell in row:
                    assert not re.match(r"[=@\t\r]|[+-](?![\d.]+$)", cell), (file.name, cell)
                    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", cell), (file.name, cell)
                    seen.add(cell)
    assert {f"'{HOSTILE['formula']}", f"'{HOSTILE['formula with a sign']}", HOSTILE["sql"]} <= seen


@pytest.mark.parametrize("form", ["table", "csv", "json", "record"])
def test_a_hostile_string_harms_no_terminal_and_no_reader_of_its_output(
    form: str, dear_day: Published
) -> None:
    query = "SELECT region, instance_type FROM main.offers_latest WHERE source = 'cudo'"
    shown = gpufare("sql", query, "--format", form, home=dear_day.home)
    assert shown.returncode == 0, shown.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown.stdout)
    if form in {"table", "record"}:
        assert HOSTILE["markup"] in shown.stdout
        assert HOSTILE["html"] in shown.stdout
    elif form == "json":
        rows = json.loads(shown.stdout)
        assert set(PLAIN.values()) <= {row["region"] for row in rows}
    else:
        cells = {cell for row in csv.reader(shown.stdout.splitlines()) for cell in row}
        assert {HOSTILE["sql"], f"'{HOSTILE['formula']}", HOSTILE["markup"]} <= cells


def test_a_hostile_string_harms_no_log(dear_day: Published) -> None:
    assert all(line.isprintable() for line in dear_day.report.lines())


def test_a_hostile_page_is_kept_as_it_came(dear_day: Published) -> None:
    """The archive holds the bytes of the answer, so that a later reader can be stricter still."""
    (index,) = (dear_day.home.archive / "cudo" / str(DAY)).glob("*/index.json")
    (entry,) = json.loads(index.read_text(encoding="utf-8"))["answers"]
    assert entry["bytes"] > 1_000_000
    assert entry["sha256"] == dear_day.outcome("cudo")["sha256"]


# ------------------------------------------------------------------ wrong prices where yesterday's are known

NEXT_DAY = DAY + timedelta(days=1)

JUMPS: dict[tuple[str, str], Edit] = {
    ("lambda", "pricing.html"): each_dollar_price("10"),
    ("crusoe", "pricing.html"): each_dollar_price("3"),
    ("azure", "page_1.json"): each_number("(?:retailPrice|unitPrice)", "0.1"),
    ("azure", "page_2.json"): each_number("(?:retailPrice|unitPrice)", "0.1"),
    ("nebius", "prices.html"): lambda page: page.replace("from $1.55", "from $3.55"),
    ("salad", "pricing.html"): lambda page: re.sub(r"(<tr>.*?</tr>\s*){8}", "", page, count=1),
    ("hyperstack", "gpu-pricing.html"): lambda page: each_dollar_price("3")(page.replace("NVIDIA ", "")),
    ("jarvislabs", "pricing.html"): lambda page: page.replace("H100", "H900"),
}


@pytest.fixture(scope="module")
def next_day(
    sample_home: Home, small_homes: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory
) -> Published:
    """The day after the sample pages, with wrong prices that only yesterday's tell."""
    folder = tmp_path_factory.mktemp("next-day")
    home = small_homes(folder / "home")
    for record in ("archive", "record"):
        shutil.copytree(sample_home.root / record, home.root / record)
    pages = edited(folder / "pages", JUMPS)
    return published(home, pages, {"oci": says(403)}, NEXT_DAY)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lambda", "prices are not between"),
        ("crusoe", "6 of 6 compared prices are not believed (price_jump)"),
        ("azure", "compared prices are not believed (price_jump)"),
        ("hyperstack", "compared prices are not believed (price_jump)"),
        ("salad", "offers"),
        ("oci", "http_403"),
    ],
    ids=[
        "prices x10",
        "prices x3",
        "prices / 10",
        "new names and prices x3",
        "half of the table gone",
        "403",
    ],
)
def test_a_source_that_fails_keeps_its_last_good_prices_with_their_age(
    source: str, message: str, next_day: Published, sample_home: Home
) -> None:
    outcome = next_day.outcome(source, NEXT_DAY)
    assert not outcome["accepted"]
    assert message in f"{outcome['reason']} {outcome['error']}"
    health = next_day.health(source)
    assert (health["state"], health["age_days"]) == ("failing", 1)
    assert message in health["why"]
    assert next_day.prices(source) == Published(sample_home, next_day.report).prices(source)
    assert {offer["age_days"] for offer in next_day.offers(source)} == {1}


def test_a_single_price_that_jumps_is_held_back(next_day: Published) -> None:
    (held,) = next_day.rows(
        f"FROM main.rejects WHERE source = 'nebius' AND reason = 'price_jump' AND day = DATE '{NEXT_DAY}'"
    )
    assert "1.55" in held["detail"]
    assert "3.55" in held["detail"]
    assert next_day.outcome("nebius", NEXT_DAY)["accepted"]
    assert next_day.offers("nebius", "native_price = 3.55") == []


def test_unknown_card_is_shown_but_not_ranked(next_day: Published) -> None:
    (offer,) = next_day.offers("jarvislabs", "raw_label LIKE 'H900%'")
    assert (offer["gpu_id"], offer["ranked"], offer["not_ranked_reason"]) == (None, False, "gpu_not_settled")
    assert next_day.rows("FROM main.unmatched_labels WHERE raw_label LIKE 'H900%'")
