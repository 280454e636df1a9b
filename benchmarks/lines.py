"""Lines of the benchmarks' tables, and the timers that all parts use."""

import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Taken(NamedTuple):
    """Seconds of processor time and wall-clock time."""

    processor: float
    wall: float


class Line(NamedTuple):
    """A row of a table: its name, its time, and the comparison with its goal."""

    what: str
    taken: Taken | None
    measured: str
    goal: str = ""
    reached: bool | None = None


def together(*taken: Taken) -> Taken:
    """Return the totals of both times."""
    return Taken(sum(each.processor for each in taken), sum(each.wall for each in taken))


def processor_seconds() -> float:
    """Return the processor seconds used by this process and by the children that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(question: Callable[[int], object], repeats: int = 1) -> Taken:
    """Return the shortest time of the repeats; ``question`` is called with the number of the repeat."""
    taken = []
    for repeat in range(repeats):
        with clock() as read:
            question(repeat)
        taken.append(read())
    return Taken(min(each.processor for each in taken), min(each.wall for each in taken))


@contextmanager
def clock() -> Iterator[Callable[[], Taken]]:
    """Time a block: the yielded function returns the time since its start, up to its end."""
    processor, wall = processor_seconds(), time.perf_counter()
    stopped: list[Taken] = []

    def read() -> Taken:
        return stopped[0] if stopped else Taken(processor_seconds() - processor, time.perf_counter() - wall)

    yield read
    stopped.append(read())


def peak_megabytes() -> float:
    """Return this process's peak resident memory; getrusage would include its parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    (kibibytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kibibytes) * 1024 / 1e6


def below(what: str, taken: Taken | None, value: float, goal: float, unit: str) -> Line:
    """Return the line for a value that should be at most ``goal``."""
    return Line(what, taken, f"{_short(value)} {unit}", f"at most {_short(goal)} {unit}", value <= goal)


def above(what: str, taken: Taken | None, value: float, goal: float, unit: str) -> Line:
    """Return the line for a value that should be at least ``goal``."""
    return Line(what, taken, f"{_short(value)} {unit}", f"at least {_short(goal)} {unit}", value >= goal)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = ["| | CPU | wall | measured | goal | reached |", "| --- | ---: | ---: | --- | --- | --- |"]
    for line in lines:
        processor, wall = (_seconds(value) for value in line.taken) if line.taken else ("", "")
        reached = {None: "", True: "yes", False: "no"}[line.reached]
        rows.append(f"| {line.what} | {processor} | {wall} | {line.measured} | {line.goal} | {reached} |")
    return "\n".join(rows)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 10 else f"{value * 1e3:,.1f} ms"
