"""The places of machines: reviewed rows, an independent list of countries, and all known regions."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from pipeline.catalog import places
from pipeline.catalog.places import NOWHERE, Place, place_of
from pipeline.catalog.source_config import CatalogError, configs, source_config
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Continent, Offer
from pipeline.home import paths
from pipeline.home.paths import CATALOG_DIR
from pipeline.offers.build import build_offers
from pipeline.refresh.ingest import read_answers
from tests.offers.builders import config, listing
from tests.sources.test_sources import PRICE_SOURCES, read_sample

NAMES_NO_COUNTRY = {
    ("coreweave", "NORTH AMERICA"),
    ("coreweave", "EUROPE"),
    ("gpuai", "asia-pacific"),
    ("gpuai", "eu-east"),
    ("gpuai", "eu-west"),
    ("hyperbolic", "eu-north-5"),
    ("jarvislabs", "europe-01"),
    ("jarvislabs", "unknown-region"),
}
"""Regions on pages that say no country."""

CAPTURES = {
    "aws_awsstatic_ondemand_us-east-1_2026-10.json": "aws",
    "azure_retail_items_trimmedfields_2026-10.json": "azure",
    "coreweave_pricing_gpu_section_2026-08-22.html": "coreweave",
    "cudo_machine_types.json": "cudo",
    "digitalocean_v2_sizes.json": "digitalocean",
    "jarvislabs_server_meta.json": "jarvislabs",
    "seeweb_plans_2026-08-19.json": "seeweb",
    "vultr_plans_metal.json": "vultr",
    "vultr_plans_vcg.json": "vultr",
}
"""Captured answers whose offers name regions, and their source."""

ZONES = files("tzdata").joinpath("zoneinfo")
OF_ZONES = {"Africa": "africa", "Asia": "asia", "Europe": "europe", "Australia": "oceania"}
IN_SOUTH_AMERICA = {*("AR", "BO", "BR", "CL", "CO", "EC", "FK"), *("GF", "GY", "PE", "PY", "SR", "UY", "VE")}
OTHERWISE = {"BV": "south_america", "HM": "oceania", "TR": "asia", "IO": "africa"}
"""Islands, and a country whose only time zone is called after its European part."""


def rows(name: str) -> list[dict[str, str]]:
    with (CATALOG_DIR / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def zones_of_countries() -> dict[str, set[str]]:
    """The first parts of the names of each country's time zones, such as Europe."""
    found = defaultdict(set)
    for line in ZONES.joinpath("zone.tab").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            country, _, zone, *_ = line.split("\t")
            found[country].add(zone.partition("/")[0])
    return found


def test_the_countries_are_those_of_the_standard() -> None:
    text = ZONES.joinpath("iso3166.tab").read_text(encoding="utf-8")
    codes = [line[:2] for line in text.splitlines() if not line.startswith("#")]
    assert [row["country"] for row in rows("countries.csv")] == codes


def test_a_country_is_on_the_continent_of_its_time_zones() -> None:
    zones = zones_of_countries()
    for row in rows("countries.csv"):
        country, continent = row["country"], row["continent"]
        possible = {OF_ZONES[zone] for zone in zones[country] if zone in OF_ZONES}
        if "America" in zones[country]:
            possible.add("south_america" if country in IN_SOUTH_AMERICA else "north_america")
        if country in OTHERWISE:
            possible = {OTHERWISE[country]}
        assert continent in get_args(Continent)
        assert not possible or continent in possible, row


def test_a_row_of_regions_is_found_by_its_own_words() -> None:
    """No earlier pattern takes the place of a later row, and each row of a source says where it was read."""
    assert places.regions()
    for row in rows("regions.csv"):
        assert row["source"] in {*configs(), ""}, row
        assert row["evidence_url"].startswith("https://") or not row["source"], row
        assert row["country"] or row["continent"] or row["note"] or "<country" in row["region"], row
        if "<country" not in row["region"]:
            found = place_of(row["source"], row["region"].replace("*", "1"))
            assert found == Place(row["country"] or None, row["continent"] or None), row


@pytest.mark.parametrize(
    ("source", "region", "expected"),
    [
        ("vast", "Texas, US", Place("US", "north_america")),
        ("vast", "Sweden, SE", Place("SE", "europe")),
        ("vast", "US", Place("US", "north_america")),
        ("vast", "Atlantis, XX", NOWHERE),
        ("vast", "Sweden", NOWHERE),
        ("tensordock", "Atlanta, Georgia", NOWHERE),
        ("cudo", "no-kristiansand-1", Place("NO", "europe")),
        ("cudo", "eu-kristiansand-1", NOWHERE),
        ("verda", "FIN-01", Place("FI", "europe")),
        ("vultr", "atl", Place("US", "north_america")),
        ("aws", "us-west-1", Place("US", "north_america")),
        ("runpod", "EU-RO-1", Place("RO", "europe")),
        ("runpod", "US-DE-1", Place("US", "north_america")),
        ("aws", "EUROPE", Place(None, "europe")),
        ("coreweave", "europe", Place(None, "europe")),
        ("linode", "eu-west", Place("GB", "europe")),
        ("linode", "id-cgk", Place("ID", "asia")),
        ("gcp", "global", NOWHERE),
        ("gcp", None, NOWHERE),
    ],
)
def test_the_words_of_a_source_are_places(source: str, region: str | None, expected: Place) -> None:
    assert place_of(source, region) == expected


def test_a_stated_country_counts_unless_the_region_is_elsewhere() -> None:
    assert place_of("primeintellect", "eu_north", "FI") == Place("FI", "europe")
    assert place_of("primeintellect", "somewhere", "FI") == Place("FI", "europe")
    assert place_of("primeintellect", None, "FI") == Place("FI", "europe")
    assert place_of("tensordock", "Atlanta, Georgia, United States", "United States").country == "US"
    assert place_of("primeintellect", "united_states", "FI") == NOWHERE
    assert place_of("primeintellect", "eu_north", "US") == NOWHERE
    assert place_of("primeintellect", "eu_north", "??") == Place(None, "europe")


def test_a_country_of_the_source_is_that_of_its_offers() -> None:
    source = config()
    source = source.model_copy(update={"attributes": source.attributes.model_copy(update={"country": "NO"})})
    ours, elsewhere = build_offers([listing(), listing(price="3", region="NORTH AMERICA")], source).offers
    assert (ours.country, ours.continent) == ("NO", "europe")
    assert (elsewhere.country, elsewhere.continent) == (None, None)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("aws,here,XX,europe,,,", "'XX', which is not in"),
        ("aws,here,FI,asia,,,", "FI is in 'europe'"),
        ("aws,here,,atlantis,,,", "continent: Input should be 'africa'"),
        ("aws,<country code>-1,,europe,,,", "contains its country"),
    ],
)
def test_a_wrong_row_is_refused(
    row: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.regions.cache_clear()
    (tmp_path / "regions.csv").write_text(f"source,region,country,continent,place,evidence_url,note\n{row}\n")
    (tmp_path / "countries.csv").write_bytes((CATALOG_DIR / "countries.csv").read_bytes())
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    with pytest.raises(CatalogError, match=complaint):
        places.regions()


def unresolved(offers: list[Offer]) -> set[tuple[str, str]]:
    return {(offer.source, offer.region) for offer in offers if offer.region and offer.country is None}


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_every_region_of_the_sample_pages_is_understood(name: str) -> None:
    assert unresolved(read_sample(name).offers) <= NAMES_NO_COUNTRY


def captures() -> Iterator[Path]:
    for parent in Path(__file__).parents:
        if (parent / "shared" / "captures").is_dir():
            yield from (path for path in (parent / "shared" / "captures").iterdir() if path.name in CAPTURES)
            return


@pytest.mark.skipif(not any(captures()), reason="no captured answers beside the project")
@pytest.mark.parametrize("path", sorted(captures()), ids=lambda path: path.name)
def test_every_region_of_the_captures_is_understood(path: Path) -> None:
    facts = source_config(CAPTURES[path.name])
    at = datetime(2026, 10, 1, tzinfo=UTC)
    url = next(iter([request.url for request in facts.requests] or [facts.homepage]))
    offers = read_answers([Answer(url, path.read_bytes(), at, "0" * 64)], facts, {}).offers
    assert any(offer.region for offer in offers)
    assert unresolved(offers) <= NAMES_NO_COUNTRY


def test_verdas_locations_are_those_in_its_own_list() -> None:
    (path, *_) = [*(p.parent / "verda_locations.json" for p in captures()), None]
    if path is None:
        pytest.skip("no captured answers beside the project")
    for location in json.loads(path.read_text(encoding="utf-8")):
        assert place_of("verda", location["code"]).country == location["country_code"]
