"""Countries and continents of the sources' regions: catalog/regions.csv, zones.csv and countries.csv."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, model_validator

from pipeline.catalog.tables import catalog_rows, catalog_table
from pipeline.contracts.offer import Continent

_WILDCARDS = {"*": ".*", "<country code>": "(?P<country>[a-z]{2})"}


@dataclass(frozen=True, slots=True)
class Place:
    """A country (as an ISO 3166-1 alpha-2 code) and a continent; None stands for unknown."""

    country: str | None = None
    continent: Continent | None = None


NOWHERE = Place()


class Region(BaseModel):
    """A row of regions.csv: the place of a region at one source, or at any source if ``source`` is ''."""

    source: str = ""
    region: str
    country: str | None = None
    continent: Continent | None = None

    @cached_property
    def words(self) -> re.Pattern[str]:
        """Pattern for the region in lower case; its group ``country``, if any, matches the country code."""
        parts = re.split(f"({'|'.join(map(re.escape, _WILDCARDS))})", self.region.casefold())
        return re.compile("".join(_WILDCARDS.get(part, re.escape(part)) for part in parts))

    @model_validator(mode="after")
    def _check_place(self) -> "Region":
        known = _countries().get((self.country or "").casefold(), NOWHERE)
        if self.country != known.country:
            raise ValueError(f"{self.region!r} is in {self.country!r}, which is not in catalog/countries.csv")
        if self.country and self.continent != known.continent:
            raise ValueError(
                f"{self.region!r} is in {self.continent!r}, but {self.country} is in {known.continent!r}"
            )
        if self.words.groups and self.continent:
            raise ValueError(f"{self.region!r} contains its country: leave country and continent empty")
        return self


def place_of(source: str, region: str | None, stated_country: str | None = None) -> Place:
    """Return the place of an offer's machine, from the region and the country that the source states.

    The place is NOWHERE if neither region nor country is known, or if the two contradict each other.
    """
    by_region = _place_of_region(source, region.casefold()) if region else None
    stated = _countries().get((stated_country or "").casefold())
    if by_region is None or stated is None:
        return by_region or stated or NOWHERE
    agree = by_region.country in (None, stated.country) and by_region.continent in (None, stated.continent)
    return stated if agree else NOWHERE


@lru_cache(maxsize=10_000)
def _place_of_region(source: str, region: str) -> Place | None:
    """Return the place in the first matching row (the source's own rows come first); None if none matches."""
    for row in regions():
        found = row.words.fullmatch(region) if row.source in (source, "") else None
        if found and not row.words.groups:
            return Place(row.country, row.continent)
        if found and (place := _countries().get(found["country"])):
            return place
    return None


@cache
def regions() -> tuple[Region, ...]:
    """Return the rows of regions.csv, with the rows for any source last. Raises CatalogError."""
    return tuple(sorted(catalog_table("regions.csv", Region), key=lambda row: row.source == ""))


class Zones(BaseModel):
    """A row of zones.csv: the ids of a region's availability zones."""

    source: str
    region: str
    zones: Annotated[tuple[str, ...], BeforeValidator(lambda text: text.split(";"))]


@cache
def zones_of(source: str, region: str) -> Sequence[str]:
    """Return the ids of a region's availability zones; empty if not known. Raises CatalogError."""
    rows = catalog_table("zones.csv", Zones)
    return next((row.zones for row in rows if (row.source, row.region) == (source, region)), ())


def regions_of(source: str) -> list[str]:
    """Return the regions of a source that regions.csv has by name, not by a pattern. Raises CatalogError."""
    return [row.region for row in regions() if row.source == source and not set("*<") & set(row.region)]


@cache
def _countries() -> Mapping[str, Place]:
    """Return each country's place, keyed by its code and by each of its names, in lower case."""
    found: dict[str, Place] = {}
    for row in catalog_rows("countries.csv"):
        place = Place(row["country"], row["continent"])  # type: ignore[arg-type]
        names = (row["country"], row["name"], *filter(None, row["other_names"].split(";")))
        found |= {name.casefold(): place for name in names}
    return found
