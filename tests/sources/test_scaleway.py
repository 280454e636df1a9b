from dataclasses import replace

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, following, page, read, sample

ZONE = "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers"


def server(**fields):
    info = {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-SXM", "gpu_memory": 85899345920}
    return {"gpu": 2, "gpu_info": info, "hourly_price": 6.6198, "end_of_service": False, **fields}


def servers(**named):
    return answer({"servers": {name.replace("_", "-"): fields for name, fields in named.items()}}, url=ZONE)


def test_types_with_all_their_fields():
    listings, rejects = read("scaleway", answer(sample("scaleway_servers_2026-08-22.json"), url=ZONE))
    assert rejects == []
    assert [(row.instance_type, row.raw_label, row.gpu_count, str(row.native_price)) for row in listings] == [
        ("B300-SXM-8-288G", "B300-SXM", 8, "60.0"),
        ("H100-1-80G", "H100-PCIe", 1, "2.8665"),
        ("H100-SXM-8-80G", "H100-SXM", 8, "25.3308"),
    ]
    assert {(row.native_currency, row.native_unit, row.region) for row in listings} == {
        ("EUR", "instance_hour", "fr-par-2")
    }
    h100 = listings[2]
    assert (h100.vcpus, h100.ram_gib, h100.local_disk_gb, h100.context) == (128, 960, 12800, {"vram_gb": 80})


def test_the_one_type_billed_by_the_hour_states_it():
    listings, _ = read("scaleway", servers(RENDER_S=server(), H100_SXM_2_80G=server()))
    found = {row.instance_type: row.billing_increment_seconds for row in listings}
    assert found == {"RENDER-S": 3600, "H100-SXM-2-80G": None}  # None: as the yaml says for all


def test_availability_belongs_to_its_own_zone():
    types = answer(page("scaleway", "servers_fr-par-2.json"), url=ZONE)
    stock = answer(page("scaleway", "availability_fr-par-2.json"), url=f"{ZONE}/availability")
    listings, _ = read("scaleway", stock, types)
    found = {row.instance_type: row.available for row in listings}
    assert (found["H100-SXM-8-80G"], found["H100-2-80G"], found["L4-1-24G"]) == (True, False, True)
    elsewhere = replace(stock, url=stock.url.replace("fr-par-2", "pl-waw-2"))
    listings, _ = read("scaleway", elsewhere, types)
    assert {row.available for row in listings} == {None}


def test_unknown_availability_is_null():
    stock = answer({"servers": {"A": {"availability": "by arrangement"}}}, url=f"{ZONE}/availability")
    listings, _ = read("scaleway", servers(A=server()), stock)
    assert [row.available for row in listings] == [None]


def test_from_a_file_alone_the_zone_is_unknown():
    listings, _ = read("scaleway", answer(page("scaleway", "servers_pl-waw-2.json")))
    assert {row.region for row in listings} == {None}
    assert len(listings) == 3


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"end_of_service": True}, "discontinued"),
        ({"hourly_price": None}, "not_offered"),
        ({"hourly_price": 0}, "zero_price"),
        ({"hourly_price": "€6.62"}, "unreadable_price"),
        ({"gpu": "many"}, "unknown_gpu_count"),
        ({"gpu": -1}, "unknown_gpu_count"),
        ({"mig_profile": "1g.10gb"}, "unknown_gpu_share"),
    ],
)
def test_machines_that_cannot_be_rented_or_read_are_refused(fields, reason):
    listings, rejects = read("scaleway", servers(A=server(), B=server(**fields)))
    assert [row.instance_type for row in listings] == ["A"]
    assert [r.reason for r in rejects] == [reason]


def test_optional_fields_may_be_absent():
    bare = {"gpu": "1", "hourly_price": "0.7875"}
    listings, _ = read("scaleway", servers(L4_1_24G=bare, other={"gpu": 0}))
    (row,) = listings
    assert (row.raw_label, row.label_kind, row.instance_type, row.gpu_count) == (
        "L4-1-24G",
        "instance_type",
        "L4-1-24G",
        1,
    )
    assert (row.vcpus, row.ram_gib, row.context) == (None, None, {})


def test_paging():
    first = answer({"servers": {str(at): server() for at in range(100)}}, url=f"{ZONE}?per_page=100&page=1")
    second = f"{ZONE}?per_page=100&page=2"
    assert following("scaleway", first) == second
    assert following("scaleway", replace(first, headers={"x-total-count": "100"})) is None
    assert following("scaleway", replace(first, headers={"x-total-count": "101"})) == second
    assert following("scaleway", answer({"servers": {}}, url=second)) is None
    assert following("scaleway", answer("<html>", url=f"{ZONE}?per_page=100&page=1")) is None


@pytest.mark.parametrize(
    "body",
    [
        '{"servers": {"H100-1-80G": {"ncpus": 24, "ra',
        {"servers": {}},
        {"servers": []},
        {"server_types": {"A": server()}},
        {"servers": {"A": {"ncpus": 2, "hourly_price": 1}}},
        {"servers": {"A": {"gpu": 0, "hourly_price": 1}}},
        {"servers": {"A": {"availability": "available"}}},
    ],
)
def test_another_shape_is_a_clear_failure(body):
    with pytest.raises(SourceChangedError):
        read("scaleway", answer(body, url=ZONE))


def test_servers_without_their_envelope_are_read_too():
    server = {"gpu": 1, "gpu_info": {"gpu_name": "L4", "gpu_memory": 25769803776}, "hourly_price": 0.7875}
    listings, _ = read("scaleway", answer({"L4-1-24G": server, "note": "odd"}))
    assert [(row.instance_type, str(row.native_price)) for row in listings] == [("L4-1-24G", "0.7875")]


def test_one_zone_that_answers_something_else_does_not_take_the_others_along():
    good = {"servers": {"L4-1-24G": {"gpu": 1, "gpu_info": {"gpu_name": "L4"}, "hourly_price": 0.75}}}
    listings, rejects = read("scaleway", answer({"message": "unknown zone"}), answer(good))
    assert [row.instance_type for row in listings] == ["L4-1-24G"]
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]
