"""Two refreshes of one home at the same time: both end, and the record is that of one of them."""

import time
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from tests.nightly.stress.homes import Lab, litter, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY, SOURCES
from tests.nightly.stress.runner import Figures, Part

PAIRS = 10
COUNTED = (
    "SELECT day, source, count(*) AS n, sum(native_price) AS s FROM main.offers GROUP BY ALL ORDER BY ALL"
)


def units(seed: str) -> list[str]:
    """Return pairs of refreshes, the second starting later each time."""
    return [f"pair {number}" for number in range(1, PAIRS + 1)]


def run(lab: Lab, unit: str, seed: str) -> Figures:
    """Two refreshes at once, against one alone."""
    dice = Random(f"{seed} two at once {unit}")
    alone, both = lab.home("alone"), lab.home("both")
    day = FIRST_DAY + timedelta(days=1)
    problems: list[str] = []
    if not lab.refresh(alone, day)["published"]:
        problems.append("one refresh alone was not published")
    with lab.serving(day) as server:
        first = lab.start(both, server, day)
        time.sleep(dice.uniform(0, 1.5))
        second = lab.start(both, server, day)
        answers = [first.wait(), second.wait()]
    for number, answer in enumerate(answers, 1):
        if answer["published"] != str(day) or set(answer["accepted"]) != set(SOURCES):
            problems.append(f"refresh {number}: {str(answer)[-300:]}")
    problems += published_problems(both, [day]) + price_problems(both, lab.market, day)
    if rows(alone, COUNTED) != rows(both, COUNTED):
        problems.append("the record is not that of one refresh")
    if left := litter(both):
        problems.append(f"litter is left: {', '.join(left[:5])}")
    return {"problems": problems}


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    return f"{len(results)} pairs, the second started up to 1.5 s after the first"


PART = Part("two_at_once", "two refreshes of one home at once", units, run, figures, 90)
