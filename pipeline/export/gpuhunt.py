"""gpuhunt's catalogue, version 2: ``<provider>.csv``.

The columns are those that gpuhunt 0.1.34 reads (gpuhunt/_internal/storage.py). gpuhunt's query reads the
files of the providers in READ_FROM_FILES and asks all other providers live.
"""

from operator import itemgetter

from pipeline.export.machines import Layout, decimal

READ_FROM_FILES = ("aws", "azure", "cloudrift", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda")
"""OFFLINE_PROVIDERS of gpuhunt 0.1.34, whose query fails if the file of one of these providers is missing."""

ARM_CARDS = ("GH200", "GB200", "GB300")
"""Cards sold with NVIDIA's own ARM processor."""

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
        "flags": ("string", "Always empty.", lambda row: ""),
        "cpu_arch": (
            "string",
            "x86 or arm.",
            lambda row: "arm" if row["accelerator"] in ARM_CARDS else "x86",
        ),
        "provider_data": ("string", "Always an empty object.", lambda row: "{}"),
    },
    always_written=READ_FROM_FILES,
    row_per_price=True,
)
