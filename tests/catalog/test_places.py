"""The places of machines: reviewed rows, an independent list of countries, and all known regions."""

import csv
import re
from pathlib import Path

import pytest

from pipeline.catalog import places
from pipeline.catalog.places import Place, place_of
from pipeline.catalog.source_config import CatalogError, configs
from pipeline.home import paths
from pipeline.home.paths import CATALOG_DIR
from tests.sources.test_sources import PRICE_SOURCES, read_sample

NAMES_NO_COUNTRY = {
    *(("coreweave", "NORTH AMERICA"), ("coreweave", "EUROPE"), ("hyperbolic", "eu-north-5")),
    *(("gpuai", region) for region in ("asia-pacific", "eu-east", "eu-west")),
    *(("jarvislabs", region) for region in ("europe-01", "unknown-region")),
}
"""Regions on pages that say no country."""


def rows(name: str) -> list[dict[str, str]]:
    with (CATALOG_DIR / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_row_of_regions_is_found_by_its_own_words() -> None:
    """No earlier pattern takes the place of a later row, and each row of a source says where it was read."""
    wrong = []
    for row in rows("regions.csv"):
        names_country = "<country" in row["region"]
        expected = Place(row["country"] or None, row["continent"] or None)  # type: ignore[arg-type]
        sound = (
            row["source"] in {*configs(), ""}
            and (row["evidence_url"].startswith("https://") or not row["source"])
            and (row["country"] or row["continent"] or row["note"] or names_country)
            and (names_country or place_of(row["source"], row["region"].replace("*", "1")) == expected)
        )
        wrong += [] if sound else [row]
    assert places.regions()
    assert wrong == []


def test_the_words_of_a_source_are_places() -> None:
    """A stated country counts unless the region is elsewhere."""
    wrong = []
    with Path(__file__).with_name("places.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found = place_of(row["source"], row["region"] or None, row["stated_country"] or None)
            wrong += (
                [] if found == Place(row["country"] or None, row["continent"] or None) else [(row, found)]
            )
    assert wrong == []


def test_zones_are_those_of_known_regions() -> None:
    """A zone's id is its region's, shortened, and a number."""
    for row in rows("zones.csv"):
        assert row["region"] in places.regions_of(row["source"])
        area, side, number = re.fullmatch(r"([a-z]+)-([a-z]+)-(\d)", row["region"]).groups()  # type: ignore[union-attr]
        for zone in places.zones_of(row["source"], row["region"]):
            assert re.fullmatch(rf"{area}{side[0]}[a-z]?{number}-az\d", zone), zone


def test_a_wrong_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaints = {
        "aws,here,XX,europe,,,": "'here' is in 'XX', which is not in catalog/countries.csv",
        "aws,here,FI,asia,,,": "'here' is in 'asia', but FI is in 'europe'",
        "aws,here,,atlantis,,,": "continent: Input should be 'africa'",
        "aws,<country code>-1,,europe,,,": "contains its country: leave country and continent empty",
    }
    (tmp_path / "countries.csv").write_bytes((CATALOG_DIR / "countries.csv").read_bytes())
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    for row, complaint in complaints.items():
        text = f"source,region,country,continent,place,evidence_url,note\n{row}\n"
        (tmp_path / "regions.csv").write_text(text)
        with pytest.raises(CatalogError, match=complaint):
            places.regions.__wrapped__()


def test_every_region_of_the_sample_pages_is_understood() -> None:
    offers = [offer for name in PRICE_SOURCES for offer in read_sample(name).offers if offer.country is None]
    assert {(offer.source, offer.region) for offer in offers if offer.region} <= NAMES_NO_COUNTRY
