"""Scaleway: servers by name, in the zone of the address, and the availability in another answer."""

from typing import Any

from tests.sources.edited_pages import changed, misread, outcome
from tests.sources.helpers import answer, page, sample

ZONE = "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers"
INFO = {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-SXM", "gpu_memory": 85899345920}
SERVER = {"gpu": 2, "gpu_info": INFO, "hourly_price": 6.6198, "end_of_service": False}


def server(change: dict[str, Any]) -> Any:
    return answer({"servers": {"H100-SXM-2-80G": changed(SERVER, change)}}, ZONE)


def test_types_with_all_their_fields() -> None:
    types = answer(sample("scaleway_servers_2026-08-22.json"), ZONE)
    columns = "instance_type raw_label gpu_count native_price native_currency region"
    assert outcome("scaleway", types, columns=columns) == [
        ("B300-SXM-8-288G", "B300-SXM", 8, "60", "EUR", "fr-par-2"),
        ("H100-1-80G", "H100-PCIe", 1, "2.8665", "EUR", "fr-par-2"),
        ("H100-SXM-8-80G", "H100-SXM", 8, "25.3308", "EUR", "fr-par-2"),
    ]
    machine = outcome("scaleway", types, columns="vcpus ram_gib local_disk_gb context")[2]
    assert machine == (128, 960, 12800, {"vram_gb": 80})
    alone = outcome("scaleway", page("scaleway", "servers_pl-waw-2.json"), columns="region")
    assert alone == [None] * 3  # a file alone has no zone


def test_the_one_type_billed_by_the_hour_states_it() -> None:
    types = {"servers": {"RENDER-S": SERVER, "H100-SXM-2-80G": SERVER}}
    found = outcome("scaleway", types, columns="instance_type billing_increment_seconds")
    assert found == [("RENDER-S", 3600), ("H100-SXM-2-80G", None)]  # None: as the yaml says for all


def test_availability_belongs_to_its_own_zone() -> None:
    def stock(state: Any) -> Any:
        listed = {"servers": {"H100-SXM-2-80G": {"availability": state}}}
        return answer(listed, f"{ZONE}/availability"), server({})

    cases = [("available", [True]), ("Scarce", [True]), ("shortage", [False]), ("by arrangement", [None])]
    assert not misread("scaleway", stock, cases, "available")
    of_fr_par, types = stock("available")
    elsewhere = answer(of_fr_par.body, of_fr_par.url.replace("fr-par-2", "pl-waw-2"))
    assert outcome("scaleway", elsewhere, types, columns="available") == [None]


def test_answers_of_another_shape() -> None:
    good = {"L4-1-24G": SERVER, "note": "odd"}
    cases = [
        ((good,), [("H100-SXM", "6.6198")]),
        (({"message": "unknown zone"}, {"servers": good}), [("H100-SXM", "6.6198"), "unreadable_answer"]),
        (({"servers": []},), ["changed: the answer has no servers by name"]),
        (({"servers": {}},), ["changed: no server type with a GPU"]),
        (({"servers": {"A": {"availability": "available"}}},), ["changed: no server type with a GPU"]),
        *[
            ((body,), ["changed: the servers have neither a GPU count nor an availability"])
            for body in ({"server_types": {"A": SERVER}}, {"servers": {"A": {"ncpus": 2, "hourly_price": 1}}})
        ],
    ]
    assert not misread("scaleway", lambda answers: answers, cases)
