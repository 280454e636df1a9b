"""The same kinds of defect in every source of the sample day: how many of them reach a ranking.

    python -m tests.nightly.misreads.trial [NAME]

One card's defects are tried for up to six labels of each source. All take some minutes; ``NAME`` keeps to
the defects whose name contains it.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.contracts.listing import Listing
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES
from tests.nightly.misreads.misreads import (
    Misread,
    at_the_price_of,
    each,
    listings_of,
    shifted_by_one,
    spot,
    times,
)
from tests.nightly.misreads.world import FIRST_DAY, World
from tests.pages_server import PagesServer

MAX_LABELS = 6

DAYS = {"first day": (True,), "after a good day": (False, True)}

FACTORS = {"halved": "0.5", "quartered": "0.25", "x4": "4", "x10": "10"}


def cases(source: str, listings: Sequence[Listing]) -> Iterator[tuple[str, Misread]]:
    """Each defect that the source's listings can have."""
    yield "all prices divided by ten", Misread(source, times("0.1"))
    for factor in ("0.855", "1.17"):
        yield "all prices times 0.855 or 1.17, no currency mark on the page", Misread(source, times(factor))
    yield "prices shifted by one row", Misread(source, shifted_by_one)
    if any(map(spot, listings)):
        spot_for_all = at_the_price_of("on_demand", spot, drop=True, same_tier=True)
        yield "spot price as on-demand", Misread(source, spot_for_all)
        unmarked = each(lambda _: {"price_kind": "on_demand"}, kind="spot")
        yield "missing spot mark", Misread(source, unmarked)
    for label in list(dict.fromkeys(row.raw_label for row in listings))[:MAX_LABELS]:
        for name, factor in FACTORS.items():
            yield f"one card {name}", Misread(source, times(factor, label=label))


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sample = Home(Path(folder) / "sample")
        with PagesServer(PAGES) as server:
            refresh(sample, day=FIRST_DAY, pages=server.base_url, environment={})
        world = World(sample, Path(folder) / "world")
        counts: dict[str, list[int]] = {}
        sources = sorted(path.parent.name for path in sample.offers.glob(f"*/{FIRST_DAY}.parquet"))
        for source in sources:
            for defect, misread in cases(source, listings_of(world.clean(source)[1])):
                if name in defect:
                    found = [bool(world.with_misread(misread, days).wrong) for days in DAYS.values()]
                    row = counts.setdefault(defect, [0, *(0 for _ in DAYS)])
                    counts[defect] = [row[0] + 1, *map(sum, zip(row[1:], found, strict=True))]
                    if found[-1]:
                        print(source, defect, found, file=sys.stderr)
    print(f"| defect | cases | {' | '.join(DAYS)} |\n|{'---|' * (len(DAYS) + 2)}")
    for defect, row in counts.items():
        print(f"| {defect} | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "")
