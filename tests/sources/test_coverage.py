"""The share of a provider's offers that each yaml states."""

import re

import pytest

from pipeline.catalog.source_config import configs

PRICE_SOURCES = [name for name, config in configs().items() if config.kind == "prices"]


@pytest.mark.parametrize("name", PRICE_SOURCES)
def test_a_source_says_how_much_of_its_offers_a_user_sees(name: str) -> None:
    """An estimate says when it was made; where no share is known, the note says what is missing."""
    coverage = configs()[name].coverage
    assert re.search(r"\b202\d-\d\d-\d\d\b", coverage.note), "the note needs the day of the estimate"
    assert coverage.share is not None or len(coverage.note) > 40


@pytest.mark.parametrize("name", [name for name in PRICE_SOURCES if configs()[name].key_variables])
def test_a_source_with_a_key_says_what_the_key_adds(name: str) -> None:
    """Unless the key is the permission to ask, or is not known to add anything."""
    config = configs()[name]
    permits = config.needs_key or config.terms.automated == "forbidden"
    assert config.coverage.with_key or config.disabled or permits
