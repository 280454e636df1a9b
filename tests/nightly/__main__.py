"""Runs everything that takes too long for ``make test``, and ends with one table: ``make nightly``.

    python -m tests.nightly [PART ...]

A part is a folder or file of tests in tests/nightly, the tracer, or the mutants of a language. Its output is
in data/nightly/PART.log, and the table in data/nightly/table.md.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "data" / "nightly"
OTHERS = {
    "tracer": ("make", "trace-check"),
    "mutants-sql": ("make", "mutants-sql"),
    "mutants-python": ("make", "mutants-python"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a part."""

    part: str
    passed: bool
    said: str
    minutes: float

    @property
    def row(self) -> str:
        """Return a row of the table."""
        state = "passed" if self.passed else "**failed**"
        return f"| {self.part} | {state} | {self.said} | {self.minutes:.1f} |"


def parts() -> dict[str, tuple[str, ...]]:
    """Return the command of each part by its name; folders are found by the tests in them."""
    found = {}
    for path in sorted(HERE.iterdir()):
        if path.match("test_*.py") or next(path.glob("test_*.py"), None):
            name = path.stem.removeprefix("test_")
            report = f"--junitxml={RESULTS / name}.xml"
            options = ("-n", "auto", "--dist", "worksteal", "-rs", "--durations=5", report)
            found[name] = (sys.executable, "-m", "pytest", *options, str(path))
    return found | OTHERS


def counts(report: Path, log: Path) -> str:
    """Return how many tests passed, failed and were skipped; without a report, the log's last line."""
    if not report.exists():
        return log.read_text(encoding="utf-8").strip().rpartition("\n")[2].strip(" |=")
    suite = next(ElementTree.parse(report).iter("testsuite")).attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    skipped = int(suite["skipped"])
    return f"{int(suite['tests']) - failed - skipped} passed, {failed} failed, {skipped} skipped"


def run(name: str, command: tuple[str, ...]) -> Result:
    """Run a part, with its output in a file."""
    log, report = RESULTS / f"{name}.log", RESULTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    print(f"{name}: {log}", flush=True)
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    minutes = (time.monotonic() - began) / 60
    return Result(name, ended.returncode == 0, counts(report, log), minutes)


def main() -> None:
    """Run the parts that were asked for, or all, and print the table."""
    known = parts()
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *known])
    asked = parser.parse_args().parts or known
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = [run(name, known[name]) for name in asked]
    table = ["| part | result | counts | minutes |", "|---|---|---|---|", *(result.row for result in results)]
    (RESULTS / "table.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("", *table, sep="\n")
    sys.exit(not all(result.passed for result in results))


if __name__ == "__main__":
    main()
