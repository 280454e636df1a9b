"""Vultr: cloud GPU plans, sold in fractions of a card, and bare-metal plans, identified by their ids.

Prices are per hour for the whole plan, and are the same wherever the plan can be deployed.
"""

from fractions import Fraction

from pipeline.sources import kit

PRICES: tuple[tuple[str, kit.PriceKind, str], ...] = (
    ("hourly_cost", "on_demand", "deploy_ondemand"),
    ("hourly_cost_preemptible", "spot", "deploy_preemptible"),
)
"""Price fields of a plan: field, kind, and the flag that says whether it can be deployed at that price."""


@kit.reader("no plan with a GPU")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU plan, price kind and location. Plans without a GPU are skipped.

    A plan that cannot be deployed anywhere has one listing, without a region and with ``available`` False.
    """
    plans = audit.items(answer, "plans", "plans_metal")
    yield from kit.read_rows(plans, _read_plan, "id")


def _read_plan(plan: kit.JsonObject) -> kit.Rows:
    if plan.peek("type") == "vcg" or "gpu_type" in plan.raw:
        return _read_cloud_gpu(plan)
    # Plans for bare metal, and for dedicated machines (type vdm), name their GPUs only in the id.
    words = str(plan.peek("id")).lower().split("-")
    has_brand = plan.peek("gpu_brand") not in (None, "", "none")
    if "gpu" in words or words[0] == "vcg" or has_brand or plan.peek("id") is None:
        return _read_prices(plan, plan.text("id"), _stated_count(plan), {})
    return iter(())


def _read_cloud_gpu(plan: kit.JsonObject) -> kit.Rows:
    """Read a cloud GPU plan, whose number of cards must agree with its memory: a whole number of cards, or
    one equal part of a card (a quarter, a twentieth)."""
    gpu_type, vram_gb = plan.text("gpu_type"), plan.get("gpu_vram_gb")
    count = _stated_count(plan)
    card_gb = plan.config.settings["vram_gb_per_gpu"].get(gpu_type)
    if card_gb is None and (count is None or count < 1):
        detail = f"the memory of a whole {gpu_type} is not in catalog/sources/vultr.yaml"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    try:
        vram = Fraction(kit.number(vram_gb))
    except kit.UnreadableError as error:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, f"gpu_vram_gb {error}") from error
    by_memory = _checked(vram / card_gb, f"{vram_gb} GB of {gpu_type}") if card_gb else count
    if by_memory is None or count not in (None, by_memory):
        detail = f"gpu_count {plan.peek('gpu_count')!r}, but {vram_gb} GB of {gpu_type} are {by_memory}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return _read_prices(plan, gpu_type, by_memory, {"vram_gb": float(card_gb or vram / by_memory)})


def _stated_count(plan: kit.JsonObject) -> Fraction | None:
    """Return the number of GPUs that a plan states, as a number or a string ("8", "1/4"). Raises RowError."""
    stated = plan.get("gpu_count")
    if stated is None:
        return None
    try:
        count, _, parts = str(stated).partition("/")
        return _checked(
            Fraction(kit.number(count)) / Fraction(kit.number(parts or 1)), f"gpu_count {stated!r}"
        )
    except (kit.UnreadableError, ZeroDivisionError) as error:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, f"gpu_count {stated!r}: {error}") from error


def _checked(count: Fraction, what: str) -> Fraction:
    """Return a whole number of GPUs, or one equal part of a GPU. Raises RowError for any other count."""
    if count <= 0 or 1 not in (count.numerator, count.denominator):
        detail = f"{what} is neither a number of GPUs nor one part of a GPU"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return count


def _read_prices(
    plan: kit.JsonObject, label: str, gpu_count: Fraction | None, context: dict[str, float]
) -> kit.Rows:
    plan_id = plan.text("id")
    disk_gb, disks = plan.optional_number("disk"), plan.optional_number("disk_count")
    for name, kind, deployable in PRICES:
        if kind == "spot" and plan.get(name) is None:
            continue
        try:
            if plan.get(deployable) is False:
                raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"{deployable} is false")
            price = plan.price(name)
        except kit.RowError as error:
            yield plan.reject(error, f"{plan_id} {kind}")
            continue
        for region, available in _regions(plan):
            yield plan.listing(
                label,
                None if gpu_count is None else float(gpu_count),
                price,
                label_kind="instance_type" if label == plan_id else "gpu_name",
                instance_type=plan_id,
                price_kind=kind,
                context=context,
                region=region,
                available=available,
                vcpus=plan.optional_number("vcpu_count", "cpu_threads"),
                ram_gib=plan.optional_number("ram", per=kit.MIB_PER_GIB),
                local_disk_gb=None if disk_gb is None else disk_gb * (disks or 1),
            )


def _regions(plan: kit.JsonObject) -> list[tuple[str | None, bool | None]]:
    """Return the regions where a plan can be deployed, with the plan's availability in each region."""
    locations = plan.get("locations")
    if not isinstance(locations, list):
        return [(None, None)]
    regions = dict.fromkeys(region for region in locations if isinstance(region, str) and region)
    return [(region, True) for region in regions] or [(None, False)]
