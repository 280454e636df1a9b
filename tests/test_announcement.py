"""What a live refresh says before it asks."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.visit import MAX_PARALLEL, first_requests
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.report import announcement, seconds_in_parallel
from pipeline.sources import source_module

TODAY = datetime.now(UTC).date()


def chosen(*names: str) -> list[SourceConfig]:
    return [source_config(name) for name in names]


def captured(home: Home, source: str, seconds: float, replayed_from: str | None = None) -> None:
    """A capture that took so long."""
    writer = Archive(home.archive).start(source, TODAY, replayed_from=replayed_from)
    writer.add(Entry(url="https://a.example/1", outcome="ok"), b"{}")
    writer.finish()
    index = writer.folder / "index.json"
    content = json.loads(index.read_text())
    content["duration_seconds"] = seconds
    index.chmod(0o644)
    index.write_text(json.dumps(content))


def test_before_the_first_day_all_is_said(tmp_path: Path) -> None:
    lines = announcement(chosen("modal", "gcp", "primeintellect", "vast"), Home(tmp_path), {})
    assert lines[0].startswith("asking 2 sources without a key: at least ")
    assert any(line.startswith("off by their terms: vast;") for line in lines)
    assert any("set PRIME_API_KEY (primeintellect)" in line for line in lines)
    facts = source_config("gcp").coverage
    assert f"a key would add to gcp: {facts.with_key}; set GCP_API_KEY: {facts.key_from}" in lines


def test_with_a_key_the_source_is_asked_and_the_key_not_shown(tmp_path: Path) -> None:
    keys = {"PRIME_API_KEY": "secret-of-mine", "GCP_API_KEY": " "}
    lines = announcement(chosen("modal", "gcp", "primeintellect"), Home(tmp_path), keys)
    assert lines[0].startswith("asking 2 sources without a key and primeintellect with your keys: ")
    assert not any("primeintellect" in line or "secret-of-mine" in line for line in lines[1:])
    assert any(line.startswith("a key would add to gcp") for line in lines)


def test_after_a_first_accepted_day_one_line_is_enough(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Records(home).write_accepted(TODAY - timedelta(days=1), "modal", [])
    (line,) = announcement(chosen("modal", "gcp", "primeintellect", "vast"), home, {})
    assert line.startswith("asking 2 sources without a key: ")


def test_without_an_earlier_capture_the_pauses_are_counted(tmp_path: Path) -> None:
    """Those between requests to one host; a page's robots.txt is one of them, an API's is not asked."""
    api = source_config("azure")
    asked = len(first_requests(api, source_module("azure"), {}))
    assert asked > 1
    least = math.ceil((asked - 1) * api.spacing_seconds)
    pauses = f"{asked} requests {api.spacing_seconds:g} s apart"
    (line,) = announcement([api], Home(tmp_path), {})
    assert line == f"asking 1 source without a key: at least {least} s; azure takes the longest: {pauses}"
    page = source_config("modal")
    (line,) = announcement([page], Home(tmp_path), {})
    assert line == f"asking 1 source without a key: at least {page.spacing_seconds:.0f} s"


def test_a_single_request_has_no_pauses_and_no_estimate(tmp_path: Path) -> None:
    (line,) = announcement(chosen("cudo"), Home(tmp_path), {})
    assert line == "asking 1 source without a key"


def test_a_key_that_only_turns_its_source_on_adds_nothing(tmp_path: Path) -> None:
    lines = announcement(chosen("vast", "gcp"), Home(tmp_path), {})
    assert [line.split(":")[0] for line in lines if "would add" in line] == ["a key would add to gcp"]
    assert any(line.startswith("off by their terms: vast;") and "VAST_API_KEY" in line for line in lines)


def test_what_the_last_visits_took_is_what_the_next_ones_take(tmp_path: Path) -> None:
    home = Home(tmp_path)
    captured(home, "modal", 42)
    captured(home, "lambda", 17)
    captured(home, "together", 300, replayed_from="http://127.0.0.1:1")
    two, asking = chosen("modal", "lambda"), "asking 2 sources without a key"
    assert announcement(two, home, {})[0] == f"{asking}: about 42 s"
    of_a_replay = announcement(chosen("modal", "together"), home, {})[0]
    assert of_a_replay == f"{asking}: at least 42 s"
    captured(home, "modal", 250)
    assert announcement(two, home, {})[0] == f"{asking}: about 5 min"


@pytest.mark.parametrize(
    ("durations", "seconds"),
    [([], 0), ([10] * MAX_PARALLEL, 10), ([10] * (MAX_PARALLEL + 1), 20), ([100, *[10] * MAX_PARALLEL], 100)],
)
def test_groups_are_asked_in_parallel(durations: list[float], seconds: float) -> None:
    assert seconds_in_parallel(durations) == seconds
