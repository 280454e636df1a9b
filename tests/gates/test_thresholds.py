"""The one table of thresholds: each is used by a gate, and a source's yaml overrides its default."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.gates import thresholds
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.thresholds import Threshold
from tests.gates.test_price_moves import DAY, STEADY, YESTERDAY
from tests.offers.builders import config, offer

NAMES = [name for name, each in vars(thresholds).items() if isinstance(each, Threshold)]

CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in Path(thresholds.__file__).parents[1].rglob("*.py")
    if path != Path(thresholds.__file__)
)


@pytest.mark.parametrize("name", NAMES)
def test_a_threshold_has_its_reason_and_is_used(name: str) -> None:
    threshold = getattr(thresholds, name)
    assert threshold.unit
    assert threshold.meaning
    assert threshold.reason
    assert re.search(rf"\b{name}\.(value|unless)\b", CODE)


@pytest.mark.parametrize(("own", "held"), [(None, True), (Decimal("0.7"), False)])
def test_the_yaml_overrides_a_default(own: Decimal | None, held: bool) -> None:
    history = History([*STEADY, offer("2.00")], YESTERDAY)
    result = screen([*STEADY, offer("3.30")], history, config(max_day_change=own), DAY)
    assert bool(result.rejects) is held
