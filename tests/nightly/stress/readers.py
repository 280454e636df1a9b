"""Readers over publishes: no error, no torn file, and an open reader keeps what it opened."""

import itertools
import time
from collections.abc import Sequence
from datetime import date, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from pipeline.home.paths import SQL_DIR
from pipeline.warehouse.query import ask, reader
from tests.nightly.stress.homes import PROCESSES, Lab
from tests.nightly.stress.market import FIRST_DAY
from tests.nightly.stress.runner import Figures, Part

READERS = 20
PUBLISHES_PER_UNIT = 10
PUBLISHES = 50
PAUSE_SECONDS = 2.0
"""Between two looks of one reader at most: people and dashboards, not a benchmark of two cores."""

RANKED = "(SELECT count(*) FROM main.cheapest_gpu_per_workload WHERE day = as_of_day)"
WHOLE = f"SELECT as_of_day, {RANKED} FROM main.publication"


def read_until(published: Path, stop: Path, answer: Path, at: int) -> None:
    """Look at the published file until told to stop; write down the days seen and every error."""
    examples = itertools.cycle(path.read_text() for path in sorted((SQL_DIR / "examples").glob("*.sql")))
    examples = itertools.islice(examples, at, None)
    dice = Random(at)
    seen: list[str] = []
    errors: list[str] = []
    with reader(published) as open_one:
        kept = {str(ask(open_one, WHOLE).rows[0][0])}
        while not stop.exists() or not seen:
            try:
                kept.add(str(ask(open_one, WHOLE).rows[0][0]))
                with reader(published) as fresh:
                    day, ranked = ask(fresh, WHOLE).rows[0]
                    ask(fresh, next(examples))
                    if (day, ranked) != ask(fresh, WHOLE).rows[0]:
                        errors.append(f"the file of {day} changed under an open reader")
                seen.append(str(day))
                if not ranked:
                    errors.append(f"half a file of {day}")
            except Exception as error:
                errors.append(repr(error)[:200])
            time.sleep(dice.uniform(0, PAUSE_SECONDS))
    if len(kept) != 1:
        errors.append(f"an open reader saw {len(kept)} days")
    answer.write_text("\n".join([f"{len(seen)} {len(set(seen))} {seen == sorted(seen)}", *errors]))


def units(seed: str) -> list[str]:
    """Ten publishes each."""
    return [f"publishes {at + 1}-{at + PUBLISHES_PER_UNIT}" for at in range(0, PUBLISHES, PUBLISHES_PER_UNIT)]


def run(
    lab: Lab, unit: str, seed: str, publishes: int = PUBLISHES_PER_UNIT, readers: int = READERS
) -> Figures:
    """Readers that start on one day's file, and refreshes of the following days."""
    home, stop = lab.home("home"), lab.folder / "stop"
    problems: list[str] = []
    processes: list[BaseProcess] = []
    for at in range(readers):
        arguments = (home.published, stop, lab.folder / f"seen-{at}", at)
        processes.append(PROCESSES.Process(target=read_until, args=arguments))
        processes[-1].start()
    for step in range(1, publishes + 1):
        day: date = FIRST_DAY + timedelta(days=step)
        answer = lab.refresh(home, day)
        if answer["published"] != str(day):
            problems.append(f"{day}: {str(answer)[:300]}")
    time.sleep(2 * PAUSE_SECONDS)
    stop.touch()
    looks = days = 0
    for at, process in enumerate(processes):
        process.join(120)
        seen = lab.folder / f"seen-{at}"
        if process.exitcode != 0 or not seen.exists():
            problems.append(f"reader {at} ended with {process.exitcode}")
            process.kill()
            continue
        first, *errors = seen.read_text().splitlines()
        count, distinct, in_order = first.split()
        looks, days = looks + int(count), max(days, int(distinct))
        problems += [f"reader {at}: {error}" for error in errors[:3]]
        if in_order != "True":
            problems.append(f"reader {at} saw an older day after a newer one")
    if days < 2:
        problems.append("no reader saw more than one day: nothing was tested")
    return {"problems": problems, "publishes": publishes, "readers": readers, "looks": looks}


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    publishes, looks = (sum(result.get(name, 0) for result in results) for name in ("publishes", "looks"))
    return f"{READERS} readers, {publishes} publishes, {looks:,} times opened and asked"


PART = Part("readers", "readers while it is published again and again", units, run, figures, 400)
