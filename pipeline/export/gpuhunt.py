"""gpuhunt's catalogue (its version 2): ``<provider>.csv``.

The columns are those that gpuhunt 0.1.34 reads (gpuhunt/_internal/storage.py). Its query reads the files of
READ_FROM_FILES and asks the other providers live.
"""

from typing import Any

from pipeline.export.machines import Layout, Machine, plain

READ_FROM_FILES = ("aws", "azure", "cloudrift", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda")
"""OFFLINE_PROVIDERS of gpuhunt 0.1.34: its query fails where the file of one is missing, so that each is
written, if only with its heading."""

ARM_CARDS = ("GH200", "GB200", "GB300")
"""Sold with NVIDIA's own processor, which is ARM."""

COLUMNS = {
    "instance_name": ("string", "The provider's name of the machine."),
    "location": ("string", "The provider's name of the region."),
    "price": ("number", "US dollars per hour."),
    "cpu": ("integer", "Virtual processors of the machine."),
    "memory": ("number", "Memory of the machine in GiB."),
    "gpu_count": ("integer", "Number of GPUs."),
    "gpu_name": ("string", "The GPU as gpuhunt names it."),
    "gpu_memory": ("number", "Memory of one GPU in GB."),
    "spot": ("string", "True for a spot price, False on demand."),
    "disk_size": ("number", "Size of the machine's own disk in GB; empty where it is not known."),
    "gpu_vendor": ("string", "Maker of the GPU."),
    "flags": ("string", "Always empty."),
    "cpu_arch": ("string", "x86 or arm."),
    "provider_data": ("string", "Always an empty object."),
}


def _rows(machine: Machine) -> list[dict[str, Any]]:
    prices = ((machine.on_demand, False), (machine.spot, True))
    return [
        {
            "instance_name": machine.instance_type,
            "location": machine.region,
            "price": plain(price),
            "cpu": int(machine.vcpus),
            "memory": plain(machine.ram_gib),
            "gpu_count": machine.count,
            "gpu_name": machine.accelerator,
            "gpu_memory": plain(machine.memory_gb),
            "spot": spot,
            "disk_size": plain(machine.disk_gb),
            "gpu_vendor": machine.vendor,
            "flags": "",
            "cpu_arch": "arm" if machine.accelerator in ARM_CARDS else "x86",
            "provider_data": "{}",
        }
        for price, spot in prices
        if price is not None
    ]


GPUHUNT = Layout(
    tool="gpuhunt",
    title="GPU machines in the layout of gpuhunt's catalogue",
    description="Machines of one provider, in the layout of gpuhunt's catalogue.",
    file="{cloud}.csv",
    columns=COLUMNS,
    rows=_rows,
    always_written=READ_FROM_FILES,
)
