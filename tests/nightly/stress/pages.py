"""The fuzz of tests/nightly/fuzz with ten thousand pages per source."""

from collections import Counter
from collections.abc import Sequence

from tests.nightly.fuzz.run import MAX_SHOWN, SOURCES, fuzz
from tests.nightly.stress.homes import Lab
from tests.nightly.stress.runner import Figures, Part

PAGES = 10_000
PAGES_PER_UNIT = 1_000
SLOWEST_SECONDS = 20
MEMORY_MIB = 500


def units(seed: str) -> list[str]:
    """A thousand pages of one source."""
    return [f"{source} {start}" for start in range(0, PAGES, PAGES_PER_UNIT) for source in SOURCES]


def run(lab: Lab, unit: str, seed: str, pages: int = PAGES_PER_UNIT) -> Figures:
    """Read the pages from a number on."""
    source, start = unit.split()
    tally = fuzz(source, range(int(start), int(start) + pages), seed=f"stress {seed}")
    problems = [f"{source}: {crash}" for crash in tally.crashes]
    problems += [f"{source}, {kind}: {detail}" for kind, detail in tally.findings]
    if tally.slowest_seconds > SLOWEST_SECONDS:
        problems.append(f"{source}: page {tally.slowest} took {tally.slowest_seconds:.1f} s")
    if tally.peak_growth_mib > MEMORY_MIB:
        problems.append(f"{source}: the memory grew by {tally.peak_growth_mib:.0f} MiB")
    return {
        "problems": problems[:MAX_SHOWN],
        "pages": tally.pages,
        "offers": tally.offers,
        "refused": tally.refused,
        "unforeseen": tally.unforeseen,
        "crashes": len(tally.crashes),
        "wrong": dict(tally.wrong),
        "slowest_seconds": round(tally.slowest_seconds, 2),
        "peak_growth_mib": round(tally.peak_growth_mib, 1),
    }


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    sums: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for result in results:
        sums.update({name: result.get(name, 0) for name in ("pages", "offers", "crashes", "unforeseen")})
        wrong.update(result.get("wrong", {}))
    slowest = max((result.get("slowest_seconds", 0) for result in results), default=0)
    memory = max((result.get("peak_growth_mib", 0) for result in results), default=0)
    kinds = f" ({', '.join(f'{kind} {count:,}' for kind, count in sorted(wrong.items()))})" if wrong else ""
    said = (
        f"{sums['pages']:,} pages, {sums['offers']:,} offers read",
        f"{sums['crashes']} crashes",
        f"{wrong.total():,} accepted offers that the reader could have known to be wrong{kinds}",
        f"slowest page {slowest:.1f} s, memory at most +{memory:.0f} MiB",
        f"{sums['unforeseen']:,} pages refused by way of an exception that the reader did not foresee",
    )
    return "; ".join(said)


PART = Part("fuzz", "mutated pages of every source", units, run, figures, 1700)
