"""Run the parts of `make stress` on all cores, keep each result as a line, and resume after an interruption.

A part is cut into units. The result of a unit is a line of data/stress/<seed>/<part>.jsonl with the problems
that were found and the figures for the table; a unit with a line is not run again.
"""

import json
import logging
import multiprocessing
import os
import platform
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.nightly.stress.homes import PROCESSES, Lab, use_catalogue
from tests.nightly.stress.market import Market

Figures = dict[str, Any]
"""A unit's result: ``problems`` (a list of sentences) and numbers."""


@dataclass(frozen=True)
class Part:
    """One kind of harm. ``run`` runs one unit in its own lab; ``figures`` sums up in a few words what all
    units found together."""

    name: str
    title: str
    units: Callable[[str], Sequence[str]]
    run: Callable[[Lab, str, str], Figures]
    figures: Callable[[Sequence[Figures]], str]
    expected_seconds: float
    """Expected seconds of all units on one core, for the estimate shown and to start with the longest."""


@dataclass(frozen=True)
class Results:
    """The lines of one seed."""

    folder: Path

    def read(self, part: str) -> list[Figures]:
        """Return the results so far, without a truncated last line."""
        path = self.folder / f"{part}.jsonl"
        lines = path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def units(self, part: str) -> set[str]:
        """The units that have a result."""
        return {result["unit"] for result in self.read(part)}

    def add(self, part: str, figures: Figures) -> None:
        """Keep a result, on the disk on return."""
        path = self.folder / f"{part}.jsonl"
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            whole = path.read_bytes().rpartition(b"\n")
            path.write_bytes(whole[0] + whole[1])
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")
            file.flush()
            os.fsync(file.fileno())


def run(
    parts: Sequence[Part],
    seed: str,
    folder: Path,
    *,
    minutes: float,
    workers: int,
    say: Callable[[str], None],
) -> bool:
    """Run what has no result yet. Whether everything was run: False when the time was used up first."""
    results = Results(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _note_run(folder)
    catalogue = Lab(folder, folder, Market(seed)).catalogue
    waiting = _interleaved(
        [
            (part, unit)
            for unit in part.units(seed)
            if unit not in {r["unit"] for r in results.read(part.name)}
        ]
        for part in sorted(parts, key=lambda part: -part.expected_seconds)
    )
    total, done, began = len(waiting), 0, time.monotonic()
    say(f"{total} units to run on {workers} processes, at most {minutes:g} minutes")
    running: dict[Future[Figures], tuple[Part, str]] = {}
    with ProcessPoolExecutor(workers, PROCESSES, initializer=_begin, initargs=(catalogue,)) as pool:
        while waiting or running:
            in_time = time.monotonic() - began < 60 * minutes
            while waiting and in_time and len(running) < workers:
                part, unit = waiting.pop(0)
                running[pool.submit(_run_unit, part, unit, seed, folder)] = (part, unit)
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                part, unit = running.pop(future)
                figures = future.result()
                results.add(part.name, figures)
                done += 1
                spent = time.monotonic() - began
                problems = "; ".join(figures["problems"]) or "ok"
                say(f"{spent / 60:5.1f} min {done:>4}/{total}  {part.name} {unit}: {problems[:300]}")
    return not waiting


def _begin(catalogue: Path) -> None:
    logging.disable(logging.CRITICAL)  # incidents are read from the homes, not from this terminal
    use_catalogue(catalogue)


def _interleaved(queues: Iterable[list[tuple[Part, str]]]) -> list[tuple[Part, str]]:
    """The units of all parts, so that each part advances at the same pace and the longest begins first."""
    placed = [
        ((at + 0.5) / len(queue) - (1 if len(queue) == 1 else 0), number, unit)
        for number, queue in enumerate(queues)
        for at, unit in enumerate(queue)
    ]
    return [unit for _, _, unit in sorted(placed, key=lambda place: place[:2])]


def _run_unit(part: Part, unit: str, seed: str, folder: Path) -> Figures:
    """One unit in this process. What goes wrong in the harness itself is a problem, too."""
    began = time.monotonic()
    lab_folder = folder / "labs" / part.name / unit.replace("/", "_").replace(" ", "_")
    lab_folder.mkdir(parents=True, exist_ok=True)
    try:
        figures = part.run(Lab(lab_folder, folder, Market(seed)), unit, seed)
    except Exception:  # the other units go on
        figures = {"problems": [f"the harness failed: {traceback.format_exc()[-1500:]}"]}
    shutil.rmtree(lab_folder, ignore_errors=True)
    return {"unit": unit, "seconds": round(time.monotonic() - began, 2), **figures}


def _note_run(folder: Path) -> None:
    """Remember when, on what and at which commit it was begun or resumed."""
    notes = folder / "runs.jsonl"
    with notes.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": datetime.now(UTC).isoformat(), **machine(), "commit": commit()}) + "\n")


def machine() -> dict[str, Any]:
    """The machine, without names or paths."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": multiprocessing.cpu_count(),
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def commit() -> str:
    """The commit that is tested; empty outside of a clone."""
    git = shutil.which("git")
    command = [git or "git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if git else None
    return done.stdout.strip() if done else ""
