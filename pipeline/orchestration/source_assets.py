"""Each source's two assets: its raw answers, and the offers (or exchange rates) read from them.

Each source has its own runs, so that a broken one stops no other. An asset whose capture failed or whose
reading was refused raises after recording the outcome, so that its run fails visibly.

Today's partition is captured; a past one is read again from the archive, or skipped where it was never
captured: a live page shows today's prices only.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError, sentence_of
from pipeline.contracts.outcome import NOT_ASKED, Outcome
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.code_versions import source_version
from pipeline.orchestration.evidence import markdown_of, page_and_capture
from pipeline.orchestration.keys import PRICES_TEAM, SOURCE_TAG, offers_key, raw_key
from pipeline.orchestration.resources import REPLAY_VARIABLE, GpufareHome
from pipeline.refresh.diagnosis import was_asked
from pipeline.refresh.ingest import record_day
from pipeline.refresh.origin import RefreshError, capture_live, refuse_a_demo

EXPECTATIONS = "expectations"


class MixedHomeError(GpufareError):
    """Sample pages would be filed among live prices: says which home, and what to set."""


def source_assets(config: SourceConfig, days: dg.DailyPartitionsDefinition) -> list[dg.AssetsDefinition]:
    """The raw asset and the offers asset of a source."""
    return [_raw_asset(config, days), _offers_asset(config, days)]


def pool_of(config: SourceConfig) -> str:
    """No two runs ask the hosts of a source, or write its record, at a time, on whichever machine. No two
    sources have a host in common."""
    return f"host_{config.name}"


def _raw_asset(config: SourceConfig, days: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        key=raw_key(config.name),
        partitions_def=days,
        group_name="raw",
        kinds={"http"},
        owners=[PRICES_TEAM],
        tags={SOURCE_TAG: config.name},
        code_version=source_version(config.name),
        pool=pool_of(config),
        output_required=False,
        description=f"{config.title}: the raw answers, archived. Evidence: {config.evidence.note}",
        metadata={"homepage": dg.MetadataValue.url(config.homepage)},
    )
    def raw(context: dg.AssetExecutionContext, home: GpufareHome) -> Iterator[dg.MaterializeResult[None]]:
        """A failed capture is archived too; the offers asset records its outcome and fails."""
        day = _day_of(context)
        archived = _complete(config, day, home.folders())
        if archived and _is_past(day):
            read_again = f"no request was sent: {day} is past, and its archived answers are read again"
            yield dg.MaterializeResult(metadata=_about(archived[-1], home) | {"read again": read_again})
        elif _is_past(day) and not home.replay_server():
            _skip(context, f"{config.title} was not captured on {day}: a live page shows today's prices only")
        else:
            capture = _capture(config, day, home)
            if capture.status in NOT_ASKED:
                # The offers asset is skipped with this one, so what it would record is recorded here.
                outcome = record_day(config, day, [capture], home.folders())
                _skip(
                    context, outcome.reason or outcome.status, raw_key(config.name), offers_key(config.name)
                )
                return
            yield dg.MaterializeResult(metadata=_about(capture, home))

    return raw


def _capture(config: SourceConfig, day: date, home: GpufareHome) -> Capture:
    """Ask the source. Raises Failure, with the outcome recorded, when nothing could be archived. Into a
    demo's home nothing is asked or recorded."""
    archive = Archive(home.folders().archive)
    replay = home.replay_server()
    try:
        if not replay:
            refuse_a_demo(home.folders())
    except RefreshError as refused:
        raise dg.Failure(str(refused), allow_retries=False) from refused
    try:
        if replay and _has_live_prices(config, archive):
            raise MixedHomeError(
                f"{home.folders().root} has live prices of {config.title}, and {replay} replays pages: set "
                f"{HOME_VARIABLE} to a folder for sample pages, or unset {REPLAY_VARIABLE}"
            )
        capture = capture_live([config], day, archive, os.environ, replay_url=replay)[config.name]
    except Exception as problem:
        error = sentence_of(problem)
        capture = Capture(source=config.name, day=day, capture_id=None, status="failed", error=error)
    if capture.capture_id is None:
        outcome = record_day(config, day, [capture], home.folders())
        raise dg.Failure(outcome.error, allow_retries=False)
    return capture


def _has_live_prices(config: SourceConfig, archive: Archive) -> bool:
    """Whether the newest captured day has an answer of the source itself."""
    return any(
        capture.replayed_from is None and any(entry.usable for entry in capture.entries)
        for day in archive.days(config.name)[-1:]
        for capture in archive.captures(config.name, day)
    )


def _offers_asset(config: SourceConfig, days: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    spec = dg.AssetSpec(
        key=offers_key(config.name),
        deps=[raw_key(config.name)],
        skippable=True,
        group_name="offers",
        kinds={"parquet"},
        owners=[PRICES_TEAM],
        tags={SOURCE_TAG: config.name},
        code_version=source_version(config.name),
        description=f"{config.title}: the archived answers of the day, read, normalized and judged.",
        metadata={"homepage": dg.MetadataValue.url(config.homepage)},
        freshness_policy=dg.FreshnessPolicy.time_window(
            fail_window=timedelta(days=config.stale_after_days), warn_window=timedelta(hours=30)
        ),
    )
    check = dg.AssetCheckSpec(
        EXPECTATIONS,
        asset=spec.key,
        description="The answers were accepted, and are as the source's yaml expects them.",
    )

    # can_subset: only then may a day that is skipped give no result of the check.
    @dg.multi_asset(
        name=f"read_{config.name}",
        specs=[spec],
        check_specs=[check],
        partitions_def=days,
        pool=pool_of(config),
        can_subset=True,
    )
    def offers(
        context: dg.AssetExecutionContext, home: GpufareHome
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        day = _day_of(context)
        captures = Archive(home.folders().archive).captures(config.name, day)
        if _is_past(day) and not _complete(config, day, home.folders()):
            _skip(context, f"the archive has no complete capture of {config.title} on {day}")
            return
        outcome = record_day(config, day, captures, home.folders())
        if not was_asked(outcome):
            _skip(context, outcome.reason or outcome.status)
            return
        yield _expectations(config, outcome, page_and_capture(config, captures, home.folders()))
        if not outcome.accepted:
            raise dg.Failure(outcome.error or outcome.reason, allow_retries=False)
        yield dg.MaterializeResult(metadata=_metadata(outcome))

    return offers


def _day_of(context: dg.AssetExecutionContext) -> date:
    """The partition's day. Raises Failure when it has not begun (UTC)."""
    day = date.fromisoformat(context.partition_key)
    today = datetime.now(UTC).date()
    if day > today:
        raise dg.Failure(
            f"{day} is in the future: today is {today} (UTC), and no page shows tomorrow's prices",
            allow_retries=False,
        )
    return day


def _is_past(day: date) -> bool:
    return day < datetime.now(UTC).date()


def _complete(config: SourceConfig, day: date, home: Home) -> Sequence[Capture]:
    """The day's captures that were not interrupted."""
    captures = Archive(home.archive).captures(config.name, day)
    return [capture for capture in captures if capture.status is not None]


def _skip(context: dg.AssetExecutionContext, reason: str, *keys: dg.AssetKey) -> None:
    """Leave the partition unmaterialized, with the reason where people look for it: on the assets, by default
    the one that is made."""
    context.log.warning(f"skipped: {reason}")
    for key in keys or (context.asset_key,):
        context.log_event(
            dg.AssetObservation(key, partition=context.partition_key, metadata={"skipped": reason})
        )


def _about(capture: Capture, home: GpufareHome) -> dict[str, str | int | dg.MetadataValue[Any]]:
    return {
        "status": capture.status or "interrupted",
        "capture": dg.MetadataValue.path(str(Archive(home.folders().archive).folder(capture))),
        "requests": capture.requests,
        "bytes": capture.bytes,
        "retries": capture.retries,
        "error": capture.error or "",
        "replayed from": capture.replayed_from or "",
    }


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


def _metadata(outcome: Outcome) -> dict[str, dg.MetadataValue]:
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(outcome.rows),
        "rejects": dg.MetadataValue.int(outcome.rejects),
        "open GPU labels": dg.MetadataValue.int(outcome.ambiguous + outcome.unknown),
        "warnings": dg.MetadataValue.text("; ".join(outcome.warnings)),
    }
