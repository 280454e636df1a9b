"""Linode (Akamai Cloud): GPU plans of the public list of types."""

from collections.abc import Iterator, Sequence

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, Row
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import RowError
from pipeline.parsing.units import gib_from_mib

MB_PER_GB = 1000


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """Plans with GPUs, priced per Linode: one listing for the plan and one per region with its own price.

    Plans without GPUs are skipped. Raises SourceChangedError when no plan has GPUs.
    """
    audit = FieldAudit(config)
    plans = (
        plan
        for answer in answers
        for plan in audit.items(answer, "data")
        if plan.peek("class") == "gpu" or plan.peek("gpus")
    )
    yield from at_least_one(read_rows(plans, _read_plan, "id"), f"{config.name}: no plan with GPUs")
    yield from audit.warnings()


def _read_plan(plan: JsonObject) -> Iterator[Listing | Reject]:
    plan_id, label, gpu_count = plan.text("id"), plan.text("label"), plan.gpu_count("gpus")
    disk_mb = plan.optional_number("disk")
    regional = [(place.optional_text("id"), place) for place in plan.objects("region_prices")]
    for region, price in [(None, plan.object("price")), *regional]:
        try:
            yield Listing(
                raw_label=label,
                instance_type=plan_id,
                gpu_count=gpu_count,
                price_kind="on_demand",
                native_price=price.price("hourly"),
                native_currency="USD",
                native_unit="instance_hour",
                answer=plan.answer,
                region=region,
                vcpus=plan.optional_number("vcpus"),
                ram_gib=gib_from_mib(plan.get("memory")),
                local_disk_gb=None if disk_mb is None else disk_mb / MB_PER_GB,
            )
        except RowError as error:
            yield plan.reject(error, f"{plan_id}, {region or 'everywhere'}")
