"""Each part of `make stress` for a few seconds, so that the harness itself stays alive."""

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.home import paths
from tests.conftest import shared_folder
from tests.nightly.stress import damage, disk, kills, readers, report, runner, two_at_once, year
from tests.nightly.stress.__main__ import PARTS
from tests.nightly.stress.homes import Lab
from tests.nightly.stress.market import FIRST_DAY, SOURCES, Market

SEED = "smoke"


@pytest.fixture
def lab(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(paths, "CATALOG_DIR", paths.CATALOG_DIR)  # a part may set it in this process
    return Lab(tmp_path, shared_folder(tmp_path_factory), Market(SEED))


def test_a_kill(lab: Lab) -> None:
    found = kills.run(lab, "0-1", SEED, kills=1)
    assert found["problems"] == []
    assert found["running"] > 0


@pytest.mark.slow
def test_two_readers_over_two_publishes(lab: Lab) -> None:
    found = readers.run(lab, "publishes 1-2", SEED, publishes=2, readers=2)
    assert found["problems"] == []
    assert found["looks"] > 4


def test_a_full_disk(lab: Lab) -> None:
    assert disk.run(lab, "40 KiB left", SEED)["problems"] == []


@pytest.mark.slow
def test_two_refreshes_at_once(lab: Lab) -> None:
    assert two_at_once.run(lab, "pair 1", SEED)["problems"] == []


@pytest.mark.parametrize(
    "unit",
    ["offers: truncated", "journal: empty", "offers: stray copy"],
)
def test_a_damaged_file(unit: str, lab: Lab) -> None:
    assert damage.run(lab, unit, SEED)["problems"] == []


@pytest.mark.slow
def test_days_that_are_interrupted(lab: Lab) -> None:
    seed = "days 640"  # a killed run, then a damaged file
    year.run(lab, "1 days", seed)
    days = (lab.folder / "days.jsonl").read_text()
    found = year.run(lab, "4 days", seed)
    assert found["problems"] == []
    assert (lab.folder / "days.jsonl").read_text().startswith(days)
    assert (found["days"], len(found["faults"])) == (4, 2)


def test_the_days_of_a_year_that_are_published() -> None:
    def published(*troubles: tuple[int, str, str]) -> list[int]:
        found = [year.Trouble(FIRST_DAY + timedelta(days=at), kind, source) for at, kind, source in troubles]
        by_day = {trouble.day: trouble for trouble in found}
        days = [FIRST_DAY + timedelta(days=number) for number in range(1, 7)]
        return [at for at, day in enumerate(days, 1) if year.publishing(at, day, by_day)]

    assert published() == []
    assert published((3, "moved", "crusoe")) == [3]
    assert published((3, "damaged file", "")) == [3, 4]
    assert published(*((at, "down", "ecb") for at in (2, 3, 4, 5))) == [2, 5]
    assert published((2, "down", "ecb"), (3, "down", "linode"), (4, "moved", "linode")) == [2, 3, 4]


def test_the_part_of_one_unit_begins_first() -> None:
    order = runner._interleaved([[(PART, "a1"), (PART, "a2")], [(PART, "b1")], [(PART, "c1"), (PART, "c2")]])
    assert [unit for _, unit in order] == ["b1", "a1", "c1", "a2", "c2"]


# ------------------------------------------------------------------ the harness can fail


def _run(lab: Lab, unit: str, seed: str) -> runner.Figures:
    if unit == "raises":
        raise ValueError("of the harness")
    return {"problems": [] if unit == "good" else ["<b>bad</b> in /somewhere/else"]}


def _units(seed: str) -> list[str]:
    return ["good", "bad", "raises"]


def _figures(found: object) -> str:
    return "all of it"


PART = runner.Part("made_up", "a test", _units, _run, _figures, 1)


def test_results_are_kept_and_not_made_again(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        assert runner.run([PART], SEED, tmp_path / "results", minutes=1, workers=1, say=said.append)
    assert [line for line in said if "units to run" in line][1].startswith("0 units")
    kept = runner.Results(tmp_path / "results").read("made_up")
    results = {found["unit"]: found["problems"] for found in kept}
    assert results["good"] == []
    assert "of the harness" in results["raises"][0]
    with (tmp_path / "results" / "made_up.jsonl").open("a") as file:
        file.write('{"unit": "cut')
    assert runner.Results(tmp_path / "results").units("made_up") == {"good", "bad", "raises"}

    document = tmp_path / "stress.md"
    document.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(document, report.table([PART], SEED, tmp_path / "results"))
    text = document.read_text()
    assert "| `made_up` | a test: all of it | 3 of 3 | 2 |" in text
    assert "- `made_up` bad: ‹b>bad‹/b> in" in text
    assert "/somewhere" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "\nold\n" not in text


def test_a_run_ends_in_time(tmp_path: Path) -> None:
    assert not runner.run([PART], SEED, tmp_path, minutes=0, workers=1, say=lambda line: None)


def test_the_made_up_prices_move_and_stay_in_their_range() -> None:
    market = Market(SEED)
    shares = [market.share("crusoe", FIRST_DAY + timedelta(days=day)) for day in range(365)]
    assert len(set(shares)) > 50
    assert 0.84 < min(shares) < max(shares) < 1.16
    assert market.truth(FIRST_DAY).keys() == set(SOURCES) - {"ecb"}


def test_every_part_has_units_and_a_name_of_its_own() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        assert len(set(part.units(SEED))) == len(part.units(SEED)) > 0
