"""SkyPilot's catalogue: ``<cloud>/vms.csv``.

The columns are those that SkyPilot 0.14.1 reads (sky/catalog/common.py). Its catalogue of Google Cloud prices
an accelerator and its host apart, which no offer does: Google Cloud is left out.
"""

from typing import Any

from pipeline.export.machines import Layout, Machine, plain

COLUMNS = {
    "InstanceType": ("string", "The provider's name of the machine."),
    "AcceleratorName": ("string", "The GPU as SkyPilot names it."),
    "AcceleratorCount": ("number", "Number of GPUs."),
    "vCPUs": ("number", "Virtual processors of the machine."),
    "MemoryGiB": ("number", "Memory of the machine in GiB."),
    "Price": ("number", "On demand, in US dollars per hour."),
    "Region": ("string", "The provider's name of the region."),
    "GpuInfo": ("string", "The GPUs' memory, as a literal of Python."),
    "SpotPrice": ("number", "Spot, in US dollars per hour."),
}


def _rows(machine: Machine) -> list[dict[str, Any]]:
    memory_mib = round(machine.memory_gb * 1024)
    info = {
        "Gpus": [
            {
                "Name": machine.accelerator,
                "Manufacturer": machine.vendor.upper(),
                "Count": float(machine.count),
                "MemoryInfo": {"SizeInMiB": memory_mib},
            }
        ],
        "TotalGpuMemoryInMiB": memory_mib * machine.count,
    }
    return [
        {
            "InstanceType": machine.instance_type,
            "AcceleratorName": machine.accelerator,
            "AcceleratorCount": machine.count,
            "vCPUs": plain(machine.vcpus),
            "MemoryGiB": plain(machine.ram_gib),
            "Price": plain(machine.on_demand),
            "Region": machine.region,
            "GpuInfo": repr(info),
            "SpotPrice": plain(machine.spot),
        }
    ]


SKYPILOT = Layout(
    tool="skypilot",
    title="GPU machines in the layout of SkyPilot's catalogue",
    description="Machines of one cloud, in the layout of SkyPilot's catalogue.",
    file="{cloud}/vms.csv",
    columns=COLUMNS,
    rows=_rows,
)
