"""Latitude.sh: bare-metal plans with GPUs, per region, from the data embedded in the price page.

A plan is priced per machine: by the hour or, at a lower price, by the month or the year. Plans without GPUs
are skipped, and so are virtual machines, whose GPUs are not in that data.
"""

import re

from pipeline.sources import kit

PRICES: tuple[tuple[str, kit.PriceKind, int | None, kit.NativeUnit], ...] = (
    ("hour", "on_demand", None, "instance_hour"),
    ("month", "reserved", kit.DAYS_PER["month"], "instance_month"),
    ("year", "reserved", kit.DAYS_PER["year"], "instance_term"),
)

_PLAN = re.compile(r'\{\s*"id":\s*"plan_[^"]{1,40}",\s*"type":\s*"plans"')
_IN_STOCK = {"high": True, "medium": True, "low": True, "unavailable": False}


@kit.reader("no plan with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per plan, region and term."""
    plans = [audit.item(raw, answer) for raw in kit.objects_after(kit.flight_text(answer), _PLAN, answer)]
    if not plans:
        raise answer.changed("the page's data has no plan")
    for plan in plans:
        if plan.peek("attributes", "specs", "gpu"):
            yield from _read_plan(plan)


def _read_plan(plan: kit.JsonObject) -> kit.Rows:
    attributes = plan.object("attributes")
    name, specs = attributes.optional_text("slug"), attributes.object("specs")
    gpu = specs.object("gpu")
    for region in attributes.objects("regions"):
        place = region.optional_text("name")
        prices = region.object("pricing").object(plan.config.currency)
        for field, kind, days, unit in PRICES:
            try:
                yield plan.listing(
                    gpu.text("type"),
                    gpu.gpu_count("count"),
                    prices.price(field),
                    native_unit=unit,
                    price_kind=kind,
                    term_days=days,
                    instance_type=attributes.text("slug"),
                    context=kit.known(vram_gb=gpu.optional_number("vram_per_gpu")),
                    interconnect=gpu.optional_text("interconnect"),
                    ram_gib=specs.object("memory").optional_number("total"),
                    region=place,
                    country=place,
                    available=_IN_STOCK.get(str(region.get("stock_level"))),
                )
            except kit.RowError as error:
                yield plan.reject(error, f"{name} in {place}, {kind}", region.raw)
