"""docs/explanation/price-gates.md: the gates with all their thresholds, and what they cost."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from string import Template
from typing import Any

from docs.generate.markdown import code, table, text
from pipeline.catalog.source_config import configs
from pipeline.catalog.tables import catalog_rows
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import CATALOG_DIR

TEMPLATE = Path(__file__).with_name("price_gates.md.template")

OVERRIDDEN = ("max_day_change", "max_gpu_count")
"""Settings under ``expect`` that only a few sources use."""


def page() -> str:
    """Return the page. Raises KeyError if the template names an unknown threshold."""
    of_gates = {row["name"]: row for row in catalog_rows("gate_thresholds.csv")}
    of_market = list(_market_parameters())
    amounts = {name: _amount(getattr(THRESHOLDS, name), row["unit"]) for name, row in of_gates.items()}
    market_amounts = {
        row["name"]: _amount(Decimal(row["value"]), row["unit"])
        for row in of_market
        if row["applies_to"] == "default"
    }
    threshold_rows = (
        [code(name), amounts[name], row["meaning"], row["reason"], row["seen"]]
        for name, row in of_gates.items()
    )
    market_rows = (
        [code(row["name"]), *(text(row[key]) for key in ("value", "unit", "applies_to", "source", "note"))]
        for row in of_market
    )
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        amounts | market_amounts,
        thresholds=table(["threshold", "value", "meaning", "reason", "seen"], threshold_rows),
        overrides=table(["source", "setting", "value"], _overrides()),
        market=table(["name", "value", "unit", "applies to", "source", "note"], market_rows),
    )


def _amount(value: Any, unit: str) -> str:
    return f"{value:,} {unit}"


def _overrides() -> Iterator[list[str]]:
    for name, config in configs().items():
        for setting in OVERRIDDEN:
            value = getattr(config.expect, setting)
            if value is not None:
                yield [code(name), code(setting), str(value)]


def _market_parameters() -> Iterator[dict[str, str]]:
    with (CATALOG_DIR / "cost_parameters.csv").open(newline="", encoding="utf-8") as file:
        yield from (row for row in csv.DictReader(file) if row["name"].startswith("market_"))
