"""kill -9 of a refresh at a random moment: nothing that was fetched is lost, the next refresh is whole."""

import time
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from tests.nightly.stress.homes import Lab, archived, litter, price_problems, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY, SOURCES
from tests.nightly.stress.runner import Figures, Part

KILLS = 200
KILLS_PER_UNIT = 10


def units(seed: str) -> list[str]:
    """Kills are done in rows on one home, so that their traces pile up as they would for an operator."""
    return [f"{start}-{start + KILLS_PER_UNIT - 1}" for start in range(0, KILLS, KILLS_PER_UNIT)]


def run(lab: Lab, unit: str, seed: str, kills: int = KILLS_PER_UNIT) -> Figures:
    """A home that is refreshed every day, and each time a first refresh is killed before."""
    dice = Random(f"{seed} kills {unit}")
    home = lab.home("home")
    began = time.monotonic()
    problems = _refreshed(lab.refresh(home, FIRST_DAY))
    seconds = time.monotonic() - began  # the moments are spread over what the refresh before took
    running, moments = 0, []
    for number in range(1, kills + 1):
        day = FIRST_DAY + timedelta(days=number)
        before = archived(home)
        with lab.serving(day) as server:
            child = lab.start(home, server, day)
            delay = dice.uniform(0, seconds)
            time.sleep(delay)
            running += child.kill()
            served = dict(server.served)
        moments.append(round(delay, 3))
        name = f"kill {number} of {unit}, after {delay:.3f} s"
        days = [day - timedelta(days=1), day]
        problems += [f"{name}: {problem}" for problem in published_problems(home, days)]
        after = archived(home)
        for source in SOURCES:
            # The answer that was on its way when the process died is the only one that may be missing.
            if after[source] < before[source] + served.get(source, 0) - 1:
                kept = after[source] - before[source]
                problems.append(f"{name}: {source} answered {served[source]} times, {kept} answers are kept")
        began = time.monotonic()
        answer = lab.refresh(home, day)
        seconds = time.monotonic() - began
        problems += [f"{name}, then: {problem}" for problem in _refreshed(answer)]
        problems += [f"{name}, then: {problem}" for problem in published_problems(home, [day])]
        problems += [f"{name}, then: {problem}" for problem in price_problems(home, lab.market, day)]
        if left := litter(home):
            problems.append(f"{name}: litter is left after the next refresh: {', '.join(left[:5])}")
    interrupted = len(rows(home, "SELECT DISTINCT day FROM main.offers"))
    if interrupted != kills + 1:
        problems.append(f"{unit}: {interrupted} days have offers, not {kills + 1}")
    return {"problems": problems, "kills": kills, "running": running, "moments": moments}


def _refreshed(answer: dict[str, Any]) -> list[str]:
    if not answer["published"]:
        return [str(answer.get("crash") or answer.get("refused") or answer.get("lines"))[-400:]]
    missing = set(SOURCES) - set(answer["accepted"])
    return [f"not accepted: {', '.join(sorted(missing))}"] if missing else []


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    kills, running = (sum(result.get(name, 0) for result in results) for name in ("kills", "running"))
    return f"{kills} kills, {running} of them while the refresh still ran"


PART = Part("kills", "kill -9 at a random moment of a refresh", units, run, figures, 1000)
