"""The record, and what is built from it."""

from collections.abc import Iterator
from datetime import timedelta

from pipeline.contracts.errors import GpufareError
from pipeline.health.doctor.finding import Examination, Row
from pipeline.record.mending import damages
from pipeline.warehouse.plan_cache import PREFIX, damage_of
from pipeline.warehouse.query import ask, reader

PUBLISHED_WARNING = timedelta(days=2)


def files(x: Examination) -> Iterator[Row]:
    """Check that every file of the record can be read."""
    found = damages(x.home)
    for damage in found:
        remedy = "the next `gpufare refresh` sets it aside and reads its days again from the archive"
        yield "fail", damage.reason, x.short(damage.path), remedy
    if not found:
        yield "ok", "every file can be read", "", ""


def cache(x: Examination) -> Iterator[Row]:
    """Results that are computed again when they are missing: useless files are deleted."""
    kept = sorted(path for path in x.home.cache.glob("*.*") if path.is_file())
    prepared = [path for path in kept if path.match(f"{PREFIX}-*.duckdb")]
    newest = max(prepared, key=lambda path: path.stat().st_mtime, default=None)
    useless = {path: "outdated" for path in kept if path != newest}
    if newest is not None and (problem := damage_of(newest)):
        useless[newest] = problem
    for path, problem in useless.items():
        if x.fix:
            path.unlink(missing_ok=True)
            yield "fixed", f"deleted ({problem}); it is computed again when it is needed", x.short(path), ""
        else:
            yield "warn", problem, x.short(path), "`gpufare doctor --fix` deletes it; it is computed again"
    if not useless:
        yield "ok", f"{len(kept)} files can be read", "", ""


def published(x: Examination) -> Iterator[Row]:
    """Whether the published file opens, and of when it is."""
    if not x.home.published.exists():
        yield "fail", "nothing is published yet", str(x.home.published), "run `gpufare refresh`"
        return
    try:
        with reader(x.home.published) as connection:
            day, moment, sources = ask(
                connection, "SELECT as_of_day, as_of_time, sources_ranked FROM main.publication"
            ).rows[0]
            ask(connection, "SELECT count(*) FROM main.cheapest_gpu_per_workload")
    except (GpufareError, IndexError) as error:
        yield "fail", str(error), "", "`gpufare refresh` publishes a new file"
        return
    what = f"opens; as of {day}, published {moment:%Y-%m-%d %H:%M} UTC, {sources} sources ranked"
    if x.today - day >= PUBLISHED_WARNING:
        yield (
            "warn",
            f"{what}: {(x.today - day).days} days old",
            "",
            "run `gpufare refresh`, and find out why it has not run",
        )
    else:
        yield "ok", what, "", ""
