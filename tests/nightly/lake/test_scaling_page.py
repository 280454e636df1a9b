"""docs/how-to/scaling.md: its commands, variables and links exist, and its amounts follow from its rates."""

import re
import shlex
from pathlib import Path

import pytest

from pipeline.lake.catalogue import LAKE_VARIABLE

PROJECT = Path(__file__).parents[3]
DOCS = PROJECT / "docs" / "how-to"
PAGE = (DOCS / "scaling.md").read_text(encoding="utf-8")
OFFERS, SOURCES, DAYS = 10e6, 1_000, 3_650

RATE = re.compile(r"^\| ([a-z ]+) \| ([\d.]+) \| (?:µs|bytes)", re.MULTILINE)
RATES = {name: float(value) for name, value in RATE.findall(PAGE)}
AMOUNTS = {
    name: float(value) * {"min": 60, "h": 3600, "s": 1, "million": 1e6, "GB": 1e9}[unit]
    for name, value, unit in re.findall(r"^\| ([^|]+) \| ([\d.]+) (\w+) \|", PAGE, re.MULTILINE)
}
EXPECTED = {
    "publish a day": OFFERS * RATES["publish"] / 1e6,
    "write a month's last day": OFFERS * 30 * RATES["rewrite"] / 1e6,
    "record without the journal": OFFERS * DAYS * RATES["record"],
    "journal, ten years": SOURCES * DAYS * RATES["journal"],
    "archive without its pages": SOURCES * DAYS * RATES["archive"],
    "push a day, all machines together": OFFERS * RATES["lake push"] / 1e6,
    "lake, ten years, never merged": OFFERS * DAYS * RATES["lake file"],
    "files in the lake, never merged": SOURCES * 2 * DAYS,
}


def test_the_amounts_follow_from_the_rates() -> None:
    assert pytest.approx(EXPECTED, rel=0.01) == AMOUNTS


def test_the_variable_and_the_target_exist() -> None:
    assert LAKE_VARIABLE in set(re.findall(r"GPUFARE_\w+", PAGE))
    assert "$(VENV)/lake/.ready:" in (PROJECT / "Makefile").read_text(encoding="utf-8")


def test_a_wheel_is_told_the_packages_of_the_lock() -> None:
    named = (PROJECT / "requirements-lake.in").read_text(encoding="utf-8")
    (command,) = re.findall(r"^pip install --no-deps (--target .+)$", PAGE, re.MULTILINE)
    _, folder, *packages = shlex.split(command)
    assert folder == "$VIRTUAL_ENV/lake"
    assert packages == [line for line in named.splitlines() if not line.startswith("#")]
