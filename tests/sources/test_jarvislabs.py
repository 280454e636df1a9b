"""JarvisLabs' cards and server_meta."""

import json

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning
from pipeline.sources import jarvislabs
from tests.sources.edited_pages import alone, each, misread, misread_edits, outcome
from tests.sources.helpers import answer, sample

UNIT = '<span>$0.44</span><span class="unit">/hr</span>'
META = json.loads(sample("jarvislabs_server_meta_2026-08.json"))


def test_a_card_has_one_price_per_hour_or_is_rejected() -> None:
    of_other_times = [
        *("$320.00 / month", "$320.00 monthly", "$320.00</span><small>a month</small><span>", "$320 mo"),
        *("$320.00, billed each year", "$320 USD/month", "$320 · monthly", "$320 daily", "$320 yr"),
        *("$320 per week", "$320 a quarter", "$3 annually", "$0.01/minute", "$0.01 a second"),
    ]
    several = ["$0.44</span><span>$0.30", "$0.44</span><small>Spot</small><span>$0.19"]
    cases = [
        *each(of_other_times, "unreadable_price"),
        *each(several, "unreadable_row"),
        *each(["Reserved $0.30", "₹36"], "unreadable_price"),
        *each(["Contact sales", "Sold out", "Talk to us"], "not_offered"),
        *each(["$0.44", "$0.44 / hr", "$0.44/GPU/hr", "$0.44 per hour"], ("L4", "0.44")),
    ]
    spans = [(f"<span>{shown}</span>", expected) for shown, expected in cases]
    assert not misread_edits("jarvislabs", "pricing.html", UNIT, [("L4", "0.44")], spans)


def test_cards_as_running_text_keep_the_unit_with_its_price() -> None:
    text = "<p>L4 Ada&nbsp;·&nbsp;24&nbsp;GB {} A100 Ampere · 40 GB $0.89 "
    text += "H100 Hopper · 80 GB $2.69 /hr monthly</p>"
    others = [("A100", "0.89", {"vram_gb": 40}), ("H100", "2.69", {"vram_gb": 80})]
    cases = [
        ("$0.44/GPU/hr", [("L4", "0.44", {"vram_gb": 24}), *others]),
        ("$30 monthly", [*others, "unreadable_price"]),
    ]
    assert not misread("jarvislabs", text.format, cases, "raw_label native_price context")


def test_server_meta_of_the_api() -> None:
    india, chennai = "india-noida-01", "india-chennai-01"
    found = outcome("jarvislabs", META, columns="raw_label price_kind region native_price gpu_counts")
    up_to_8, up_to_4 = tuple(range(1, 9)), tuple(range(1, 5))
    l4 = [("L4", "on_demand", india, "0.44", up_to_8), ("L4", "spot", india, "0.29", up_to_8)]
    assert found[:6] == [
        *l4,
        *l4,
        ("A100-80GB", "on_demand", india, "1.49", up_to_4),
        ("A100-80GB", "spot", india, "0.89", up_to_4),
    ]
    assert [row[:4] for row in found[6:10]] == [
        ("RTX-PRO6000", "on_demand", chennai, "1.89"),
        ("RTX-PRO6000", "spot", chennai, "1.19"),
        ("RTX PRO 6000", "on_demand", india, "1.89"),
        ("H100", "on_demand", "unknown-region", "2.99"),
    ]
    assert found[10:] == ["not_offered"] * 2
    machine = outcome("jarvislabs", META, columns="gpu_count available vcpus ram_gib context")[4]
    assert machine == (1, True, 28, 112, {"vram_gb": 80})


def test_a_gpu_of_server_meta_with_little_else() -> None:
    cases = [
        ({}, [("on_demand", None, None, {"vram_gb": 24})]),
        ({"vram": "24 GiB", "num_gpus": 2}, [("on_demand", None, (1, 2), {"vram_gb": 24})]),
        ({"vram": "much"}, [("on_demand", None, None, {})]),
        ({"num_free_devices": 3}, [("on_demand", True, None, {"vram_gb": 24})]),
        (
            {"num_free_devices": 3, "effective_num_free_devices": 0},
            [("on_demand", False, None, {"vram_gb": 24})],
        ),
        ({"price_per_hour": None, "spot_price": 0}, ["not_offered", "zero_price"]),
        ({"num_gpus": "many"}, ["unknown_gpu_count"]),
    ]
    gpu = {"gpu_type": "L4", "price_per_hour": "0.44", "vram": 24}
    assert not misread("jarvislabs", alone(gpu), cases, "price_kind available gpu_counts context")


def test_new_and_missing_fields_of_server_meta_are_warnings() -> None:
    renamed = [{"price_per_minute": gpu["ram_per_gpu"]} | gpu for gpu in META["server_meta"]]
    for gpu in renamed:
        del gpu["ram_per_gpu"]
    found = [
        [
            row.text
            for row in jarvislabs.read([answer(body)], source_config("jarvislabs"))
            if isinstance(row, ReaderWarning)
        ]
        for body in (META, {"server_meta": renamed})
    ]
    assert found == [[], ["new field 'price_per_minute', which is not read", "missing field 'ram_per_gpu'"]]


def test_the_key_decides_the_requests_and_the_page_is_asked_where_the_api_fails() -> None:
    config = source_config("jarvislabs")
    (of_page,) = jarvislabs.requests(config, {})
    assert (of_page.url, of_page.headers) == ("https://jarvislabs.ai/pricing", {})
    (asked,) = jarvislabs.requests(config, {"JL_API_KEY": "k"})
    assert (asked.url, asked.headers) == (
        config.settings["api_url"],
        {"Authorization": "Bearer ${JL_API_KEY}"},
    )
    assert jarvislabs.retry_requests(answer("", asked.url), config) == [of_page]
    assert jarvislabs.retry_requests(answer("", of_page.url), config) == []
