"""Denvr Dataworks: machines on the price page, per GPU-hour, from the data that Wix embeds in the page."""

import re

from pipeline.sources import kit

SCRIPT = "wix-warmup-data"
PATH = ("appsWarmupData", "dataBinding", "dataStore", "recordsByCollectionId", "GPUInstances")
"""Path to the machines in the page's data, where each machine is stored under the id of its record."""

PER_GPU = frozenset({"gpu", "gpu-hr", "gpu-hour", "gpu/hr", "gpu/hour"})
"""Accepted units of a price: a price in any other unit could be for a whole machine."""


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per machine. Raises SourceChangedError if the page's data contains no machine."""
    return kit.read_rows(_machines(answer, audit), _read_machine, "title", "gpuVram")


def _machines(answer: kit.Answer, audit: kit.FieldAudit) -> list[kit.JsonObject]:
    scripts = kit.page(answer).find_all("script", id=SCRIPT)
    if len(scripts) != 1:
        raise answer.changed(f"{len(scripts)} scripts {SCRIPT!r}, not one")
    try:
        data = kit.read_json(scripts[0].get_text(), answer.url)
    except ValueError as error:
        raise answer.changed(f"{SCRIPT!r} cannot be read ({error})") from error
    for name in PATH:
        data = data.get(name) if isinstance(data, dict) else None
    records = list(data.values()) if isinstance(data, dict) else []
    machines = [audit.item(record, answer) for record in records if isinstance(record, dict)]
    if not machines:
        raise answer.changed(f"no machines at {'.'.join(PATH)}")
    return machines


def _read_machine(machine: kit.JsonObject) -> kit.Rows:
    label, vram_gb = machine.text("title"), kit.gigabytes(machine.optional_text("gpuVram"))
    vcpus, ram_gib = machine.optional_number("vCpUs"), kit.gigabytes(machine.optional_text("memory"))
    count, price = machine.gpu_count("gpuCount"), str(machine.get("price") or "")
    if not re.search(r"\d", price):
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"no price is given: {price!r}")
    yield kit.cell_price(price, PER_GPU, [machine.config.currency]).listing(
        label,
        count,
        machine.answer,
        native_unit="gpu_hour",
        gpu_counts=(count,),
        context=kit.known(vram_gb=vram_gb),
        vcpus=vcpus,
        ram_gib=ram_gib,
    )
