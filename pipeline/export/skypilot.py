"""SkyPilot's catalogue: ``<cloud>/vms.csv``.

The columns are those that SkyPilot 0.14.1 reads (sky/catalog/common.py). Google Cloud is omitted,
because its catalogue prices accelerators and hosts separately, which no offer does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from pipeline.catalog.places import place_of, zones_of
from pipeline.export.forms import Offer
from pipeline.export.machines import Layout, Machine, decimal
from pipeline.export.tools import accelerator

VAST_SIZE = (32.0, 64.0)
"""vCPUs and memory in GiB of every machine of Vast in SkyPilot's own catalogue (catalogs/v8/vast/vms.csv of
skypilot-catalog, read on 2026-11-29), since SkyPilot has Vast round larger hosts down."""


def _refusal(offer: Offer) -> str | None:
    if offer["source"] != "vast":
        return None
    if offer["tier"] != "marketplace_verified":
        return "SkyPilot rents only verified hosts of vast"
    vcpus, ram_gib = VAST_SIZE
    if (offer["vcpus"] or 0) < vcpus or (offer["ram_gib"] or 0) < ram_gib:
        return "smaller than the machines of vast that SkyPilot names"
    return None


def _named(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield a machine with the name by which SkyPilot rents it; at AWS, once for each zone."""
    rename = _NAMES.get(machine["source"])
    named = {**machine, **(rename(machine) if rename and machine["gpu_id"] else {})}
    if machine["source"] != "aws" or machine["region"] is None:
        yield named
        return
    zones: Sequence[str | None] = zones_of("aws", machine["region"]) or [None]
    for zone in zones:
        yield {**named, "zone": zone}


def _on_cudo(machine: Offer) -> dict[str, Any]:
    """Return the name from the machine type and its numbers of GPUs, vCPUs and GiB (fetch_cudo.py)."""
    sizes = [machine["gpu_count"], machine["vcpus"], machine["ram_gib"]]
    if machine["instance_type"] is None or None in sizes:
        return {}
    gpus, vcpus, ram_gib = map(decimal, sizes)
    return {"instance_type": f"{machine['instance_type']}_{gpus}x{vcpus}v{ram_gib}gb"}


def _on_nebius(machine: Offer) -> dict[str, Any]:
    """Return the name from the platform and the preset (fetch_nebius.py)."""
    return {"instance_type": machine["instance_type"] and machine["instance_type"].replace(" ", "_")}


def _on_runpod(machine: Offer) -> dict[str, Any]:
    """Return the name from the number of GPUs and the card, and the data centre's country, which is
    SkyPilot's region (fetch_runpod.py)."""
    if machine["tier"] != "secure" or machine["instance_type"] is None:
        return {"instance_type": None}
    gpu, region = accelerator("skypilot", "runpod", machine["gpu_id"]), machine["region"]
    return {
        "instance_type": f"{decimal(machine['gpu_count'])}x_{gpu}_SECURE",
        "region": place_of("runpod", region).country,
        "zone": region,
    }


def _on_vast(machine: Offer) -> dict[str, Any]:
    """Return the name from the number of GPUs, Vast's name of the card, vCPUs and MiB (fetch_vast.py)."""
    vcpus, ram_gib = VAST_SIZE
    label = "_".join(machine["raw_label"].split())
    name = f"{decimal(machine['gpu_count'])}x-{label}-{vcpus:.0f}-{ram_gib * 1024:.0f}"
    return {"instance_type": name, "vcpus": vcpus, "ram_gib": ram_gib}


_NAMES: Mapping[str, Callable[[Offer], dict[str, Any]]] = {
    "cudo": _on_cudo,
    "nebius": _on_nebius,
    "runpod": _on_runpod,
    "vast": _on_vast,
}


def _gpu_info(machine: Machine) -> str:
    memory_mib = round(machine["memory_gb"] * 1024)
    gpu = {
        "Name": machine["accelerator"],
        "Manufacturer": machine["vendor"].upper(),
        "Count": float(machine["gpu_count"]),
        "MemoryInfo": {"SizeInMiB": memory_mib},
    }
    return repr({"Gpus": [gpu], "TotalGpuMemoryInMiB": memory_mib * int(machine["gpu_count"])})


SKYPILOT = Layout(
    tool="skypilot",
    title="GPU machines in the layout of SkyPilot's catalogue",
    description="Machines of one cloud, in the layout of SkyPilot's catalogue.",
    file="{cloud}/vms.csv",
    columns={
        "InstanceType": ("string", "The machine as SkyPilot names it.", itemgetter("instance_type")),
        "AcceleratorName": ("string", "The GPU as SkyPilot names it.", itemgetter("accelerator")),
        "AcceleratorCount": ("number", "Number of GPUs.", lambda row: int(row["gpu_count"])),
        "vCPUs": ("number", "Virtual processors of the machine.", lambda row: decimal(row["vcpus"])),
        "MemoryGiB": ("number", "Memory of the machine in GiB.", lambda row: decimal(row["ram_gib"])),
        "Price": ("number", "On demand, in US dollars per hour.", lambda row: decimal(row["on_demand"])),
        "Region": ("string", "The region as SkyPilot names it.", itemgetter("region")),
        "GpuInfo": ("string", "The GPUs' memory, as a literal of Python.", _gpu_info),
        "SpotPrice": ("number", "Spot, in US dollars per hour.", lambda row: decimal(row["spot"])),
    },
    cloud_columns={
        "aws": {"AvailabilityZone": ("string", "AWS's id of the zone.", itemgetter("zone"))},
        "runpod": {"AvailabilityZone": ("string", "RunPod's name of the data centre.", itemgetter("zone"))},
    },
    refusal=_refusal,
    named=_named,
)
