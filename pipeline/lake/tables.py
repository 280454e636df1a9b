"""The tables of the published file in the lake, in its schema ``published``, for readers on other machines.

DuckLake has tables and views; the published file's macros stay in the file.
"""

from dataclasses import dataclass

from pipeline.home.paths import Home
from pipeline.lake.request import ask
from pipeline.lake.settings import Lake, LakeError


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """How many tables are in the lake, and how many of them were replaced."""

    tables: int
    replaced: int


def publish_tables(home: Home, lake: Lake) -> PublishedTables:
    """Replace the lake's tables by those of the home's published file, in one transaction, and compare rows
    and hashes. Raises LakeError, also where the lake has a newer publication, which stays."""
    if not home.published.exists():
        raise LakeError(f"nothing is published in {home.root}: run `gpufare refresh` first")
    answer = ask(lake, {"action": "publish", "file": str(home.published)})
    if newer := answer["newer"]:
        raise LakeError(f"the lake has a newer publication (as of {newer}), which stays; nothing was pushed")
    return PublishedTables(answer["tables"], answer["replaced"])
