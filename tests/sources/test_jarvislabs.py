"""JarvisLabs' cards and server_meta."""

import json

from pipeline.catalog.source_config import source_config
from pipeline.sources import jarvislabs
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer, sample

META = json.loads(sample("jarvislabs_server_meta_2026-08.json"))


def test_server_meta_of_the_api() -> None:
    india = "india-noida-01"
    found = outcome("jarvislabs", META, columns="raw_label price_kind region native_price gpu_counts")
    up_to_8, up_to_4 = tuple(range(1, 9)), tuple(range(1, 5))
    l4 = [("L4", "on_demand", india, "0.44", up_to_8), ("L4", "spot", india, "0.29", up_to_8)]
    assert found[:6] == [
        *l4,
        *l4,
        ("A100-80GB", "on_demand", india, "1.49", up_to_4),
        ("A100-80GB", "spot", india, "0.89", up_to_4),
    ]
    assert found[10:] == ["not_offered"] * 2
    machine = outcome("jarvislabs", META, columns="gpu_count native_unit available vcpus ram_gib context")[4]
    assert machine == (1, "gpu_hour", True, 28, 112, {"vram_gb": 80})


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
