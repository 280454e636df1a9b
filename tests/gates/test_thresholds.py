"""The one table of thresholds: each is explained and used by a gate, and a yaml overrides it."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.catalog.tables import catalog_rows
from pipeline.gates import thresholds
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from tests.gates.test_price_moves import DAY, STEADY, YESTERDAY
from tests.offers.builders import config, offer

ROWS = {row["name"]: row for row in catalog_rows("gate_thresholds.csv")}

CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(thresholds.__file__).parents[1].rglob("*.py")
)


@pytest.mark.parametrize("name", ROWS)
def test_a_threshold_has_its_reason_and_is_used(name: str) -> None:
    assert all(ROWS[name][column] for column in ("unit", "meaning", "reason"))
    assert re.search(rf"\bTHRESHOLDS\.{name}\b", CODE)


@pytest.mark.parametrize(("own", "held"), [(None, True), (Decimal("0.7"), False)])
def test_the_yaml_overrides_a_default(own: Decimal | None, held: bool) -> None:
    history = History([*STEADY, offer("2.00")], YESTERDAY)
    result = screen([*STEADY, offer("3.30")], history, config(max_day_change=own), DAY)
    assert bool(result.rejects) is held
