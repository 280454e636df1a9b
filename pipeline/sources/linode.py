"""Linode (Akamai Cloud): GPU plans from the public list of types."""

from pipeline.sources import kit

MB_PER_GB = 1000


@kit.reader("no plan with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Plans with GPUs, priced per Linode: one listing for the plan and one per region with a separate price.

    Plans without GPUs are skipped.
    """
    plans = audit.items(answer, "data")
    with_gpus = [plan for plan in plans if plan.peek("class") == "gpu" or plan.peek("gpus")]
    return kit.read_rows(with_gpus, _read_plan, "id")


def _read_plan(plan: kit.JsonObject) -> kit.Rows:
    plan_id, label, gpu_count = plan.text("id"), plan.text("label"), plan.gpu_count("gpus")
    regional = [(place.optional_text("id"), place) for place in plan.objects("region_prices")]
    for region, price in [(None, plan.object("price")), *regional]:
        try:
            yield plan.listing(
                label,
                gpu_count,
                price.price("hourly"),
                instance_type=plan_id,
                region=region,
                vcpus=plan.optional_number("vcpus"),
                ram_gib=plan.optional_number("memory", per=kit.MIB_PER_GIB),
                local_disk_gb=plan.optional_number("disk", per=MB_PER_GB),
            )
        except kit.RowError as error:
            yield plan.reject(error, f"{plan_id}, {region or 'everywhere'}")
