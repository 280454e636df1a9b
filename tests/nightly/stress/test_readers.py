"""Readers over publishes: no error, no torn file, and an open reader keeps what it opened."""

import itertools
import time
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pytest

from pipeline.home.paths import SQL_DIR
from pipeline.warehouse.query import ask, reader
from tests.nightly.stress.homes import ALL, PROCESSES, Lab
from tests.nightly.stress.market import FIRST_DAY

READERS, PUBLISHES = (20, 10) if ALL else (4, 3)
PAUSE_SECONDS = 2.0
"""Between two looks of one reader at most: people and dashboards, not a benchmark of two cores."""

RANKED = "(SELECT count(*) FROM main.cheapest_gpu_per_workload WHERE day = as_of_day)"
WHOLE = f"SELECT as_of_day, {RANKED} FROM main.publication"


def read_until(published: Path, stop: Path, sender: Connection, at: int) -> None:
    """Look at the published file until told to stop; send the number of days seen and every error."""
    texts = [path.read_text() for path in sorted((SQL_DIR / "examples").glob("*.sql"))]
    days, errors, dice = [], [], Random(at)
    with reader(published) as open_one:
        kept = {ask(open_one, WHOLE).rows[0]}
        for look in itertools.takewhile(lambda _: not stop.exists(), itertools.count(at)):
            try:
                with reader(published) as fresh:
                    day, ranked = ask(fresh, WHOLE).rows[0]
                    ask(fresh, texts[look % len(texts)])
                    kept_open = ask(fresh, WHOLE).rows[0] == (day, ranked)
                days.append(day)
                errors += [] if ranked else ["half a file"]
                errors += [] if kept_open else ["the file changed under an open reader"]
            except Exception as error:
                errors.append(repr(error)[:200])
            kept.add(ask(open_one, WHOLE).rows[0])
            time.sleep(dice.uniform(0, PAUSE_SECONDS))
    if len(kept) != 1:
        errors.append(f"an open reader saw {len(kept)} days")
    if days != sorted(days):
        errors.append("an older day after a newer one")
    sender.send((len(set(days)), errors))


@pytest.mark.parametrize("number", range(5 if ALL else 1))
def test_readers_see_whole_files_in_order_while_days_are_published(number: int, lab: Lab) -> None:
    home, stop = lab.home("home"), lab.folder / "stop"
    readers = []
    for at in range(READERS):
        receiver, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=read_until, args=(home.published, stop, sender, at + number))
        process.start()
        sender.close()
        readers.append((process, receiver))
    try:
        for step in range(1, PUBLISHES + 1):
            day = FIRST_DAY + timedelta(days=step)
            answer = lab.refresh(home, day)
            assert answer.published == day, answer.said
        time.sleep(2 * PAUSE_SECONDS)
    finally:
        stop.touch()
    found = [receiver.recv() if receiver.poll(120) else (0, ["no answer"]) for _, receiver in readers]
    for process, _ in readers:
        process.join(10)
        process.kill()
    assert [error for _, errors in found for error in errors] == []
    assert max(days for days, _ in found) > 1  # otherwise nothing was tested
