"""docs/explanation/accuracy.md: how far to trust an answer, with figures from catalog/calibration.yaml."""

from pathlib import Path
from string import Template
from textwrap import fill
from typing import Any

import yaml

from pipeline.home.paths import CATALOG_DIR

TEMPLATE = Path(__file__).with_name("accuracy.md.template")


def page() -> str:
    """Return the page."""
    record = yaml.safe_load((CATALOG_DIR / "calibration.yaml").read_text(encoding="utf-8"))
    figures = fill(in_words(record), 128, break_on_hyphens=False)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(figures=figures)


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
