"""`make stress`: every part, resumable, with its table in docs/explanation/stress.md.

make stress                     all parts, at most 60 minutes
make stress ONLY=kills,year     some of them
make stress SEED=2              other random faults; the seed's folder under data/stress keeps its results
"""

import argparse
import os
import sys
from pathlib import Path

from tests.nightly.stress import clock, damage, disk, kills, pages, readers, report, two_at_once, year
from tests.nightly.stress.runner import run

PARTS = (
    kills.PART,
    readers.PART,
    disk.PART,
    damage.PART,
    two_at_once.PART,
    clock.PART,
    year.PART,
    pages.PART,
)
ROOT = Path(__file__).parents[3]


def main() -> int:
    """Run the parts, write the table; 1 when there was a problem or the time was not enough."""
    parser = argparse.ArgumentParser(prog="make stress", description=__doc__)
    parser.add_argument("--only", default="", help=f"of {', '.join(part.name for part in PARTS)}")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    names = {part.name for part in PARTS}
    chosen = set(options.only.replace(",", " ").split()) or names
    if unknown := chosen - names:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    folder = ROOT / "data" / "stress" / options.seed
    whole = run(
        [part for part in PARTS if part.name in chosen],
        options.seed,
        folder,
        minutes=options.minutes,
        workers=options.workers,
        say=lambda line: print(line, flush=True),
    )
    text = report.table(PARTS, options.seed, folder)
    report.write(ROOT / "docs" / "explanation" / "stress.md", text)
    print(f"\n{text}")
    if not whole:
        print("\nThe time is used up; start it again to resume.")
    return 0 if whole and "\nProblems:" not in text else 1


if __name__ == "__main__":
    sys.exit(main())
