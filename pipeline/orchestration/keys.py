"""The names that assets, jobs and sensors have in common, and which of them this code server has.

Several code servers share the sources: GPUFARE_SHARE=2/3 gives this one every third, from the second on. The
first has what is of no single source, too: the tables, the morning, the calibration.
"""

import os
import re

import dagster as dg

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.errors import GpufareError

SHARE_VARIABLE = "GPUFARE_SHARE"

MORNING = dg.AssetKey("morning")

SOURCE_TAG = "source"
"""On a source's two assets."""

PRICES_TEAM = "team:prices"
MODEL_TEAM = "team:model"
"""Owners of the assets: those of the price pages, and those of the catalogue and the model."""


def enabled_sources() -> list[SourceConfig]:
    """The sources that are asked, by name."""
    return [config for config in configs().values() if config.disabled is None]


def share() -> tuple[int, int]:
    """Which code server this is, from 1, and of how many. Raises GpufareError."""
    text = os.environ.get(SHARE_VARIABLE) or "1/1"
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
    if found is None or int(found[1]) > int(found[2]):
        raise GpufareError(
            f"{SHARE_VARIABLE} must be like 2/3, the second of three code servers; it is {text!r}"
        )
    return int(found[1]), int(found[2])


def sources_here() -> list[SourceConfig]:
    """The enabled sources of this code server, by name. Raises GpufareError."""
    number, servers = share()
    return enabled_sources()[number - 1 :: servers]


def is_first() -> bool:
    """Whether this code server has what is of no single source. Raises GpufareError."""
    return share()[0] == 1


def raw_key(source: str) -> dg.AssetKey:
    """The raw answers of a source."""
    return dg.AssetKey(["raw", source])


def offers_key(source: str) -> dg.AssetKey:
    """What was read from them: offers, or exchange rates."""
    return dg.AssetKey(["exchange_rates" if configs()[source].kind == "exchange_rates" else "offers", source])


def table_key(table: str) -> dg.AssetKey:
    """A table of the published file."""
    return dg.AssetKey(["published", table])
