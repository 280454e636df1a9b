"""DigitalOcean's tables of Droplets under headings, and the sizes of its API."""

from tests.sources.edited_pages import edited, outcome
from tests.sources.helpers import answer, contradicted, page, read, sample

NAME = "droplets_pricing.html"
PAGE = page("digitalocean", NAME)
TABLE = PAGE[PAGE.index('<div class="overflow-auto">') : PAGE.index("<h3 id=")]


def test_the_heading_says_the_kind_of_price() -> None:
    contract = edited("digitalocean", NAME, ("Spot GPU Droplet Pricing", "Reserved GPU Droplet Pricing"))
    found = outcome("digitalocean", contract, columns="price_kind")
    assert (set(found[:-12]), found.count("unknown_terms")) == ({"on_demand"}, 8)
    without = edited("digitalocean", NAME, ("On-Demand GPU Droplet Pricing", "GPU Droplet Pricing"))
    assert outcome("digitalocean", without) == ["changed: no on-demand price"]


def test_of_two_copies_of_a_table_a_hidden_one_is_ignored_and_a_shown_one_contradicts() -> None:
    copy = TABLE.replace("$4.41", "$9.99")
    hidden = copy.replace("<div", '<div style="display: none"', 1)
    assert outcome("digitalocean", PAGE.replace(TABLE, TABLE + hidden)) == outcome("digitalocean", PAGE)
    twice = answer(PAGE.replace(TABLE, TABLE + copy))
    assert contradicted("digitalocean", twice) == ["NVIDIA H100"] * 2


def test_sizes_of_the_api() -> None:
    (h100, mi300x), rejects = read("digitalocean", answer(sample("digitalocean_sizes_2026-08.json")))
    assert (h100.instance_type, h100.raw_label, h100.gpu_count) == ("gpu-h100x8-640gb", "nvidia_h100", 8)
    assert (h100.region, str(h100.native_price), h100.native_unit) == ("nyc1", "23.92", "instance_hour")
    assert (h100.context, h100.available) == ({"vram_total_gb": 640.0}, True)
    # 2046 GiB to boot from and 40960 GiB of scratch are 46177.3 GB.
    assert (h100.vcpus, h100.ram_gib, h100.local_disk_gb) == (160, 1920, 46177.3)
    assert (mi300x.raw_label, str(mi300x.native_price), rejects) == ("amd_mi300x", "15.92", [])
