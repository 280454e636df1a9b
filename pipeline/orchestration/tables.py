"""The published tables as assets of one step, a check for each file of sql/checks, and the report."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import duckdb
from rich.filesize import decimal as size_text

from pipeline.home.litter import sweep
from pipeline.orchestration.keys import (
    code_version,
    enabled_sources,
    offers_key,
    table_key,
)
from pipeline.orchestration.resources import GpufareHome
from pipeline.page.write import write_report
from pipeline.refresh.publishing import publish_day, publish_plans, store_published
from pipeline.warehouse.checks import Check, CheckFailedError, CheckResult, Level, checks
from pipeline.warehouse.lineage import Lineage, PublishedTable, table_lineage
from pipeline.warehouse.sql_files import BuildError

WRITER_POOL = "publish"

_RECORD_TABLES = {"offers": "prices", "rejects": "prices", "exchange_rates": "exchange_rates"}
"""Tables that are filled from the record, with the kind of source that fills them."""

REPORTED = (
    "publication", "cheapest_gpu_per_workload", "price_history", "price_list",
    "source_health", "rejects", "offers_latest", "model_accuracy", "model_accuracy_summary", "claim_audit",
)  # fmt: skip
"""Tables shown in the report."""


def _lineage() -> tuple[list[PublishedTable], dict[str, dg.AssetKey]]:
    """Return the published tables, each after those it reads, and the table that each check belongs to: the
    last one that the check reads, which is the closest to users' questions."""
    found = checks()
    with duckdb.connect() as connection:
        reader = Lineage(connection)
        reader.parse(check.query for check in found)
        tables = table_lineage(reader)
        order = [table.name for table in tables]
        read = {check.name: reader.names_in(check.query) & set(order) for check in found}
        return tables, {check: table_key(max(names, key=order.index)) for check, names in read.items()}


lineage, checked_tables = _lineage()


def _table_spec(table: PublishedTable) -> dg.AssetSpec:
    kind = _RECORD_TABLES.get(table.name)
    sources = [offers_key(config.name) for config in enabled_sources() if config.kind == kind]
    columns = [
        dg.TableColumn(
            column.name,
            column.type,
            description=column.meaning,
            constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in table.columns
    ]
    return dg.AssetSpec(
        key=table_key(table.name),
        deps=[*(table_key(read) for read in sorted(table.reads)), *sources],
        group_name="published",
        kinds={"duckdb"},
        code_version=code_version(table.definition),
        description=table.comment,
        metadata={"dagster/column_schema": dg.TableSchema(columns)},
        freshness_policy=dg.FreshnessPolicy.time_window(
            fail_window=timedelta(hours=49), warn_window=timedelta(hours=25)
        ),
    )


_CONSEQUENCES: Mapping[Level, str] = {
    "fail": "Such rows stop the publishing.",
    "error": "Such rows are an error, but the last accepted prices are published.",
    "warn": "Such rows are a warning.",
}


def _check_spec(check: Check) -> dg.AssetCheckSpec:
    consequence = _CONSEQUENCES[check.level]
    return dg.AssetCheckSpec(
        check.name,
        asset=checked_tables[check.name],
        description=f"Looks for: {check.sentence}. {consequence}",
        metadata={
            "file": f"sql/checks/{check.name}.sql",
            "query": dg.MetadataValue.md(f"```sql\n{check.query.strip()}\n```"),
        },
    )


def _check_result(result: CheckResult) -> dg.AssetCheckResult:
    is_warning = result.check.level == "warn"
    return dg.AssetCheckResult(
        check_name=result.check.name,
        asset_key=checked_tables[result.check.name],
        passed=result.passed,
        severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
        description="found nothing" if result.passed else result.check.sentence,
        metadata={} if result.passed else {"first rows": _rows(result.columns, result.rows)},
    )


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dg.MetadataValue:
    """Return rows as JSON, which Dagster shows as text, so that no label from a page becomes markup."""
    table = [dict(zip(columns, row, strict=True)) for row in rows]
    return dg.MetadataValue.json(json.loads(json.dumps(table, default=str)))


@dg.multi_asset(
    name="publish",
    specs=[_table_spec(table) for table in lineage],
    check_specs=[_check_spec(check) for check in checks()],
    pool=WRITER_POOL,
)
def published_tables(
    context: dg.AssetExecutionContext, home: GpufareHome
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Build every table from the record and swap the published file."""
    now = datetime.now(UTC)
    if swept := sweep(home.folders()):
        context.log.info(f"deleted {len(swept)} half-written files of killed runs")
    try:
        report = publish_day(home.folders(), now.date(), now, context.log.info)
    except CheckFailedError as error:
        yield from map(_check_result, error.results)
        raise dg.Failure(str(error), allow_retries=False) from error
    except BuildError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    for incident in report.incidents:
        context.log.warning(incident.line())
    _store(context, home)
    # As in a refresh, a replay shows its prices without the minutes that the plans of every model take.
    if not home.saved_pages() and (again := publish_plans(home.folders(), now.date(), now, context.log.info)):
        report = again
        _store(context, home)
    for table in lineage:
        rows = {"dagster/row_count": report.rows[table.name]}
        yield dg.MaterializeResult(asset_key=table_key(table.name), metadata=rows)
    yield from map(_check_result, report.checks)


def _store(context: dg.AssetExecutionContext, home: GpufareHome) -> None:
    """Send the published file to the bucket, if there is one, and log the outcome."""
    if stored := store_published(home.folders(), os.environ, context.log.info):
        context.log.info(stored)


@dg.asset(
    key=dg.AssetKey("report"),
    deps=[table_key(table) for table in REPORTED],
    group_name="published",
    kinds={"html"},
)
def report(context: dg.AssetExecutionContext, home: GpufareHome) -> dg.MaterializeResult[None]:
    """Write the report on the published file into <home>/report, for a browser or a web server.

    If writing fails, the published file and the earlier report stay.
    """
    folders = home.folders()
    page = write_report(folders, folders.report, datetime.now(UTC))
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.url(page.as_uri()),
            "size": dg.MetadataValue.text(size_text(page.stat().st_size)),
        }
    )
