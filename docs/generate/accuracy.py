"""docs/explanation/accuracy.md and a paragraph of README.md: the model's errors."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from string import Template
from textwrap import fill
from typing import Any

import yaml

from docs.generate.markdown import table
from pipeline.catalog.source_config import read_yaml
from pipeline.home.paths import CATALOG_DIR

TEMPLATE = Path(__file__).with_name("accuracy.md.template")
REASONS = Path(__file__).with_name("missed_sources.yaml")
README = Path(__file__).parents[2] / "README.md"
WORST = 10
"""The number of sources, for each quantity, that the page lists as those that the model misses most."""


def page() -> str:
    """Return the page."""
    record = _record()
    figures = fill(in_words(record), 128, break_on_hyphens=False)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(figures=figures, worst=worst(record))


def readme() -> str:
    """Return README.md with the paragraph that states the model's errors. Raises ValueError without one."""
    paragraph = fill(briefly(_record()), 128, subsequent_indent="  ", break_on_hyphens=False)
    text, found = re.subn(
        r"^- \*\*Memory and speed\*\*: .*?\n(?=- )", f"{paragraph}\n", README.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    if found != 1:
        raise ValueError(f"{README} has {found} items '- **Memory and speed**: ' before another item, not 1")
    return text


def briefly(record: dict[str, Any]) -> str:
    """Return the README's paragraph, from a calibration record."""
    memory, speed = (record[name]["of_a_stranger"] for name in ("memory", "speed"))
    own = record["fit_verdicts"]["on_their_own_card"]
    held = [record["bands"][name]["held_out_coverage_by_family"] for name in ("memory", "speed")]
    return (
        "- **Memory and speed**: calibrated on published measurements, none of them ours. For a source that "
        f"the model has not seen, the median error is {memory['median']:.1%} for peak memory and "
        f"{speed['median']:.1%} for tokens per second, averaged over {memory['sources']} and "
        f"{speed['sources']} sources. Bands meant to contain 80% of the measurements contain {held[0]:.0%} "
        f"of the peaks and {held[1]:.0%} of the speeds. Of {own['died']} runs that ran out of memory, "
        f"{own['died_as_predicted']} are predicted not to fit."
    )


def worst(record: dict[str, Any]) -> str:
    """Return a table of the sources that the model misses most, with the reasons. Raises ValueError if there
    is no reason for one of them, or one for a source that is not known."""
    reasons = read_yaml(REASONS, dict[str, dict[str, str]])
    rows = [
        row for quantity in ("memory", "speed") for row in _worst_rows(quantity, record, reasons[quantity])
    ]
    return table(("quantity", "source", "runs", "median error", "mean error", "why"), rows)


def _worst_rows(quantity: str, record: dict[str, Any], reasons: dict[str, str]) -> Iterator[tuple[str, ...]]:
    by_source = record[quantity]["leave_one_family_out_by_source"]
    missed = sorted(by_source, key=lambda name: -by_source[name]["median"])[:WORST]
    _check(quantity, reasons, missed, by_source)
    for source in missed:
        errors = by_source[source]
        yield (
            quantity, f"`{source}`", str(errors["runs"]), f"{errors['median']:.0%}",
            f"{errors['mean']:.0%}", reasons[source],
        )  # fmt: skip


def _check(quantity: str, reasons: Collection[str], missed: Collection[str], known: Collection[str]) -> None:
    """Raise ValueError if a missed source has no reason, or a reason is about an unknown source."""
    for problem, names in (
        ("has no reason for", {*missed} - {*reasons}),
        ("has reasons for unknown sources of", {*reasons} - {*known}),
    ):
        if names:
            raise ValueError(f"{REASONS.name} {problem} {quantity}: {', '.join(sorted(names))}")


def _record() -> dict[str, Any]:
    return dict(yaml.safe_load((CATALOG_DIR / "calibration.yaml").read_text(encoding="utf-8")))


def in_words(record: dict[str, Any]) -> str:
    """Return the paragraph that states the model's errors, from a calibration record."""
    own, others = (record["fit_verdicts"][f"on_{name}"] for name in ("their_own_card", "other_cards"))
    return (
        f"Predicted peak memory has {_off_by(record['memory'])}; predicted speed (tokens per second) has "
        f"{_off_by(record['speed'])}. Bands fitted without a family contain "
        f"{_held(record['bands']['memory'])} of the family's peaks and {_held(record['bands']['speed'])} of "
        f"its speeds. Of {own['died']} runs that ran out of memory, {own['died_as_predicted']} are "
        f"predicted not to fit; of {own['ran']} that ran, {own['ran_as_predicted']} are predicted to fit. "
        f"With both outcomes weighted equally, {own['balanced_accuracy']:.0%} of verdicts are right "
        f"({own['balanced_accuracy_by_family']:.0%} if averaged over families: most of these runs come from "
        f"one lab). On {others['died_as_predicted']} of {others['died']} cards one size too small "
        f"for a measured peak, the run is predicted not to fit; on {others['ran_as_predicted']} of "
        f"{others['ran']} cards that are large enough, it is predicted to fit."
    )


def _held(bands_hold: dict[str, Any]) -> str:
    by_evidence = bands_hold["held_out_coverage_by_family_and_evidence"]
    levels = ", ".join(f"{level} {share:.0%}" for level, share in by_evidence.items())
    return f"{bands_hold['held_out_coverage_by_family']:.0%} ({levels})"


def _off_by(errors: dict[str, Any]) -> str:
    stranger, pooled = errors["of_a_stranger"], errors["leave_one_family_out"]
    return (
        f"a median error of {stranger['median']:.1%} and a mean error of {stranger['mean']:.1%}, averaged "
        f"over {stranger['sources']} sources (over all {pooled['runs']:,} runs: {pooled['median']:.1%} and "
        f"{pooled['mean']:.1%})"
    )
