"""Reads mutated sample pages of a source as the daily job would, and notes what must not happen."""

import re
import resource
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pipeline.catalog.source_config import SourceConfig, asked_configs, configs
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.rates import Rate
from pipeline.gates.judge import judge
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.ingest import read_answers
from pipeline.sources import source_module
from tests.nightly.fuzz.mutations import mutated
from tests.nightly.fuzz.oracle import findings
from tests.sources.helpers import OBSERVED_AT, sample_answers

SOURCES = tuple(sorted(asked_configs()))

RATES = {"EUR": Rate(Decimal("1.17"), date(2026, 8, 21)), "GBP": Rate(Decimal("1.34"), date(2026, 8, 21))}

HANG_SECONDS = 120
"""Reading one visit's answers for so long is a crash of that page."""


@dataclass
class Tally:
    """The results of a number of mutated pages."""

    unchanged: int = 0
    accepted: int = 0
    crashes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    """Accepted offers that the reader could have known to be wrong: the first of each page, in words."""
    slowest: tuple[float, int] = (0.0, 0)
    """Seconds and number of the slowest page."""
    peak_growth_mib: float = 0.0


@cache
def sample_currencies(source: str) -> frozenset[str]:
    """The currencies of a source's sample pages."""
    built = read_answers(sample_answers(source), configs()[source], RATES)
    return frozenset(offer.native_currency for offer in built.offers)


def page_of(source: str, number: int, seed: str) -> list[Answer]:
    """The mutated answers of a number: the same for the same seed."""
    return mutated(sample_answers(source), Random(f"{seed} {source} {number}"))


def fuzz(source: str, numbers: Iterable[int], seed: str) -> Tally:
    """Read the mutated pages of these numbers."""
    tally, config, sample = Tally(), configs()[source], sample_answers(source)
    find = _wrong_rates if config.kind == "exchange_rates" else _wrong_offers
    find(sample, config)  # what is read once is no growth
    before = _peak_mib()
    former = signal.signal(signal.SIGALRM, _hangs)
    try:
        for number in numbers:
            answers = page_of(source, number, seed)
            tally.unchanged += [page.body for page in answers] == [page.body for page in sample]
            signal.alarm(HANG_SECONDS)
            began = time.perf_counter()
            try:
                found = find(answers, config)
                tally.accepted += found is not None
                tally.findings += [f"page {number}: {each}, of {len(found)}" for each in (found or [])[:1]]
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                tally.crashes.append(f"page {number}: {type(error).__name__}: {str(error)[:200]}")
            tally.slowest = max(tally.slowest, (time.perf_counter() - began, number))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    tally.peak_growth_mib = _peak_mib() - before
    return tally


def _hangs(*_: Any) -> None:
    raise TimeoutError(f"it was read for {HANG_SECONDS} s")


def _wrong_offers(answers: Sequence[Answer], config: SourceConfig) -> list[str] | None:
    """Return what is wrong with the offers that a first day's reading would record; None if it is refused."""
    try:
        built = read_answers(answers, config, RATES)
    except SourceChangedError:
        return None
    assert all(reject.detail for reject in built.rejects), "a reject without a reason"
    nothing_before = Records(Home(Path("a home that does not exist")))
    built, acceptance = judge(built, answers, config, OBSERVED_AT.date(), nothing_before)
    if not acceptance.accepted:
        return None
    return findings(built.offers, answers, config, sample_currencies(config.name))


def _wrong_rates(answers: Sequence[Answer], config: SourceConfig) -> list[str] | None:
    """Exchange rates: each is a plain number in an attribute. Space around it is no part of it."""
    try:
        rates = source_module(config.name).read_rates(answers, config).usd_per_unit
    except SourceChangedError:
        return None
    text = " ".join(answer.body.replace(b"\0", b"").decode("utf-8", errors="replace") for answer in answers)
    found = re.findall(r"""["']\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*["']""", text)
    stated = set(map(Decimal, found))
    euro = rates["EUR"]
    possible = {euro, *(euro / each for each in stated if each)} if euro in stated else ()
    return [f"rate: one {currency} is {usd} USD" for currency, usd in rates.items() if usd not in possible]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
