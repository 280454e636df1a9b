"""gpuhunt's catalogue: ``<provider>.csv``, and the same files in the layout of its version 3.

The columns are those that gpuhunt 0.1.34 reads (gpuhunt/_internal/storage.py). gpuhunt's query reads the
files of the providers in READ_FROM_FILES and asks all other providers live. From a folder, it reads
``<provider>.csv``; from an address, it reads version 3, in which each provider has its own version:
``v3/<provider>/version`` names the folder with the newest ``catalog.zip`` (gpuhunt/_internal/catalog.py).
"""

import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from pipeline.export.machines import Layout, Machine, decimal

READ_FROM_FILES = ("aws", "azure", "cloudrift", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda")
"""OFFLINE_PROVIDERS of gpuhunt 0.1.34, whose query fails if the file of one of these providers is missing."""

ARM_CARDS = ("GH200", "GB200", "GB300")
"""Cards sold with NVIDIA's own ARM processor."""


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
        "provider_data": ("string", "Always an empty object.", lambda row: "{}"),
    },
    always_written=READ_FROM_FILES,
    row_per_price=True,
    further_files=_write_version_3,
)
