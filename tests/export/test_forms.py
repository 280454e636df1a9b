"""The machines of an offer: sizes, names and regions from the catalogue, and what the tools make of them."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.machine_sizes import named_machines
from pipeline.catalog.places import regions_of
from pipeline.catalog.tables import catalog_rows
from pipeline.export.forms import Stated, machines_of
from pipeline.export.gpuhunt import GPUHUNT
from pipeline.export.skypilot import SKYPILOT

NOTHING_STATED = Stated.by([])


def offer(source: str, gpu_id: str | None, **columns: Any) -> dict[str, Any]:
    price = {"usd_per_hour": Decimal("2.00"), "price_kind": "on_demand", "size_evidence": "offered"}
    unknown = dict.fromkeys(
        ("instance_type", "listing_id", "gpu_counts", "region", "tier", "vcpus", "ram_gib", "local_disk_gb",
         "storage_usd_per_gb_month", "host_usd_per_vcpu_hour", "host_usd_per_gib_hour")
    )  # fmt: skip
    label = {"raw_label": "a card", "source": source, "gpu_id": gpu_id, "gpu_count": 1.0}
    return unknown | price | label | columns


def sizes(found: dict[str, Any], tool: str = "skypilot") -> list[tuple[Any, ...]]:
    columns = ("instance_type", "gpu_count", "vcpus", "ram_gib", "usd_per_hour")
    seen = dict.fromkeys(
        tuple(each[column] for column in columns) for each in machines_of(found, tool, NOTHING_STATED)
    )
    return [*seen]


def test_a_named_machine_gets_its_size() -> None:
    named = offer("azure", "a100-pcie-80gb", instance_type="Standard_NC48ads_A100_v4", gpu_count=2.0)
    assert sizes(named) == [("Standard_NC48ads_A100_v4", 2, 48, 440, Decimal(2))]
    unknown = offer("azure", "a100-pcie-80gb", instance_type="Standard_NC5_unheard_of")
    assert sizes(unknown) == [("Standard_NC5_unheard_of", 1, None, None, Decimal(2))]


def test_a_price_per_gpu_applies_to_each_machine_with_the_card() -> None:
    per_gpu = offer("nebius", "h200-sxm-141gb", size_evidence="catalogued", vcpus=15.0, ram_gib=190.0)
    assert sizes(per_gpu | {"vcpus": 16.0, "ram_gib": 200.0}) == [
        ("gpu-h200-sxm 1gpu-16vcpu-200gb", 1, 16, 200, Decimal(2)),
        ("gpu-h200-sxm 8gpu-128vcpu-1600gb", 8, 128, 1600, Decimal(16)),
    ]
    assert [name for name, *_ in sizes(per_gpu)] == ["gpu-h200-sxm 8gpu-128vcpu-1600gb"]  # not this size


def test_a_machine_priced_as_a_whole_is_only_that_machine() -> None:
    whole = offer("lambda", "h100-sxm-80gb", gpu_count=4.0, vcpus=104.0, ram_gib=900.0)
    assert sizes(whole) == [("gpu_4x_h100_sxm5", 4, 104, 900, Decimal(2))]


def test_vcpus_decide_between_two_names_and_without_them_neither_counts() -> None:
    whole = offer("lambda", "v100-sxm-16gb", gpu_count=8.0)
    assert [name for name, *_ in sizes(whole | {"vcpus": 88.0})] == ["gpu_8x_v100_n"]
    assert [name for name, *_ in sizes(whole | {"vcpus": 92.0})] == ["gpu_8x_v100"]
    assert sizes(whole) == []


def test_sizes_per_gpu_are_multiplied_for_each_number_that_is_rented() -> None:
    pod = offer("runpod", "h100-sxm-80gb", tier="secure", gpu_counts=[1, 4])
    assert [(count, vcpus, ram) for _, count, vcpus, ram, _ in sizes(pod)] == [(1, 20, 125), (4, 80, 500)]
    assert [price for *_, price in sizes(pod)] == [Decimal(2), Decimal(8)]
    assert [name for name, *_ in sizes(pod | {"tier": "community"})] == [None]


def test_regions_are_the_offers_or_the_machines_or_those_that_the_tool_lists() -> None:
    def places(found: dict[str, Any], tool: str = "skypilot", stated: Stated = NOTHING_STATED) -> list[str]:
        return [machine["region"] for machine in machines_of(found, tool, stated)]

    droplet = offer("digitalocean", "h100-sxm-80gb")
    assert places(droplet) == ["nyc2", "ams3", "tor1"]
    assert places(droplet | {"region": "mkc1"}) == ["mkc1"]
    shape = offer("oci", "h100-sxm-80gb", instance_type="BM.GPU.H100.8", gpu_count=8.0)
    assert places(shape) == regions_of("oci")
    assert places(offer("vultr", "a16"), "gpuhunt") == [None]
    spot = offer("verda", "v100-16gb", instance_type="1V100.6V", price_kind="spot")
    stated = Stated.by([spot | {"region": "FIN-01"}, spot | {"region": "FIN-03"}])
    assert places(spot, "skypilot", stated) == ["FIN-01", "FIN-03"]
    assert places(spot, "gpuhunt", stated) == regions_of("verda")
    assert places(spot) == [None]


def test_the_size_of_a_machine_may_stand_in_another_offer() -> None:
    spot = offer("aws", "l40s", instance_type="g6e.xlarge", price_kind="spot", region="us-east-1")
    stated = Stated.by([spot | {"vcpus": 4.0, "ram_gib": 32.0}])
    (machine,) = machines_of(spot, "skypilot", stated)
    assert (machine["vcpus"], machine["ram_gib"]) == (4.0, 32.0)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (
            offer("cudo", "l40s", instance_type="epyc-l40s", vcpus=8.0, ram_gib=32.0),
            {"instance_type": "epyc-l40s_1x8v32gb"},
        ),
        (
            offer("nebius", "b200-sxm-180gb", instance_type="gpu-b200-sxm 1gpu-20vcpu-224gb"),
            {"instance_type": "gpu-b200-sxm_1gpu-20vcpu-224gb"},
        ),
        (
            offer("runpod", "h100-sxm-80gb", instance_type="a pod", tier="secure", region="CA-MTL-3"),
            {"instance_type": "1x_H100-SXM_SECURE", "region": "CA", "zone": "CA-MTL-3"},
        ),
        (offer("runpod", "l40s", instance_type="a pod", tier="community"), {"instance_type": None}),
        (
            offer("vast", "rtx-6000-ada", raw_label="RTX 6000Ada", gpu_count=2.0, vcpus=48.0, ram_gib=100.0),
            {"instance_type": "2x-RTX_6000Ada-32-65536", "vcpus": 32.0, "ram_gib": 64.0},
        ),
        (offer("azure", "a10", instance_type="Standard_NV36ads_A10_v5"), {"vcpus": None}),
    ],
)
def test_skypilots_name(machine: dict[str, Any], expected: dict[str, Any]) -> None:
    (named,) = SKYPILOT.named(machine)
    assert {column: named[column] for column in expected} == expected


def test_skypilot_lists_a_machine_of_aws_in_each_zone() -> None:
    machine = offer("aws", "l40s", instance_type="g6e.xlarge", region="us-east-2")
    assert [each["zone"] for each in SKYPILOT.named(machine)] == ["use2-az1", "use2-az2", "use2-az3"]
    assert [each["zone"] for each in SKYPILOT.named(machine | {"region": "somewhere-1"})] == [None]


def test_every_pod_of_the_catalogue_has_the_name_that_skypilot_gives_it_at_runpod() -> None:
    """SkyPilot's names of the same cards elsewhere, such as H100, are of other pods there."""
    own = {
        row["gpu_id"] for row in catalog_rows("consumers/accelerator_names.csv") if row["source"] == "runpod"
    }
    assert {row.gpu_id for row in named_machines("runpod")} <= own


def test_skypilot_rents_only_some_hosts_of_vast() -> None:
    host = offer("vast", "l40s", tier="marketplace_verified", vcpus=32.0, ram_gib=64.0)
    assert SKYPILOT.refusal(host) is None
    assert SKYPILOT.refusal(host | {"tier": "marketplace_unverified"}) is not None
    assert SKYPILOT.refusal(host | {"vcpus": 31.0}) is not None
    assert SKYPILOT.refusal(host | {"ram_gib": None}) is not None


def in_gpuhunt(machine: dict[str, Any]) -> list[tuple[Any, ...]]:
    columns = ("instance_type", "region", "gpu_count", "vcpus", "ram_gib", "local_disk_gb", "usd_per_hour")
    return [tuple(named[column] for column in columns) for named in GPUHUNT.named(machine)]


def test_gpuhunt_lists_an_ask_of_vast_by_its_id_with_the_default_disk() -> None:
    ask = offer("vast", "l40s", listing_id="41", region="Texas, US", vcpus=32.0, ram_gib=64.0)
    paid = ask | {"storage_usd_per_gb_month": Decimal("0.9")}
    assert in_gpuhunt(paid) == [("41", "us-texas", 1, 32, 64, 8, Decimal("2.01"))]
    assert in_gpuhunt(paid | {"local_disk_gb": 8})[0][-1] == Decimal(2)  # in the price already
    assert in_gpuhunt(paid | {"region": "US"})[0][1] == "us-"
    for unknown in (ask, paid | {"region": None}, paid | {"listing_id": None}):
        assert in_gpuhunt(unknown)[0][0] is None


def test_gpuhunt_lists_a_node_of_lium_for_each_number_of_its_gpus() -> None:
    node = offer("lium", "l40s", listing_id="n", region="Reston, VA, US", gpu_counts=[1, 3], vcpus=10.5)
    node |= {"ram_gib": 50.5, "local_disk_gb": 99.0}
    assert in_gpuhunt(node) == [
        ("n", "us-va", 1, 10, 50, 99, Decimal(2)),
        ("n", "us-va", 3, 31, 151, 297, Decimal(6)),
    ]
    assert in_gpuhunt(node | {"region": "Reston, US"})[0][1] is None  # or is that a state?
    assert in_gpuhunt(node | {"local_disk_gb": None})[0][0] is None


def test_gpuhunt_adds_the_host_to_daytonas_prices() -> None:
    gpus = offer("daytona", "rtx-4090", gpu_counts=[1, 2], host_usd_per_vcpu_hour=Decimal("0.01"))
    gpus |= {"host_usd_per_gib_hour": Decimal("0.002"), "storage_usd_per_gb_month": Decimal("0.067986548")}
    assert in_gpuhunt(gpus) == [
        ("1x-RTX4090-8cpu-50gb-256gb", "earth", 1, 8, 50, 256, Decimal("2.2056")),
        ("2x-RTX4090-16cpu-100gb-512gb", "earth", 2, 16, 100, 512, Decimal("4.4112")),
    ]
    assert in_gpuhunt(gpus | {"host_usd_per_gib_hour": None})[0][0] is None


def test_gpuhunt_names_virtual_machines_of_hot_aisle_by_card_and_number() -> None:
    (machine,) = machines_of(
        offer("hotaisle", "mi300x", instance_type="Medium", gpu_count=4.0, tier="vm"),
        "gpuhunt",
        NOTHING_STATED,
    )
    assert in_gpuhunt(machine) == [("vm-mi300x-4", "us-michigan-1", 4, 52, 896, None, Decimal(2))]
    assert in_gpuhunt(machine | {"tier": "bare_metal"})[0][0] is None
