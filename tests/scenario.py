"""Three days of a dozen sources, refreshed over HTTP on loopback: a good day, a bad one and a mended one.

On the good day every source answers; one page has a price of zero, and one a spot price above on-demand.
On the bad day every class of failure happens to one source. On the mended day the pages are as on the good
day. Salad is asked on the good day only. Before the mended day, a clock that was ahead left a future day.
"""

import json
import pickle
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.refresh.import_file import import_file
from pipeline.refresh.ingest import record_day
from pipeline.refresh.refresh import refresh
from pipeline.refresh.report import RefreshReport
from pipeline.warehouse.query import ask, reader
from tests.homes import PAGES, made_once, planned_home, small_catalogue
from tests.refresh import faulty_server as host
from tests.refresh.faulty_server import Fault, FaultyHandler, FaultyServer

GOOD, BAD, MENDED = date(2026, 8, 22), date(2026, 8, 23), date(2026, 8, 24)
AHEAD = date(2962, 8, 22)
"""A mistyped year."""
LIMITS = Limits(response_seconds=20, read_seconds=20, backoff_seconds=0.01, backoff_max_seconds=0.02)

SOURCES = (
    *("crusoe", "cudo", "ecb", "hyperstack", "lambda", "linode", "primeintellect", "runpod", "salad"),
    *("scaleway", "tensordock", "together", "vast"),
)

IMPORTED = """\
day,gpu,provider,price_kind,usd_per_gpu_hour,gpu_count,country,source,evidence
2025-06-05,H100 SXM,AWS,on_demand,6.88,8,US,https://aws.amazon.com/ec2/p5/,55.04 after a cut of 44 %
2026-08-21,H100 SXM,AWS,on_demand,6.88,8,US,https://aws.amazon.com/ec2/p5/,the same
"""

HOSTILE = "<img src=x onerror=alert(1)> [click](http://evil.example) @everyone <!channel> `rm` *now* \x1b[31m"
"""What stands in place of Lambda's prices on the bad day."""

HOSTILE_NAMES: Mapping[str, str | None] = {
    "x'); DROP TABLE main.offers; --": None,
    '=HYPERLINK("http://evil.example","free GPUs")': None,
    "@SUM(1+1)*cmd|' /C calc'!A0": None,
    "<script>alert(1)</script>": None,
    "[red]eu-west[/red][link=http://evil.example]x[/link]": None,
    "\x1b]0;owned\x07\x1b[31mred\x9b2J": "\ufffd]0;owned\ufffd\ufffd[31mred\ufffd2J",
    "eu\x00west": "eu\ufffdwest",
    "eu\ud800west": "eu\ufffdwest",
    "eu\u202etsew": "eutsew",
    "eu\r\nwest": "eu  west",
}
"""Names of Cudo's regions and GPUs on the bad day, and how they are kept: None as they came. They could do
harm in SQL, spreadsheets, browsers, terminals, rich, C, and to the eye."""

Edit = Callable[[str], str]


def times(pattern: str, factor: str) -> Edit:
    """Multiply the numbers that the pattern's second group finds."""

    def product(found: re.Match[str]) -> str:
        return found[1] + f"{Decimal(found[2].replace(',', '')) * Decimal(factor):f}"

    return lambda page: re.sub(pattern, product, page)


def of_runpod(page: str) -> str:
    """One price falls by a tenth, and one is ten times as high."""
    content = json.loads(page)
    cards = {gpu["id"]: gpu for gpu in content["data"]["gpuTypes"]}
    cards["NVIDIA A100 80GB PCIe"]["securePrice"] = 1.30
    cards["NVIDIA GeForce RTX 4090"]["securePrice"] *= 10
    return json.dumps(content)


def of_cudo(page: str) -> str:
    """Each hostile name is a machine's region and an unknown GPU; two names have no end."""
    content = json.loads(page)
    machine = next(each for each in content["machineTypes"] if each["gpuModel"] == "L40S")
    endless = "H100 " * 100_000
    for text in (*HOSTILE_NAMES, endless):
        content["machineTypes"].append(machine | {"dataCenterId": text})
        content["machineTypes"].append(machine | {"gpuModel": text, "machineType": text[:100]})
    return json.dumps(content)


def of_crusoe(page: str) -> str:
    """Crusoe asks nothing for an H100 on spot; here it asks more than on demand."""
    before, h100, after = page.partition('<h4 class="pricing-item-heading">NVIDIA H100</h4>')
    return before + h100 + re.sub(r"<p><a [^>]*>Contact sales</a></p>", "<p>$9.99/GPU-hr</p>", after, count=1)


EDITS: Mapping[date, Mapping[tuple[str, str], Edit]] = {
    GOOD: {
        ("crusoe", "pricing.html"): of_crusoe,
        ("together", "pricing.html"): lambda page: page.replace("$8.19", "$0.00"),
    },
    BAD: {
        ("cudo", "machine_types.json"): of_cudo,
        ("ecb", "eurofxref-daily.xml"): times(r"(currency='GBP' rate=')([\d.]+)", "10"),
        ("lambda", "instances.html"): lambda page: f"<html><body>{HOSTILE}</body></html>",
        ("lambda", "pricing.html"): lambda page: f"<html><body>{HOSTILE}</body></html>",
        ("linode", "types.json"): times(r'("hourly": )(\d+\.?\d*)', "100"),
        ("runpod", "gpu_types.json"): of_runpod,
        ("scaleway", "servers_fr-par-2.json"): lambda page: page.replace('"ncpus"', '"cpus"'),
    },
    MENDED: {},
}


def second_request_fails(asked: FaultyHandler) -> None:
    """Answer all but the second request."""
    if asked.asked == 2:
        asked.say(404)
    else:
        asked.say_page()


FAULTS: Mapping[date, Mapping[str, Fault]] = {
    GOOD: {"lambda": host.first(2, host.says(500))},
    BAD: {
        "crusoe": host.says(403, b"<h1>Forbidden</h1>"),
        "hyperstack": host.redirects_to("http://169.254.169.254/latest/meta-data/"),
        "together": host.breaks_off,
        "vast": second_request_fails,
    },
    MENDED: {},
}


def pages_of(day: date, folder: Path) -> Path:
    """The sources' pages of a day; an edit that changes nothing is an error."""
    for source in SOURCES:
        shutil.copytree(PAGES / source, folder / source)
        if day == MENDED and source == "lambda":
            continue  # a page that was saved two days before
        index = folder / source / "index.json"
        at = f"{day}T06:00:00Z"
        entries = [entry | {"observed_at": at} for entry in json.loads(index.read_text(encoding="utf-8"))]
        index.write_text(json.dumps(entries), encoding="utf-8")
    for (source, name), edit in EDITS[day].items():
        page = folder / source / name
        before = page.read_text(encoding="utf-8")
        after = edit(before)
        assert after != before, f"{source}'s page is not what the edit was written for"
        page.write_text(after, encoding="utf-8", errors="surrogatepass")
    return folder


def asked_on(day: date) -> list[str]:
    """The sources of a day's refresh."""
    return [name for name in SOURCES if name != "salad" or day == GOOD]


def noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Scenario:
    """The homes as they were after each day's refresh (to read only), and what the refreshes reported."""

    folder: Path

    @property
    def catalogue(self) -> Path:
        """The small catalogue with which the days were published."""
        return self.folder.parent / "catalog"

    def home(self, day: date) -> Home:
        return Home(self.folder / f"{day}")

    def report(self, day: date) -> RefreshReport:
        report: RefreshReport = pickle.loads((self.folder / f"{day}.pickle").read_bytes())
        return report

    def pages(self, day: date) -> Path:
        return self.folder / f"pages-{day}"

    def rows(self, day: date, query: str) -> list[tuple[Any, ...]]:
        """Rows of what was published on a day, as it looked to a reader of that day."""
        with reader(self.home(day).published) as connection:
            ask(connection, f"SET VARIABLE today = DATE '{day}'")
            return ask(connection, query).rows

    def serving(self, day: date) -> FaultyServer:
        """The hosts of a day."""
        return FaultyServer(self.pages(day), FAULTS[day])


def refreshed(home: Home, day: date, **options: Any) -> RefreshReport:
    """Refresh at noon of a day."""
    return refresh(home, **({"day": day, "environment": {}, "now": noon(day), "limits": LIMITS} | options))


def make_scenario(folder: Path) -> None:
    """Refresh the three days in a new folder beside the small catalogue and its plans."""
    scenario, shared = Scenario(folder), folder.parent
    folder.mkdir()
    (folder / "prices.csv").write_text(IMPORTED, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CATALOG_DIR", made_once(shared / "catalog", small_catalogue))
        home = planned_home(shared, folder / "home")
        import_file(folder / "prices.csv", home, GOOD)
        for day in (GOOD, BAD, MENDED):
            pages_of(day, scenario.pages(day))
            if day == MENDED:
                config, pages, archive = source_config("linode"), scenario.pages(GOOD), Archive(home.archive)
                ahead = capture_pages(pages, config, day=AHEAD, archive=archive)
                assert record_day(config, AHEAD, [ahead], home).accepted
            with scenario.serving(day) as server:
                report = refreshed(home, day, pages=server.base_url, sources=asked_on(day))
            assert report.published, report.failure()
            (folder / f"{day}.pickle").write_bytes(pickle.dumps(report))
            shutil.copytree(home.root, scenario.home(day).root)
    shutil.rmtree(home.root)
