"""`make stress`: every part in full, on all cores; docs/explanation/stress.md describes them.

make stress                     all parts, and the fuzz
make stress ONLY=kills,year     some of them
make stress SEED=2              other random faults
"""

import argparse
import os
import sys
from pathlib import Path

import pytest

FUZZ = "fuzz"


def main() -> int:
    """Run the parts; 0 if nothing was wrong."""
    here = Path(__file__).parent
    parts = {path.stem.removeprefix("test_"): str(path) for path in here.glob("test_*.py")}
    parts[FUZZ] = str(here.parent / FUZZ)
    parser = argparse.ArgumentParser(prog="make stress", description=__doc__)
    parser.add_argument("--only", default="", help=f"of {', '.join(sorted(parts))}")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    chosen = options.only.replace(",", " ").split() or list(parts)
    if unknown := sorted(set(chosen) - set(parts)):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(sorted(parts))}")
    os.environ |= {"STRESS_SEED": options.seed, "STRESS_ALL": "1"}
    return int(pytest.main(["-n", "auto", "--dist", "worksteal", *(parts[part] for part in chosen)]))


if __name__ == "__main__":
    sys.exit(main())
