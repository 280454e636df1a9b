"""Small builders for the readers' tests, and the sample pages with what they give."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.capture.index import read_answer
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.listing import Answer, Listing, Reject, Request
from pipeline.contracts.offer import Built
from pipeline.contracts.rates import Rate
from pipeline.offers.build import build_offers
from pipeline.parsing.paging import next_page
from pipeline.refresh.ingest import read_answers
from pipeline.sources import source_module

OBSERVED_AT = datetime(2026, 8, 22, 6, tzinfo=UTC)
PAGES = Path(__file__).parent.parent / "pages"
SAMPLES = Path(__file__).parent / "samples"
PRICE_SOURCES = [name for name, config in configs().items() if config.kind == "prices"]
RATES: Mapping[str, Rate] = {"EUR": Rate(Decimal("1.1699"), date(2026, 8, 21))}
"""The rate of the exchange rates' sample page: expected.csv of a source in euros is worked out with it."""


def answer(
    body: Any, url: str = "https://prices.example/list", observed_at: datetime = OBSERVED_AT
) -> Answer:
    """An archived answer: text and bytes as they are, anything else as JSON."""
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return Answer(url=url, body=body, observed_at=observed_at, sha256=hashlib.sha256(body).hexdigest())


@cache
def sample_answers(source: str) -> tuple[Answer, ...]:
    """The answers of a source's sample pages."""
    folder = PAGES / source
    entries = [entry for entry in page_entries(folder, source_config(source)) if entry.usable]
    return tuple(read_answer(folder, entry, entry.observed_at) for entry in entries)


@cache
def read_sample(source: str) -> Built:
    """The offers and rejects of a source's sample pages."""
    return read_answers(sample_answers(source), source_config(source), RATES)


def following(source: str, page: Answer) -> str | None:
    """The address of the page after this one, as the source's yaml declares its paging."""
    paging = source_config(source).paging
    assert paging is not None
    found = next_page(Request(page.url), page, paging)
    return found.url if found else None


def read(source: str, *answers: Answer) -> tuple[list[Listing], list[Reject]]:
    """Return a reader's listings and rejects for answers."""
    rows = list(source_module(source).read(answers, source_config(source)))
    return [r for r in rows if isinstance(r, Listing)], [r for r in rows if isinstance(r, Reject)]


def contradicted(source: str, *answers: Answer) -> list[str]:
    """The labels of the offers that are flagged because another one has a different price."""
    offers = build_offers(
        source_module(source).read(answers, source_config(source)), source_config(source)
    ).offers
    return [offer.raw_label for offer in offers if offer.flag_reason == "conflicting_prices"]


def page(source: str, name: str) -> str:
    """A page of tests/pages as text, to make variants of."""
    return (PAGES / source / name).read_text(encoding="utf-8")


def sample(name: str) -> str:
    """A few rows of a real answer, in its real shape; the file's name ends with the date of its prices."""
    return (SAMPLES / name).read_text(encoding="utf-8")
