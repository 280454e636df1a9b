"""Each source's asset: the offers (or exchange rates) read from its answers, which are archived first.

One step makes the assets of all chosen sources, so that only one process starts: it asks the sources in
parallel, as `gpufare refresh` does, and then reads one source after the other. A source that fails gets an
outcome in the record, a failed check, and no materialization; all other sources are captured and read before
the step fails because of that source. Publishing is a separate run, which uses the accepted offers.

The assets have no partitions: Dagster would show a source as red as long as any day had failed, and as amber
as long as any day was missing, and a missed day cannot be captured later. A run captures today; a past day,
given in the run's config, is read again from the archive, or is skipped if it was never captured.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError, sentence_of
from pipeline.contracts.outcome import Outcome
from pipeline.health.digest import harmless
from pipeline.home import paths
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.keys import CAPTURE_STEP, SOURCES_GROUP, code_version, offers_key
from pipeline.orchestration.resources import PAGES_VARIABLE, GpufareHome
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources, reject_demo_home
from pipeline.sources import source_file

EXPECTATIONS = "expectations"

MAX_DESCRIPTION_CHARACTERS = 1_000

CAPTURE_POOL = "capture"
"""The pool that keeps two runs from asking the sources' hosts, or writing their record, at the same time.
Within a run, sources that share a host are asked one after the other."""

_Events = Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]


class DayToRead(dg.Config):
    """The config of a run of sources."""

    day: str = Field(
        default="",
        description="A past day (YYYY-MM-DD) to read again from the archive. Empty: capture today (UTC).",
    )


def source_assets(configs: Sequence[SourceConfig]) -> dg.AssetsDefinition:
    """Return the assets of the sources, which can be materialized one by one."""

    @dg.multi_asset(
        name=CAPTURE_STEP,
        specs=[_spec(config) for config in configs],
        check_specs=[
            dg.AssetCheckSpec(
                EXPECTATIONS,
                asset=offers_key(config.name),
                description="The answers were accepted, and are as the source's yaml expects them.",
            )
            for config in configs
        ],
        pool=CAPTURE_POOL,
        can_subset=True,
    )
    def sources(context: dg.AssetExecutionContext, config: DayToRead, home: GpufareHome) -> _Events:
        run = _Run(context, home, _day_of(config))
        chosen = [each for each in configs if offers_key(each.name) in context.selected_asset_keys]
        chosen.sort(key=lambda each: each.kind != "exchange_rates")  # prices need exchange rates
        made = run.captures(chosen)
        for each in chosen:
            try:
                yield from run.source(each, made.get(each.name))
            except Exception as problem:  # one source's error never stops the others
                run.fail(each, sentence_of(problem))
        if run.failed:
            raise dg.Failure(
                f"{len(run.failed)} of {len(chosen)} sources failed: {'; '.join(run.failed.values())}",
                metadata=dict(run.failed),
                allow_retries=False,
            )

    return sources


def _spec(config: SourceConfig) -> dg.AssetSpec:
    files = [paths.CATALOG_DIR / "sources" / f"{config.name}.yaml", source_file(config.name)]
    return dg.AssetSpec(
        key=offers_key(config.name),
        group_name=SOURCES_GROUP,
        kinds={"http", "parquet"},
        tags={"terms": config.terms.automated},
        code_version=code_version(file.read_text(encoding="utf-8") for file in files),
        description=f"{config.title}: the day's answers, archived, read, normalized and judged. "
        f"Evidence: {config.evidence.note}",
        metadata={"homepage": dg.MetadataValue.url(config.homepage)},
        freshness_policy=dg.FreshnessPolicy.time_window(
            fail_window=timedelta(days=config.stale_after_days), warn_window=timedelta(hours=30)
        ),
    )


def _day_of(config: DayToRead) -> date:
    """Return the day to read, by default today (UTC). Raises Failure if the day is not a date, or has not
    begun."""
    today = datetime.now(UTC).date()
    try:
        day = date.fromisoformat(config.day) if config.day else today
    except ValueError as error:
        raise dg.Failure(f"day: {config.day!r} is not a date (YYYY-MM-DD)", allow_retries=False) from error
    if day > today:
        raise dg.Failure(
            f"{day} is in the future: today is {today} (UTC), and no page shows tomorrow's prices",
            allow_retries=False,
        )
    return day


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, with its day and, for each source that failed, the reason."""

    context: dg.AssetExecutionContext
    resource: GpufareHome
    day: date
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return self.resource.folders()

    @property
    def is_past(self) -> bool:
        return self.day < datetime.now(UTC).date()

    def fail(self, config: SourceConfig, reason: str) -> None:
        """Log a source's failure, which fails the step once all sources are done."""
        self.failed[config.name] = f"{config.name}: {reason}"
        self.context.log.error(self.failed[config.name])

    def skip(self, config: SourceConfig, reason: str) -> None:
        """Leave the asset unmaterialized, and show the reason on it."""
        self.context.log.warning(f"{config.name} is skipped: {reason}")
        key = offers_key(config.name)
        self.context.log_event(dg.AssetObservation(key, metadata={"skipped": reason}))

    def captures(self, configs: Sequence[SourceConfig]) -> dict[str, Capture]:
        """Ask the sources in parallel and return their captures by name. For a past day,
        only saved pages are read.

        Raises GpufareError, without asking, if live prices and sample pages would be mixed.
        """
        pages = self.resource.saved_pages()
        if not configs or (self.is_past and not pages):
            return {}
        archive = Archive(self.home.archive)
        if not pages:
            reject_demo_home(self.home)
        elif live := [config.name for config in configs if _has_live_prices(config, archive)]:
            raise GpufareError(
                f"{self.home.root} has live prices of {', '.join(live)}, and {pages} has saved pages: set "
                f"{HOME_VARIABLE} to a folder for sample pages, or unset {PAGES_VARIABLE}"
            )
        try:
            return capture_sources(configs, self.day, archive, os.environ, pages=pages)
        except Exception as problem:  # a problem with the server or client: no source can be asked
            failed = partial(Capture, day=self.day, capture_id=None, status="failed")
            return {each.name: failed(source=each.name, error=sentence_of(problem)) for each in configs}

    def source(self, config: SourceConfig, made: Capture | None) -> _Events:
        """Read a source's captures into the record: the capture just ``made``, or else the archived ones."""
        archived = () if made else Archive(self.home.archive).captures(config.name, self.day)
        captures = [made] if made else [capture for capture in archived if capture.status is not None]
        if self.is_past and not captures:
            why = f"{config.title} was not captured on {self.day}: a live page shows today's prices only"
            self.skip(config, why)
            return
        outcome = record_day(config, self.day, captures, self.home)
        if not outcome.result.asked:
            self.skip(config, outcome.reason or outcome.status)
            return
        check = _expectations(config, outcome, _evidence(config, captures[-1], self.home))
        if outcome.accepted:
            read = "answers of this run" if made else f"the archive: {self.day} is past, no request was sent"
            yield dg.MaterializeResult(
                asset_key=offers_key(config.name),
                metadata={"day": str(self.day), "dagster/row_count": outcome.rows, "read from": read},
            )
        else:
            self.fail(config, outcome.error or outcome.reason or "not accepted")
        yield check  # after the materialization, so that Dagster shows it as a check of this materialization


def _has_live_prices(config: SourceConfig, archive: Archive) -> bool:
    """True if the newest captured day has an answer from the source itself."""
    return any(
        capture.replayed_from is None and any(entry.usable for entry in capture.entries)
        for day in archive.days(config.name)[-1:]
        for capture in archive.captures(config.name, day)
    )


def _expectations(config: SourceConfig, outcome: Outcome, metadata: Mapping[str, Any]) -> dg.AssetCheckResult:
    severity = dg.AssetCheckSeverity.WARN if outcome.accepted else dg.AssetCheckSeverity.ERROR
    reasons = [] if outcome.accepted else [outcome.error or outcome.reason or "not accepted"]
    return dg.AssetCheckResult(
        check_name=EXPECTATIONS,
        asset_key=offers_key(config.name),
        passed=outcome.accepted and not outcome.warnings,
        severity=severity,
        description=markdown_of("; ".join([*reasons, *outcome.warnings]) or "as the source's yaml expects"),
        metadata=metadata,
    )


def markdown_of(reason: str) -> str:
    """Return a reason, which may quote a page, without links or markup: Dagster shows descriptions as
    Markdown."""
    return harmless(reason, MAX_DESCRIPTION_CHARACTERS)


def _evidence(config: SourceConfig, capture: Capture, home: Home) -> dict[str, Any]:
    """Return the last accepted day, and a capture's folder, its numbers, and the first of its addresses that
    gave no usable answer, or else the first one."""
    records = Records(home)
    accepted = records.rate_days() if config.kind == "exchange_rates" else records.accepted_days(config.name)
    failed = [entry.url for entry in capture.entries if not entry.usable]
    page = [*failed, *(entry.url for entry in capture.entries), config.homepage][0]
    is_archived = capture.capture_id is not None
    return {
        "last good day": str(max(accepted, default="never")),
        "page": dg.MetadataValue.url(page),
        "capture": _folder(capture, home) if is_archived else "nothing was archived",
        "requests": capture.requests,
        "bytes": capture.bytes,
        "retries": capture.retries,
        "replayed from": capture.replayed_from or "",
    }


def _folder(capture: Capture, home: Home) -> dg.PathMetadataValue:
    return dg.MetadataValue.path(str(Archive(home.archive).folder(capture)))
