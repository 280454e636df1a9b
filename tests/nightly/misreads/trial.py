"""The same kinds of defect in every source of the sample day: how many of them reach a ranking.

    python -m tests.nightly.misreads.trial [NAME ...]

One card's defects are tried for up to six labels of each source. All take some minutes; names keep to the
defects whose names contain one of them.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.contracts.listing import Listing
from pipeline.home.paths import Home
from tests.homes import make_sample_home
from tests.nightly.misreads.misreads import Misread, at_the_price_of, each, listings_of, shifted_by_one, times
from tests.nightly.misreads.world import World

DAYS = {"first day": (True,), "after a good day": (False, True)}

FACTORS = {"halved": "0.5", "quartered": "0.25", "x4": "4", "x10": "10"}


def cases(source: str, listings: Sequence[Listing], labels: int) -> Iterator[tuple[str, Misread]]:
    """Each defect that the source's listings can have, those of one card for a number of labels."""
    yield "all prices divided by ten", Misread(source, times("0.1"))
    for factor in ("0.855", "1.17"):
        yield "all prices times 0.855 or 1.17, no currency mark on the page", Misread(source, times(factor))
    yield "prices shifted by one row", Misread(source, shifted_by_one)
    if any(row.price_kind == "spot" for row in listings):
        yield "spot price as on-demand", Misread(source, at_the_price_of("on_demand", "spot", drop=True))
        yield "missing spot mark", Misread(source, each(lambda _: {"price_kind": "on_demand"}, kind="spot"))
    for label in list(dict.fromkeys(row.raw_label for row in listings))[:labels]:
        for name, factor in FACTORS.items():
            yield f"one card {name}", Misread(source, times(factor, label=label))


def counts(world: World, names: Sequence[str], labels: int = 6) -> dict[str, Counter[str]]:
    """Of each defect whose name contains one of ``names``, the number of cases and of those that reach a
    ranking, by when it began."""
    found: dict[str, Counter[str]] = {}
    for source in world.sources():
        for defect, misread in cases(source, listings_of(world.clean(source)[1]), labels):
            if any(name in defect for name in names):
                reach = {when: bool(world.with_misread(misread, days)) for when, days in DAYS.items()}
                found.setdefault(defect, Counter()).update({"cases": 1, **reach})
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sample = Home(Path(folder) / "sample")
        make_sample_home(sample.root)
        table = counts(World(sample, Path(folder) / "world"), sys.argv[1:] or [""])
    print(f"| defect | cases | {' | '.join(DAYS)} |\n|---|---|---|---|")
    for defect, row in table.items():
        print(f"| {defect} | {' | '.join(str(row[column]) for column in ('cases', *DAYS))} |")
