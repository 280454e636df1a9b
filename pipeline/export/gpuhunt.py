"""gpuhunt's catalogue: ``<provider>.csv``, and the same files in the layout of its version 3.

The columns are those that gpuhunt 0.1.34 reads (gpuhunt/_internal/storage.py). gpuhunt's query reads the
files of the providers in READ_FROM_FILES and asks all other providers live. From a folder, it reads
``<provider>.csv``; from an address, it reads version 3, in which each provider has its own version:
``v3/<provider>/version`` names the folder with the newest ``catalog.zip`` (gpuhunt/_internal/catalog.py).
"""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.export.forms import Offer, counts_of, with_count
from pipeline.export.machines import Layout, Machine, decimal, unchanged
from pipeline.export.tools import accelerator
from pipeline.parsing.units import GB_PER_GIB, HOURS_PER_MONTH

READ_FROM_FILES = ("aws", "azure", "cloudrift", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda")
"""OFFLINE_PROVIDERS of gpuhunt 0.1.34, whose query fails if the file of one of these providers is missing."""

ARM_CARDS = ("GH200", "GB200", "GB300")
"""Cards sold with NVIDIA's own ARM processor."""


DAYTONA_SIZE_PER_GPU = (8, 100, 256)
"""vCPUs, GiB of memory and GiB of disk of the sandboxes that gpuhunt 0.1.34 lists at Daytona, where any size
can be rented (gpuhunt/providers/daytona.py)."""

DAYTONA_GIB_PER_GPU = {"rtx-4090": 50, "rtx-5090": 50}
"""The cards whose sandboxes have less memory there."""

VAST_HOURS_PER_MONTH = 30 * 24
"""By which gpuhunt divides the monthly price of a disk (gpuhunt/providers/vastai.py)."""


def _named(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield a machine with the name, region, size and price by which gpuhunt lists it; unchanged, and so
    without a name, if that takes a column that the offer lacks."""
    needed, rename = _NAMES.get(machine["source"], ((), unchanged))
    lacks_any = any(machine[column] is None for column in needed)
    yield from unchanged(machine) if lacks_any else rename(machine)


def _at_daytona(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield a sandbox for each number of GPUs, with the price of its host and disk."""
    vcpus, gib, disk_gib = DAYTONA_SIZE_PER_GPU
    gib = DAYTONA_GIB_PER_GPU.get(machine["gpu_id"], gib)
    gpu = accelerator("gpuhunt", "daytona", machine["gpu_id"])
    host_usd = vcpus * machine["host_usd_per_vcpu_hour"] + gib * machine["host_usd_per_gib_hour"]
    disk_usd = disk_gib * GB_PER_GIB * machine["storage_usd_per_gb_month"] / HOURS_PER_MONTH
    for count in counts_of(machine):
        sandbox = with_count(machine, count)
        size = f"{count * vcpus}cpu-{count * gib}gb-{count * disk_gib}gb"
        yield sandbox | {
            "instance_type": f"{count}x-{gpu}-{size}",
            "region": "earth",
            "vcpus": count * vcpus,
            "ram_gib": count * gib,
            "local_disk_gb": count * disk_gib,
            "usd_per_hour": round(sandbox["usd_per_hour"] + count * (host_usd + disk_usd), 6),
        }


def _at_hotaisle(machine: Offer) -> Iterator[dict[str, Any]]:
    name = f"vm-{accelerator('gpuhunt', 'hotaisle', machine['gpu_id'])}-{decimal(machine['gpu_count'])}"
    yield {**machine, "instance_type": name.lower() if machine["tier"] == "vm" else None}


def _at_lium(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield a node for each number of its GPUs, with whole shares of the host. Of a place, gpuhunt has the
    country and the state: a place that lacks one of its three parts is no region."""
    place = machine["region"].split(", ")
    for count in counts_of(machine):
        node, share = with_count(machine, count), count / machine["gpu_count"]
        yield node | {
            "instance_type": machine["listing_id"],
            "region": f"{place[2]}-{place[1]}".lower() if len(place) == 3 else None,
            **{column: int(machine[column] * share) for column in ("vcpus", "ram_gib", "local_disk_gb")},
            "usd_per_hour": round(node["usd_per_hour"], 5),
        }


def _at_vast(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield an ask with the price of the default disk, unless that is in the price already. A place such as
    ", US", which names no town, is "us-" to gpuhunt."""
    disk_gb = source_config("vast").settings["disk_in_total_gb"]
    disk_usd = disk_gb * machine["storage_usd_per_gb_month"] / VAST_HOURS_PER_MONTH
    added = disk_usd if machine["local_disk_gb"] is None else 0
    *town, country = machine["region"].split(", ")
    yield {
        **machine,
        "instance_type": machine["listing_id"],
        "region": f"{country}-{', '.join(town)}".lower().replace(" ", ""),
        "local_disk_gb": machine["local_disk_gb"] or disk_gb,
        "disk_usd": disk_usd,
        "usd_per_hour": round(machine["usd_per_hour"] + added, 5),
    }


_HOST_PRICES = ("host_usd_per_vcpu_hour", "host_usd_per_gib_hour", "storage_usd_per_gb_month")

_NAMES: Mapping[str, tuple[Sequence[str], Callable[[Offer], Iterator[dict[str, Any]]]]] = {
    "daytona": (_HOST_PRICES, _at_daytona),
    "hotaisle": ((), _at_hotaisle),
    "lium": (("listing_id", "region", "vcpus", "ram_gib", "local_disk_gb"), _at_lium),
    "vast": (("listing_id", "region", "storage_usd_per_gb_month"), _at_vast),
}
"""The columns from which a source's machines get their names, and how."""


def _provider_data(machine: Machine) -> str:
    """Return what a client needs to rent the machine, as JSON: the bid at Vast, Daytona's name of the GPU."""
    data: dict[str, Any] = {}
    if machine["source"] == "vast" and machine["is_spot"]:
        data["min_bid"] = float(machine["price"] - round(machine["disk_usd"], 5))
    if machine["source"] == "daytona" and machine["raw_label"] != machine["accelerator"]:
        data["gpu_type"] = machine["raw_label"]
    return json.dumps(data)


def _architecture(machine: Machine) -> str:
    return "arm" if machine["accelerator"] in ARM_CARDS else "x86"


def _flags(machine: Machine) -> str:
    """Return the flag with which gpuhunt hides machines from releases of dstack that cannot rent them."""
    if machine["source"] == "oci" and machine["is_spot"]:
        return "oci-spot"
    return "lambda-arm" if machine["source"] == "lambda" and _architecture(machine) == "arm" else ""


def _write_version_3(folder: Path) -> Sequence[tuple[str, str]]:
    """Write the files of READ_FROM_FILES in version 3's layout, and return the paths with descriptions."""
    version = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    written = []
    for provider in READ_FROM_FILES:
        place = folder / "v3" / provider
        (place / version).mkdir(parents=True)
        with zipfile.ZipFile(place / version / "catalog.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            packed.write(folder / f"{provider}.csv", f"{provider}.csv")
        (place / "version").write_text(f"{version}\n", encoding="utf-8")
        written += [
            (f"v3/{provider}/{version}/catalog.zip", f"{provider}.csv, packed."),
            (f"v3/{provider}/version", "The folder with the newest catalog.zip."),
        ]
    return written


GPUHUNT = Layout(
    tool="gpuhunt",
    title="GPU machines in the layout of gpuhunt's catalogue",
    description="Machines of one provider, in the layout of gpuhunt's catalogue.",
    file="{cloud}.csv",
    columns={
        "instance_name": ("string", "The provider's name of the machine.", itemgetter("instance_type")),
        "location": ("string", "The provider's name of the region.", itemgetter("region")),
        "price": ("number", "US dollars per hour.", lambda row: decimal(row["price"])),
        "cpu": ("integer", "Virtual processors of the machine.", lambda row: int(row["vcpus"])),
        "memory": ("number", "Memory of the machine in GiB.", lambda row: decimal(row["ram_gib"])),
        "gpu_count": ("integer", "Number of GPUs.", lambda row: int(row["gpu_count"])),
        "gpu_name": ("string", "The GPU as gpuhunt names it.", itemgetter("accelerator")),
        "gpu_memory": ("number", "Memory of one GPU in GB.", lambda row: decimal(row["memory_gb"])),
        "spot": ("string", "True for a spot price, False on demand.", itemgetter("is_spot")),
        "disk_size": (
            "number",
            "Size of the machine's own disk in GB; empty if unknown.",
            lambda row: decimal(row["local_disk_gb"]),
        ),
        "gpu_vendor": ("string", "Maker of the GPU.", itemgetter("vendor")),
        "flags": ("string", "What a client must know to rent the machine; mostly empty.", _flags),
        "cpu_arch": ("string", "x86 or arm.", _architecture),
        "provider_data": ("string", "What else a client needs to rent the machine, as JSON.", _provider_data),
    },
    always_written=READ_FROM_FILES,
    row_per_price=True,
    named=_named,
    further_files=_write_version_3,
)
