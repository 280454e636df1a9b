"""The assets: for each source its raw answers and its offers, then every published table.

Each source has its own run, so that a broken one stops no other; publishing takes what was accepted. An
offers asset whose capture failed or whose reading was refused raises after recording the outcome, so that
its run fails visibly.
"""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.capture.litter import sweep
from pipeline.capture.visit import PastDayError
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Outcome
from pipeline.daily.ingest import record_day
from pipeline.daily.origin import capture_live
from pipeline.model.accuracy import worsened
from pipeline.model.calibrate import calibrate
from pipeline.orchestration.resources import GpufareHome
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import table_lineage
from pipeline.warehouse.publish import publish
from pipeline.warehouse.scripts import BuildError

days = dg.DailyPartitionsDefinition(start_date="2026-08-01", timezone="UTC", end_offset=1)
"""end_offset=1: a page captured today belongs to today's partition, not yesterday's."""

WRITER_POOL = "publish"

EXPECTATIONS = "expectations"

SQL_CHECKS = "sql_checks"


def raw_key(source: str) -> dg.AssetKey:
    """The raw answers of a source."""
    return dg.AssetKey(["raw", source])


def offers_key(source: str) -> dg.AssetKey:
    """What was read from them: offers, or exchange rates."""
    return dg.AssetKey(["exchange_rates" if configs()[source].kind == "exchange_rates" else "offers", source])


def table_key(table: str) -> dg.AssetKey:
    """A table of the published file."""
    return dg.AssetKey(["published", table])


def _raw_asset(config: SourceConfig) -> dg.AssetsDefinition:
    @dg.asset(
        key=raw_key(config.name),
        partitions_def=days,
        group_name="raw",
        kinds={"http"},
        pool=f"host_{config.name}",
        description=f"{config.title}: the raw answers, archived. Evidence: {config.evidence.note}",
        metadata={"homepage": dg.MetadataValue.url(config.homepage)},
    )
    def raw(context: dg.AssetExecutionContext, home: GpufareHome) -> dg.MaterializeResult[None]:
        """A failed capture is archived too; the offers asset records its outcome and fails."""
        day = date.fromisoformat(context.partition_key)
        archive = Archive(home.folders().archive)
        replay_url = home.replay_url or None
        try:
            capture = capture_live([config], day, archive, os.environ, replay_url=replay_url)[config.name]
        except PastDayError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        if capture.capture_id is None:
            raise dg.Failure(capture.error, allow_retries=False)
        return dg.MaterializeResult(
            metadata={
                "status": capture.status,
                "requests": len(capture.entries),
                "bytes": capture.bytes,
                "retries": capture.retries,
                "error": capture.error or "",
            }
        )

    return raw


def _offers_asset(config: SourceConfig) -> dg.AssetsDefinition:
    @dg.asset(
        key=offers_key(config.name),
        deps=[raw_key(config.name)],
        partitions_def=days,
        group_name="offers",
        kinds={"parquet"},
        description=f"{config.title}: the archived answers of the day, read, normalized and judged.",
        freshness_policy=dg.FreshnessPolicy.time_window(
            fail_window=timedelta(days=config.stale_after_days), warn_window=timedelta(hours=30)
        ),
        check_specs=[dg.AssetCheckSpec(EXPECTATIONS, asset=offers_key(config.name))],
    )
    # With a check, dagster reads this annotation and does not know a parametrized one.
    def offers(context: dg.AssetExecutionContext, home: GpufareHome) -> dg.MaterializeResult:  # type: ignore[type-arg]
        day = date.fromisoformat(context.partition_key)
        captures = Archive(home.folders().archive).captures(config.name, day)
        outcome = record_day(config, day, captures, home.folders())
        if not outcome.accepted:
            raise dg.Failure(outcome.error or outcome.reason, allow_retries=False)
        expectations = dg.AssetCheckResult(
            check_name=EXPECTATIONS,
            passed=not outcome.warnings,
            severity=dg.AssetCheckSeverity.WARN,
            description="; ".join(outcome.warnings) or "as the source's yaml expects",
        )
        return dg.MaterializeResult(metadata=_metadata(outcome), check_results=[expectations])

    return offers


def _metadata(outcome: Outcome) -> dict[str, dg.MetadataValue]:
    return {
        "rows": dg.MetadataValue.int(outcome.rows),
        "rejects": dg.MetadataValue.int(outcome.rejects),
        "open GPU labels": dg.MetadataValue.int(outcome.ambiguous + outcome.unknown),
        "warnings": dg.MetadataValue.text("; ".join(outcome.warnings)),
    }


source_assets = [
    asset
    for config in configs().values()
    if config.disabled is None
    for asset in (_raw_asset(config), _offers_asset(config))
]


def _table_spec(table: str, reads: set[str], described: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=table_key(table),
        deps=[*(table_key(read) for read in sorted(reads)), *_records_behind(table)],
        group_name="published",
        kinds={"duckdb"},
        description=described,
    )


def _records_behind(table: str) -> list[dg.AssetKey]:
    """The source assets whose records fill a table."""
    kinds = {"offers": "prices", "rejects": "prices", "exchange_rates": "exchange_rates"}
    kind = kinds.get(table)
    return [offers_key(c.name) for c in configs().values() if c.kind == kind and c.disabled is None]


lineage = table_lineage()


@dg.multi_asset(
    name="publish",
    specs=[_table_spec(*row) for row in lineage],
    check_specs=[dg.AssetCheckSpec(SQL_CHECKS, asset=table_key("cheapest_gpu_per_workload"))],
    pool=WRITER_POOL,
)
def published_tables(
    context: dg.AssetExecutionContext, home: GpufareHome
) -> Iterator[dg.MaterializeResult[None]]:
    """Build every table from the record and swap the published file."""
    now = datetime.now(UTC)
    if swept := sweep(home.folders()):
        context.log.info(f"swept {len(swept)} half-written files of runs that were killed")
    try:
        report = publish(home.folders(), now.date(), now, context.log.info)
    except BuildError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    checked = dg.AssetCheckResult(
        check_name=SQL_CHECKS,
        asset_key=table_key("cheapest_gpu_per_workload"),
        passed=not report.warnings,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(report.warnings) or "no check of sql/checks found anything",
    )
    for table, _, _ in lineage:
        key = table_key(table)
        checks = [checked] if key == checked.asset_key else []
        yield dg.MaterializeResult(asset_key=key, metadata={"rows": report.rows[table]}, check_results=checks)


@dg.asset(key=dg.AssetKey(["model", "calibration"]), group_name="model", kinds={"scipy"})
def calibration(home: GpufareHome) -> dg.MaterializeResult[None]:
    """Fit the model's constants and bands on the measured runs, into <home>/calibration for review.

    What answers use are the reviewed files of the catalogue; `gpufare calibrate` writes those.
    """
    folder = home.folders().calibration
    folder.mkdir(parents=True, exist_ok=True)
    record = calibrate(datetime.now(UTC).date(), folder)
    return dg.MaterializeResult(
        metadata={
            "folder": dg.MetadataValue.path(str(folder)),
            "data_sha256": record["data_sha256"],
            "errors": dg.MetadataValue.json({name: record[name] for name in ("memory", "speed")}),
        }
    )


@dg.asset_check(asset=table_key("model_accuracy"), description="Held-out errors against the reviewed record.")
def model_does_not_get_worse() -> dg.AssetCheckResult:
    """Fails when a held-out error is more than a tenth above what was reviewed."""
    with in_memory("memory_of", "speed_of") as connection:
        reasons = worsened(connection)
    return dg.AssetCheckResult(passed=not reasons, description="; ".join(reasons) or "as reviewed, or better")
