"""SkyPilot's catalogue: ``<cloud>/vms.csv``.

The columns are those that SkyPilot 0.14.1 reads (sky/catalog/common.py). Google Cloud is omitted,
because its catalogue prices accelerators and hosts separately, which no offer does.
"""

from operator import itemgetter

from pipeline.export.machines import Layout, Machine, decimal


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
        "InstanceType": ("string", "The provider's name of the machine.", itemgetter("instance_type")),
        "AcceleratorName": ("string", "The GPU as SkyPilot names it.", itemgetter("accelerator")),
        "AcceleratorCount": ("number", "Number of GPUs.", lambda row: int(row["gpu_count"])),
        "vCPUs": ("number", "Virtual processors of the machine.", lambda row: decimal(row["vcpus"])),
        "MemoryGiB": ("number", "Memory of the machine in GiB.", lambda row: decimal(row["ram_gib"])),
        "Price": ("number", "On demand, in US dollars per hour.", lambda row: decimal(row["on_demand"])),
        "Region": ("string", "The provider's name of the region.", itemgetter("region")),
        "GpuInfo": ("string", "The GPUs' memory, as a literal of Python.", _gpu_info),
        "SpotPrice": ("number", "Spot, in US dollars per hour.", lambda row: decimal(row["spot"])),
    },
)
