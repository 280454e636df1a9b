"""Reads mutated sample pages of a source as the daily job would, and counts what must not happen."""

import faulthandler
import math
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random

from pipeline.capture.index import read_answer
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import SourceConfig, asked_configs, configs
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built, Offer
from pipeline.contracts.rates import Rate
from pipeline.gates.judge import judge
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.ingest import read_answers
from pipeline.sources import source_module
from tests.nightly.fuzz.mutations import mutated
from tests.nightly.fuzz.oracle import Finding, findings
from tests.sources.helpers import OBSERVED_AT, PAGES

SOURCES = tuple(sorted(asked_configs()))

RATES = {"EUR": Rate(Decimal("1.17"), date(2026, 8, 21)), "GBP": Rate(Decimal("1.34"), date(2026, 8, 21))}

HANG_SECONDS = 120
"""A process that reads one answer for so long is ended."""

WATCH_SECONDS = 5
"""The watch, a thread, is reset only after this long, since that takes longer than reading a small page."""

MAX_SHOWN = 20
UNFORESEEN = "reader does not understand the answer ("
"""The prefix with which read_answers reports an unexpected exception."""


@dataclass
class Tally:
    """The results of a number of mutated pages."""

    source: str
    pages: int = 0
    unchanged: int = 0
    accepted: int = 0
    refused: int = 0
    """The answer was not in a shape that the reader knows."""
    not_accepted: int = 0
    """It was read, and judged not to be the source's day."""
    unforeseen: int = 0
    """Refused by way of an exception that the reader did not foresee: a TypeError, a KeyError."""
    offers: int = 0
    rejects: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    """Accepted offers that the reader could have known to be wrong, by kind."""
    crashes: list[str] = field(default_factory=list)
    findings: list[tuple[str, str]] = field(default_factory=list)
    """The first MAX_SHOWN pages with such offers: the kind, and the first of them in words."""
    slowest_seconds: float = 0.0
    slowest: int = 0
    peak_growth_mib: float = 0.0


@cache
def sample_answers(source: str) -> tuple[Answer, ...]:
    """The answers of a source's sample pages."""
    config = configs()[source]
    entries = [entry for entry in page_entries(PAGES / source, config) if entry.usable]
    return tuple(read_answer(PAGES / source, entry, OBSERVED_AT) for entry in entries)


@cache
def sample_currencies(source: str) -> frozenset[str]:
    """The currencies of a source's sample pages."""
    built = read_answers(sample_answers(source), configs()[source], RATES)
    return frozenset(offer.native_currency for offer in built.offers)


def accepted_offers(config: SourceConfig, built: Built, answers: Sequence[Answer]) -> list[Offer] | None:
    """Return the offers that a first day's reading would record; None if it is refused."""
    nothing_before = Records(Home(Path("a home that does not exist")))
    built, acceptance = judge(built, answers, config, OBSERVED_AT.date(), nothing_before)
    return built.offers if acceptance.accepted else None


def page_of(source: str, number: int, seed: str) -> list[Answer]:
    """The mutated answers of a number: the same for the same seed."""
    return mutated(sample_answers(source), Random(f"{seed} {source} {number}"))


def fuzz(
    source: str, numbers: Iterable[int], seed: str = "0", each: Callable[[int], None] = lambda number: None
) -> Tally:
    """Read the mutated pages of these numbers. ``each`` is called after every page."""
    tally, config = Tally(source), configs()[source]
    sample = [answer.body for answer in sample_answers(source)]
    read_one = _read_rates if config.kind == "exchange_rates" else _read_offers
    read_one(list(sample_answers(source)), config, Tally(source), "the sample page")
    before = _peak_mib()
    with _watch() as alive:
        for number in numbers:
            answers = page_of(source, number, seed)
            tally.pages += 1
            tally.unchanged += [answer.body for answer in answers] == sample
            alive()
            began = time.perf_counter()
            try:
                read_one(answers, config, tally, f"page {number}")
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                tally.crashes.append(f"page {number}: {type(error).__name__}: {str(error)[:200]}")
            if (seconds := time.perf_counter() - began) > tally.slowest_seconds:
                tally.slowest_seconds, tally.slowest = seconds, number
            each(number)
    tally.peak_growth_mib = _peak_mib() - before
    return tally


@contextmanager
def _watch() -> Iterator[Callable[[], None]]:
    """Ends the process when the function that it gives is not called for HANG_SECONDS."""
    watched = -math.inf

    def alive() -> None:
        nonlocal watched
        if (now := time.perf_counter()) - watched > WATCH_SECONDS:
            faulthandler.dump_traceback_later(HANG_SECONDS + WATCH_SECONDS, exit=True)
            watched = now

    try:
        yield alive
    finally:
        faulthandler.cancel_dump_traceback_later()


def _read_offers(answers: list[Answer], config: SourceConfig, tally: Tally, name: str) -> None:
    try:
        built = read_answers(answers, config, RATES)
    except SourceChangedError as error:
        tally.refused += 1
        tally.unforeseen += UNFORESEEN in str(error)
        return
    tally.offers += len(built.offers)
    tally.rejects += len(built.rejects)
    if not all(reject.detail for reject in built.rejects):
        raise AssertionError("a reject without a reason")
    offers = accepted_offers(config, built, answers)
    if offers is None:
        tally.not_accepted += 1
        return
    tally.accepted += 1
    found = findings(offers, answers, config, sample_currencies(config.name))
    _add(found, tally, name)


def _read_rates(answers: list[Answer], config: SourceConfig, tally: Tally, name: str) -> None:
    """Exchange rates: each is a plain number in an attribute. Space around it is no part of it."""
    try:
        rates = source_module(config.name).read_rates(answers, config)
    except SourceChangedError:
        tally.refused += 1
        return
    tally.accepted += 1
    text = " ".join(answer.body.replace(b"\0", b"").decode("utf-8", errors="replace") for answer in answers)
    found = re.findall(r"""["']\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*["']""", text)
    stated = set(map(Decimal, found))
    usd_per_euro = rates.usd_per_unit["EUR"]
    possible = (
        {usd_per_euro, *(usd_per_euro / each for each in stated if each)} if usd_per_euro in stated else ()
    )
    wrong = [
        Finding("rate", config.name, f"one {currency} is {usd} USD")
        for currency, usd in rates.usd_per_unit.items()
        if usd not in possible
    ]
    _add(wrong, tally, name)


def _add(found: Sequence[Finding], tally: Tally, name: str) -> None:
    tally.wrong.update(finding.kind for finding in found)
    if found and len(tally.findings) < MAX_SHOWN:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        tally.findings.append((found[0].kind, f"{name}: {found[0].detail[:200]}{more}"))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
