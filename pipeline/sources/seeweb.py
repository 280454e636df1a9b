"""Seeweb: GPU plans from the Cloud Server API, priced per machine-hour, one offer per region."""

from pipeline.sources import kit


@kit.reader("no plan with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Plans with GPUs, one listing per region. Raises SourceChangedError if the answer is an error."""
    envelope = audit.envelope(answer, "plans")
    if "status" in envelope and envelope.get("status") != "ok":
        raise answer.changed(f"the answer's status is {envelope.get('status')!r}")
    # Numbers are strings: a plan without GPUs has "0" GPUs and no label.
    plans = [
        plan
        for plan in envelope.items("plans")
        if plan.peek("gpu") not in (None, "", "0", 0) or plan.peek("gpu_label")
    ]
    return kit.read_rows(plans, _read_plan, "name")


def _read_plan(plan: kit.JsonObject) -> kit.Rows:
    if plan.get("available") is False:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "the plan is not active")
    if plan.get("windows") is True:
        raise kit.RowError(kit.RejectReason.NOT_LINUX, "the plan includes Windows")
    regions = [place.optional_text("location") for place in plan.objects("available_regions")]
    if not regions:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "the plan is in no region")
    for region in dict.fromkeys(regions):
        yield plan.listing(
            plan.text("gpu_label"),
            plan.gpu_count("gpu"),
            plan.price("hourly_price"),
            instance_type=plan.text("name"),
            region=region,
            vcpus=plan.optional_number("cpu"),
            ram_gib=plan.optional_number("ram", per=kit.MIB_PER_GIB),
            local_disk_gb=plan.optional_number("disk"),
        )
