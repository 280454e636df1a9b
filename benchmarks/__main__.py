"""All benchmarks in one table: ``python -m benchmarks`` takes four minutes on two idle cores.

    python -m benchmarks [PART ...] [--days 730] [--write docs/reference/speed.md]

Each part runs in its own process, so that its peak memory is measured alone, and is stopped after
LIMIT_SECONDS. Compare ratios within one run, since times are longer on a machine that is doing other work.
Without gpuhunt (pip install -r benchmarks/requirements.txt) the comparison with it is skipped, with a note.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.builds import demo, first, history, large
from benchmarks.labels import labels
from benchmarks.lines import Line, Taken, table
from benchmarks.questions import against_others, plans, questions
from benchmarks.readers import readers

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "tests" / "pages"
LIMIT_SECONDS = 900

TITLE = "# How fast gpufare is, and how much memory it needs"

WHERE = """## Where the time goes

A question is a large statement on few rows: DuckDB binds and optimizes the statement each time, which costs
12 to 21 microseconds per expression, regardless of the rows. Checking a job takes 2,600 expressions, ranking
a job 4,000, and planning a job 20,000; two thirds of these expressions only pass columns to the next step,
and seven eighths of the planning time are spent even without any GPU. A prepared statement is bound again if
it reads a table, but not if it reads only Arrow streams: such streams would halve the time for checking and
planning a job and save a third of the ranking, which is not worth a second way to read every table.
Questions leave out the optimizers that take longer than they save (SLOW_OPTIMIZERS in
pipeline/warehouse/query.py), and import DuckDB's engine without the package around it.
"""

PLANS = """## Published plans

A question whose plans are published (`plans`, `plan_grid`) needs no planner. Size and time limit how many
plans are published. Measured on 2026-11-29 on two cores: for 143 models, full fine-tuning, LoRA and QLoRA
of rank 16 with sequences of 2,048, 4,096 and 8,192 tokens, on all GPUs up to 64, are 1,202 jobs beside
the workloads. Planning these jobs takes 107 to 128 s (131 to 155 s of CPU) and 0.7 GB of memory, once for
each state of the catalogue and the model, and 0.1 s of CPU on other days. The plans add 29 MB to a file
of 44 MB (582,000 rows of 50 bytes; rows that do not fit are omitted, and bands, P(fits) and verdict
follow from the other rows). Every method with ranks 8 to 64 and sequences from 512 to 32k would be 10,010
jobs, which at the same rates would take 15 to 18 minutes and 240 MB. A refresh publishes the prices
before it computes these plans.
"""

Part = Callable[[Path, int], list[Line]]

PARTS: Mapping[str, tuple[str, Part]] = {
    "first": ("The first publication", lambda work, _: first(work)),
    "demo": ("The sample pages", lambda work, _: demo(work, PAGES)),
    "large": ("81,000 offers a day", lambda work, _: large(work)),
    "history": ("Long histories", lambda work, days: history(work, days=(min(30, days), days))),
    "questions": ("Questions", lambda work, _: questions(work)),
    "others": ("Questions to 81,000 offers", lambda work, _: against_others(work)),
    "plans": ("Plans", lambda _work, _days: plans()),
    "labels": ("Labels of GPUs", lambda _work, _days: labels()),
    "readers": ("Readers of the sample pages", lambda work, _: readers(work, PAGES)),
}
NEEDS = {"demo": {"first"}, "large": {"first"}, "history": {"first"}, "questions": {"first", "demo"},
         "others": {"first", "large"}}  # fmt: skip
"""For each part, the parts whose homes it starts from."""


def run(part: str, work: Path, days: int) -> list[Line]:
    """Run a part in a separate process. If it fails or takes too long, return a line that reports it."""
    result = work / f"{part}.json"
    command = [sys.executable, "-m", "benchmarks", part, "--work", str(work), "--days", str(days)]
    try:
        subprocess.run(command, check=True, timeout=LIMIT_SECONDS, cwd=ROOT, stdout=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [Line(f"{part}: stopped after {LIMIT_SECONDS} s", None, "", "", False)]
    except subprocess.CalledProcessError as error:
        return [Line(f"{part}: failed with exit code {error.returncode}", None, "", "", False)]
    return [
        Line(what, Taken(*taken) if taken else None, *rest)
        for what, taken, *rest in json.loads(result.read_text(encoding="utf-8"))
    ]


def chosen(asked: Sequence[str]) -> list[str]:
    """Return the requested parts, by default all, and the parts that they need, in order."""
    wanted = set(asked or PARTS)
    return [part for part in PARTS if part in wanted.union(*(NEEDS.get(each, set()) for each in wanted))]


def sections(found: Mapping[str, Sequence[Line]]) -> str:
    """Return one table per part."""
    return "\n\n".join(f"## {PARTS[part][0]}\n\n{table(lines)}" for part, lines in found.items())


def page(text: str, seconds: float, load: float) -> str:
    """Return docs/reference/speed.md: the tables, and the machine that they were measured on."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()
    return f"""{TITLE}

Written by `python -m benchmarks --write docs/reference/speed.md` in {seconds / 60:.0f} minutes:
{datetime.now(UTC):%Y-%m-%d}, commit {commit or "unknown"}, {os.cpu_count()} cores, {_processor()},
{_memory_gib():.0f} GiB, Python {platform.python_version()}, DuckDB {version("duckdb")},
polars {version("polars")}, load {load:.1f} at the start and
{os.getloadavg()[0]:.1f} at the end. CPU is the processor time of all
threads; the time of a question is the shortest of several repeats. The offers of large markets and long
histories are synthetic, from a seed (`python -m benchmarks.market`). All lines come from one run: compare
ratios rather than times, since times are longer on a machine that is doing other work.

{text}

{WHERE}
{PLANS}"""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    arguments.add_argument("--days", type=int, default=730, help="the length of the long history")
    arguments.add_argument("--write", type=Path, metavar="FILE", help="also write the tables here")
    arguments.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        arguments.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.work:
        (part,) = options.parts
        lines = PARTS[part][1](options.work, options.days)
        (options.work / f"{part}.json").write_text(json.dumps(lines), encoding="utf-8")
        return
    began, load = datetime.now(UTC), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for part in chosen(options.parts):
            found[part] = run(part, Path(folder), options.days)
            print(f"{sections({part: found[part]})}\n", flush=True)
    if options.write:
        seconds = (datetime.now(UTC) - began).total_seconds()
        options.write.write_text(page(sections(found), seconds, load), encoding="utf-8")


if __name__ == "__main__":
    main()
