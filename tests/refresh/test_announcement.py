"""The announcement of a live refresh before its requests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.report import announcement

TODAY = datetime.now(UTC).date()


def chosen(*names: str) -> list[SourceConfig]:
    return [source_config(name) for name in names]


def test_first_refresh_names_the_benefit_of_a_key(tmp_path: Path) -> None:
    lines = announcement(chosen("modal", "gcp", "primeintellect", "vast"), Home(tmp_path), {})
    assert lines[0] == "asking 2 sources without a key"
    facts = source_config("gcp").coverage
    assert f"a key would add to gcp: {facts.with_key}; set GCP_API_KEY: {facts.key_from}" in lines


def test_with_a_key_the_source_is_asked_and_the_key_not_shown(tmp_path: Path) -> None:
    keys = {"PRIME_API_KEY": "secret-of-mine", "GCP_API_KEY": " "}
    lines = announcement(chosen("modal", "gcp", "primeintellect"), Home(tmp_path), keys)
    assert lines[0] == "asking 2 sources without a key and primeintellect with your keys"
    assert not any("primeintellect" in line or "secret-of-mine" in line for line in lines[1:])
    assert any(line.startswith("a key would add to gcp") for line in lines)


def test_after_a_first_accepted_day_one_line_is_enough(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Records(home).write_accepted(TODAY - timedelta(days=1), "modal", [])
    (line,) = announcement(chosen("modal", "gcp", "primeintellect", "vast"), home, {})
    assert line == "asking 2 sources without a key"


def test_a_key_that_only_turns_its_source_on_adds_nothing(tmp_path: Path) -> None:
    lines = announcement(chosen("vast", "gcp"), Home(tmp_path), {})
    assert [line.split(":")[0] for line in lines if "would add" in line] == ["a key would add to gcp"]
