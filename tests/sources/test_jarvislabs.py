"""JarvisLabs' cards and server_meta."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Listing, ReaderWarning, SourceChangedError
from pipeline.sources import jarvislabs
from tests.sources.helpers import answer, page, read, sample


def variant(old: str, new: str) -> str:
    text = page("jarvislabs", "pricing.html")
    assert old in text
    return text.replace(old, new)


def prices(listings: list[Listing]) -> dict[tuple[str, str], Decimal]:
    return {(row.raw_label, row.price_kind): row.native_price for row in listings}


def test_cards_are_read_and_copies_comparisons_and_storage_are_not() -> None:
    listings, rejects = read("jarvislabs", answer(page("jarvislabs", "pricing.html")))
    assert prices(listings) == {
        ("H200 SXM", "on_demand"): Decimal("3.99"),
        ("H100 SXM", "on_demand"): Decimal("2.69"),
        ("RTX Pro 6000", "on_demand"): Decimal("1.89"),
        ("A100 80GB", "on_demand"): Decimal("1.49"),
        ("A100 40GB", "on_demand"): Decimal("0.89"),
        ("L4", "on_demand"): Decimal("0.44"),
        ("A30", "on_demand"): Decimal("0.41"),
    }
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_a_card_without_a_price_does_not_take_the_next_one() -> None:
    listings, rejects = read(
        "jarvislabs", answer(variant("<span>$2.69</span>", "<span>Contact sales</span>"))
    )
    assert ("H100 SXM", "on_demand") not in prices(listings)
    assert prices(listings)["RTX Pro 6000", "on_demand"] == Decimal("1.89")
    assert [reject.reason for reject in rejects] == ["not_offered"] * 2


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("$0.44</span><span>$0.30", "unreadable_row"),
        ("$0.44</span><small>Spot</small><span>$0.19", "unreadable_row"),
        ("$320.00 / month", "unreadable_price"),
        ("$320.00 monthly", "unreadable_price"),
        ("$320.00</span><small>a month</small><span>", "unreadable_price"),
        ("$320.00, billed each year", "unreadable_price"),
        ("$320 mo", "unreadable_price"),
        ("$320 USD/month", "unreadable_price"),
        ("$320 · monthly", "unreadable_price"),
        ("Reserved $0.30", "unreadable_price"),
        ("₹36", "unreadable_price"),
        ("$0.00", "zero_price"),
    ],
)
def test_a_price_that_is_not_clear_is_rejected(shown: str, reason: str) -> None:
    text = variant('<span>$0.44</span><span class="unit">/hr</span>', f"<span>{shown}</span>")
    listings, rejects = read("jarvislabs", answer(text))
    assert "L4" not in {row.raw_label for row in listings}
    assert sorted(reject.reason for reject in rejects) == sorted(["not_offered", reason])


def test_cards_as_running_text() -> None:
    text = """<p>H100 SXM Hopper · 80 GB $2.69 /hr A100 Ampere · 40 GB $0.89
    L4 Ada&nbsp;·&nbsp;24&nbsp;GB $0.44/GPU/hr</p>"""
    listings, rejects = read("jarvislabs", answer(text))
    assert not rejects
    assert [(row.raw_label, row.native_price) for row in listings] == [
        ("H100 SXM", Decimal("2.69")),
        ("A100", Decimal("0.89")),
        ("L4", Decimal("0.44")),
    ]
    assert listings[2].context == {"vram_gb": Decimal(24)}


def test_a_unit_in_running_text_stays_with_its_price() -> None:
    text = "<p>L4 Ada · 24 GB $30 monthly A100 Ampere · 40 GB $0.89 H100 Hopper · 80 GB $2.69 /hr monthly</p>"
    listings, rejects = read("jarvislabs", answer(text))
    assert [(row.raw_label, str(row.native_price)) for row in listings] == [
        ("A100", "0.89"),
        ("H100", "2.69"),
    ]
    assert [reject.detail[:2] for reject in rejects] == ["L4"]


@pytest.mark.parametrize(
    "body",
    ["<table><tr><th>GPU</th><th>$/hour</th></tr></table>", '{"server_meta": [', '{"server_meta": []}'],
)
def test_a_page_without_gpus_counts_as_changed(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("jarvislabs", answer(body))


def test_server_meta_of_the_api() -> None:
    listings, rejects = read("jarvislabs", answer(sample("jarvislabs_server_meta_2026-08.json")))
    india, chennai = "india-noida-01", "india-chennai-01"
    assert [(r.raw_label, r.price_kind, r.region, str(r.native_price)) for r in listings] == [
        ("L4", "on_demand", india, "0.44"),
        ("L4", "spot", india, "0.29"),
        ("L4", "on_demand", india, "0.44"),
        ("L4", "spot", india, "0.29"),
        ("A100-80GB", "on_demand", india, "1.49"),
        ("A100-80GB", "spot", india, "0.89"),
        ("RTX-PRO6000", "on_demand", chennai, "1.89"),
        ("RTX-PRO6000", "spot", chennai, "1.19"),
        ("RTX PRO 6000", "on_demand", india, "1.89"),
        ("H100", "on_demand", "unknown-region", "2.99"),
    ]
    assert {row.gpu_count for row in listings} == {1}
    assert [(row.available, row.vcpus, row.ram_gib) for row in listings[4:7]] == [
        (True, 28, 112),
        (True, 28, 112),
        (True, 28, 160),
    ]
    assert listings[4].context == {"vram_gb": Decimal(80)}
    assert [reject.reason for reject in rejects] == ["not_offered"] * 2


def test_new_and_missing_fields_of_server_meta_are_warnings() -> None:
    def warnings(body: Any) -> list[str]:
        rows = jarvislabs.read([answer(body)], source_config("jarvislabs"))
        return [row.text for row in rows if isinstance(row, ReaderWarning)]

    whole = json.loads(sample("jarvislabs_server_meta_2026-08.json"))
    assert warnings(whole) == []
    for machine in whole["server_meta"]:
        machine["price_per_minute"] = machine.pop("ram_per_gpu")
    assert warnings(whole) == [
        "new field 'price_per_minute', which is not read",
        "missing field 'ram_per_gpu'",
    ]


def test_server_meta_bare_and_incomplete() -> None:
    machines = [
        {"gpu_type": "L4", "price_per_hour": "0.44", "vram": 24},
        {"gpu_type": "H100", "price_per_hour": None, "spot_price": 0},
        {"price_per_hour": 1},
    ]
    listings, rejects = read("jarvislabs", answer(machines))
    assert [(row.raw_label, row.region, row.available) for row in listings] == [("L4", None, None)]
    assert [reject.reason for reject in rejects] == ["not_offered", "zero_price", "missing_field"]


def test_the_key_decides_the_requests() -> None:
    config = source_config("jarvislabs")
    assert [request.url for request in jarvislabs.requests(config, {})] == ["https://jarvislabs.ai/pricing"]
    (asked,) = jarvislabs.requests(config, {"JL_API_KEY": "k"})
    assert asked.url.endswith("/misc/server_meta")
    assert asked.headers == {"Authorization": "Bearer ${JL_API_KEY}"}


def test_server_meta_gives_the_gpu_count_of_a_machine() -> None:
    whole = json.loads(sample("jarvislabs_server_meta_2026-08.json"))
    stated = {(gpu["gpu_type"], gpu["region"]): gpu.get("num_gpus") for gpu in whole["server_meta"]}
    listings, _ = read("jarvislabs", answer(whole))
    assert {row.raw_label for row in listings} == {label for label, _ in stated}
    for row in listings:
        most = stated[row.raw_label, str(row.region)]
        assert row.gpu_counts == (tuple(range(1, int(most) + 1)) if most else None)
    assert set(stated.values()) >= {"4", "8"}
