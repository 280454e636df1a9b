"""Tests random mutants of the project with the quick tests, and names those that no test noticed.

    python -m tests.nightly.mutants sql --sample 100 --seed 7 --only jobs/
    python -m tests.nightly.mutants python --sample 100 --only pipeline.gates

Mutants that DuckDB rejects count as rejected, not as killed; those that mypy rejects are not drawn. Fails if
too few of the others are killed.
"""

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.nightly.mutants import python_mutants, sql_mutants

SHARP = ("offers", "gates", "gpus", "parsing", "record", "questions")
"""The rooms that decide what is believed and said: at least 90% of their mutants must be killed."""


def goal(language: str, part: str) -> float:
    """Return the share of a part's mutants that must be killed."""
    return 0.85 if language == "sql" else 0.9 if part in SHARP else 0.8


def row(title: str, outcomes: Counter[str]) -> str:
    """Return a row of the table."""
    judged = outcomes["killed"] + outcomes["survived"]
    share = f"{outcomes['killed'] / judged:.0%}" if judged else "-"
    numbers = (outcomes.total(), outcomes["rejected"], outcomes["killed"], outcomes["survived"])
    return f"| {title} | {' | '.join(map(str, numbers))} | {share} |"


def report(language: str, outcomes: Iterable[tuple[str, str]]) -> tuple[list[str], bool]:
    """Return the counts by part as a Markdown table, and whether the parts of each goal reach it together."""
    by_part: dict[str, Counter[str]] = defaultdict(Counter)
    by_goal: dict[float, Counter[str]] = defaultdict(Counter)
    for part, outcome in outcomes:
        by_part[part][outcome] += 1
        by_goal[goal(language, part)][outcome] += 1
    lines = ["| part | mutants | rejected | killed | survived | killed share |", "|---|---|---|---|---|---|"]
    lines += [row(part, by_part[part]) for part in sorted(by_part)]
    lines += [row(f"all with the goal {wanted:.0%}", by_goal[wanted]) for wanted in sorted(by_goal)]
    judged = {wanted: c["killed"] + c["survived"] for wanted, c in by_goal.items()}
    reached = [judged[wanted] and c["killed"] >= wanted * judged[wanted] for wanted, c in by_goal.items()]
    return lines, all(reached)


def main() -> None:
    """Test a sample, and print what survived and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.mutants", description=__doc__)
    parser.add_argument("language", choices=["sql", "python"])
    rounded = "the number of mutants (python: rounded up to the same number for each room)"
    parser.add_argument("--sample", type=int, default=100, help=rounded)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="how names begin: jobs/, or pipeline.gates")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at once")
    parser.add_argument("--project", type=Path, default=Path(__file__).parents[3])
    given = parser.parse_args()
    tested = sql_mutants if given.language == "sql" else python_mutants
    results = tested.results(given.project, given.only, given.seed, given.sample, given.jobs)
    if not results:
        sys.exit(f"no mutant was tested: none could be made, or no name begins with {given.only!r}")
    survivors = sorted(name for name, outcome in results.items() if outcome == "survived")
    named = [(tested.part(name), outcome.split()[0]) for name, outcome in results.items()]
    lines, enough = report(given.language, named)
    print("", f"Survivors: {len(survivors)}", *survivors, "", *lines, sep="\n")
    sys.exit(not enough)


if __name__ == "__main__":
    main()
