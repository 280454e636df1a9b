"""Which country and continent a source's word for a region means: catalog/regions.csv and countries.csv."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import CONTINENTS, Continent

REGION_COLUMNS = ("source", "region", "country", "continent", "place", "evidence_url", "note")

_WILDCARDS = {"*": ".*", "<country code>": "(?P<country>[a-z]{2})"}


@dataclass(frozen=True, slots=True)
class Place:
    """A country (ISO 3166-1 alpha-2) and its continent; None for what a region does not say."""

    country: str | None = None
    continent: Continent | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Region:
    """A row of regions.csv: the words of a source, or of any source when ``source`` is ''."""

    source: str
    words: re.Pattern[str]
    place: Place
    any_country: bool
    """Whether the words contain a country, which is then the place."""


def place_of(source: str, region: str | None, stated_country: str | None = None) -> Place:
    """Where an offer's machine is, by its region and by the country that its source states beside it.

    Nowhere when neither is known, and when the two contradict each other.
    """
    by_region = _place_of_region(source, region.casefold()) if region else None
    stated = _place_of_country((stated_country or "").casefold())
    if by_region is None or stated is None:
        return by_region or stated or NOWHERE
    agree = by_region.country in (None, stated.country) and by_region.continent in (None, stated.continent)
    return stated if agree else NOWHERE


@lru_cache(maxsize=10_000)
def _place_of_region(source: str, region: str) -> Place | None:
    """The place of the first row of the source, else of any source, that has the region; None without one."""
    for row in regions():
        found = row.words.fullmatch(region) if row.source in (source, "") else None
        if found and not row.any_country:
            return row.place
        if found and (place := _place_of_country(found["country"])):
            return place
    return None


def _place_of_country(country: str) -> Place | None:
    return _countries().get(country)


@cache
def regions() -> tuple[Region, ...]:
    """The rows of regions.csv, those of any source last. Raises CatalogError."""
    rows = catalog_rows("regions.csv")
    if rows and tuple(rows[0]) != REGION_COLUMNS:
        raise CatalogError(f"catalog/regions.csv: the columns must be {', '.join(REGION_COLUMNS)}")
    found = [_region(row, line) for line, row in enumerate(rows, start=2)]
    return tuple(sorted(found, key=lambda row: row.source == ""))


def _region(row: Mapping[str, str], line: int) -> Region:
    def wrong(what: str) -> CatalogError:
        return CatalogError(f"catalog/regions.csv, line {line}: {row['region']!r} {what}")

    country, continent = row["country"] or None, row["continent"] or None
    if country and country not in _continents():
        raise wrong(f"is in {country!r}, which is not in catalog/countries.csv")
    if country and _continents()[country] != continent:
        raise wrong(f"is in {continent!r}, but {country} is in {_continents()[country]!r}")
    if not country and continent not in (None, *CONTINENTS):
        raise wrong(f"is in {continent!r}, which is none of {', '.join(CONTINENTS)}")
    parts = re.split(f"({'|'.join(map(re.escape, _WILDCARDS))})", row["region"].casefold())
    words = "".join(_WILDCARDS.get(part, re.escape(part)) for part in parts)
    any_country = "(?P<country>" in words
    if any_country and continent:
        raise wrong("contains its country, so leave country and continent empty")
    return Region(row["source"], re.compile(words), Place(country, continent), any_country)  # type: ignore[arg-type]


@cache
def _countries() -> Mapping[str, Place]:
    """Places of countries by their code and their names, in lower case."""
    found: dict[str, Place] = {}
    for row in catalog_rows("countries.csv"):
        place = Place(row["country"], row["continent"])  # type: ignore[arg-type]
        names = (row["country"], row["name"], *filter(None, row["other_names"].split(";")))
        found |= {name.casefold(): place for name in names}
    return found


@cache
def _continents() -> Mapping[str, str]:
    return {row["country"]: row["continent"] for row in catalog_rows("countries.csv")}
