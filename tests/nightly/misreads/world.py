"""The sample day of all sources, in which one source is misread: judged and published as on any morning."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Row
from pipeline.contracts.reject_reasons import CONTRADICTIONS, RejectReason
from pipeline.gates.judge import judge
from pipeline.gates.reading import Acceptance
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.months import file_of, months
from pipeline.record.records import Records
from pipeline.sources import source_module
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.marts import fill
from tests.nightly.misreads.changes import Change, PageChange
from tests.nightly.misreads.misreads import Misread

FIRST_DAY = date(2026, 8, 22)

TOLERANCE = 0.05
"""A ranked price is wrong when no offer of the clean day with the same GPU, count, kind, term, region and
tier is within this share of it."""

LOAD = "INSERT INTO main.offers BY NAME SELECT * FROM read_parquet(?)"

IDENTITY = "gpu_id, gpu_count, price_kind, term_days, region, tier"


GATES = (*CONTRADICTIONS, "price_outlier", "source_far_from_market", "price_odd_for_its_source")
"""Flags and reasons from gates; the others come from the source itself."""


@dataclass(frozen=True)
class FalseAlarms:
    """Good offers that a gate held, flagged or kept out of the rankings, by its reason."""

    offers: int
    reasons: Mapping[str, int]

    @property
    def share(self) -> float:
        return sum(self.reasons.values()) / self.offers

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items())) or "none"
        return f"{sum(self.reasons.values())} of {self.offers} good offers ({self.share:.2%}): {reasons}"


MORE_RATES = {"CAD": 1.3862, "AUD": 1.5484, "SGD": 1.287, "HKD": 7.818, "ILS": 3.692, "BRL": 5.0}
"""Units per dollar of currencies that the sample page of exchange rates lacks, as the changes have them."""


@dataclass(frozen=True)
class Shown:
    """The ranked prices of a source on one day: the number of wrong ones and of all, the held prices by
    reason, and why the reading was refused, if it was."""

    wrong: int
    ranked: int
    held: Counter[str]
    refused: str | None


class World:
    """The sample answers of every source, and a database with their clean offers."""

    def __init__(self, sample: Home, folder: Path) -> None:
        self._folder = folder
        self._sample = sample
        self._database = in_memory("offers_latest")
        self._database.execute("SET VARIABLE as_of_day = ?", [FIRST_DAY])
        for month in months(sample, "offers"):
            self._database.execute(LOAD, [str(file_of(sample, month))])
        self._read: dict[str, tuple[list[Answer], list[Row]]] = {}
        self._answers: dict[tuple[str, date], list[Answer]] = {}

    def sources(self) -> list[str]:
        """The sources with offers on the sample day."""
        return sorted({month.source for month in months(self._sample, "offers")})

    def clean(self, source: str) -> tuple[list[Answer], list[Row]]:
        """The answers of a source, and what its reader yields for them."""
        if source not in self._read:
            capture = Archive(self._sample.archive).captures(source, FIRST_DAY)[-1]
            answers = Archive(self._sample.archive).answers(capture)
            self._read[source] = (answers, list(source_module(source).read(answers, source_config(source))))
        return self._read[source]

    def shown(self, change: Misread, clean_days: int, days: Collection[int]) -> dict[int, Shown]:
        """The ranked prices on some days of a lasting change, counted from 1, after some clean days."""
        home = self._home_without(change)
        elsewhere = change.elsewhere if isinstance(change, Change) else {}
        day = FIRST_DAY
        for _ in range(clean_days):
            for source in (change.source, *elsewhere):
                self._record(Misread(source, list), day, home)
            day += timedelta(days=1)
        found = {}
        for number in range(1, max(days) + 1):
            for source, edit in elsewhere.items():
                self._record(Misread(source, edit), day, home)
            acceptance, held = self._record(change, day, home)
            if number in days:
                ranked = self._ranked(change.source, day, home)
                found[number] = Shown(self._wrong(change, ranked), len(ranked), held, acceptance.reason)
            day += timedelta(days=1)
        return found

    def _home_without(self, change: Misread) -> Home:
        """A home with the sample day of all sources but that of the change."""
        home = Home(self._folder / "home")
        shutil.rmtree(home.root, ignore_errors=True)
        shutil.copytree(self._sample.record, home.record)
        for source in (change.source, *(change.elsewhere if isinstance(change, Change) else ())):
            for table in ("offers", "rejects"):
                shutil.rmtree(home.record / table / source)
        records = Records(home)
        rates = records.exchange_rates(FIRST_DAY)
        more = [
            rates[0] | {"currency": name, "usd_per_unit": str(1 / rate)} for name, rate in MORE_RATES.items()
        ]
        records.write_exchange_rates(FIRST_DAY, [*rates, *more])
        return home

    def false_alarms(self) -> FalseAlarms:
        """Count the false alarms of the clean sample day, which is every source's first."""
        counts: Counter[str] = Counter()
        for month in months(self._sample, "offers"):
            rejects = Records(self._sample).rejects(month.source, FIRST_DAY)
            counts.update(row["reason"] for row in rejects if RejectReason[row["reason"].upper()].held)
        held, reasons = counts.total(), "SELECT flag_reason, not_ranked_reason FROM main.offers_latest"
        fill(self._database, "offers_latest")
        offers = self._database.execute(reasons).fetchall()
        counts.update(reason for found in offers for reason in found if reason in GATES)
        self._database.execute("DELETE FROM main.offers_latest")
        return FalseAlarms(held + len(offers), counts)

    def _record(self, change: Misread, day: date, home: Home) -> tuple[Acceptance, Counter[str]]:
        """As the daily job does with the rows of a reader; return what it held by reason, too."""
        config, records = source_config(change.source), Records(home)
        asked, rows = self._changed(change)
        self._answers[change.source, day] = asked
        built = build_offers(rows, config, records.usd_rates(FIRST_DAY), any_currency=True)
        former = partial(self._former, change.source)
        built, acceptance = judge(built, asked, config, day, records, former=former)
        if acceptance.accepted:
            records.write_accepted(day, config.name, built.offers)
        records.write_rejects(day, config.name, built.rejects)
        return acceptance, Counter(row.reason.value for row in built.rejects if row.reason.held)

    def _changed(self, change: Misread) -> tuple[list[Answer], list[Row]]:
        """The answers and what is read from them after a change."""
        answers, rows = self.clean(change.source)
        if isinstance(change, PageChange):
            asked = [change.answer(answer) for answer in answers]
            return asked, list(source_module(change.source).read(asked, source_config(change.source)))
        headers = change.headers if isinstance(change, Change) else {}
        asked = [
            replace(answer, body=change.page(answer.body), headers={**answer.headers, **headers})
            for answer in answers
        ]
        return asked, change.listings(rows)

    def _former(self, source: str, sha256: str, day: date) -> Sequence[Answer]:
        """Return the answers that the archive would have."""
        return self._answers.get((source, day), ())

    def _ranked(self, source: str, day: date, home: Home) -> list[tuple[Any, ...]]:
        database = self._database.cursor()
        database.execute("SET VARIABLE as_of_day = ?", [day])
        database.begin()
        try:
            database.execute("DELETE FROM main.offers WHERE source = ?", [source])
            for month in months(home, "offers", source):
                database.execute(LOAD, [str(file_of(home, month))])
            fill(database, "offers_latest")
            return database.execute(
                f"SELECT {IDENTITY}, usd_per_gpu_hour::DOUBLE FROM main.offers_latest "
                "WHERE ranked AND source = ?",
                [source],
            ).fetchall()
        finally:
            database.rollback()

    def _wrong(self, change: Misread, ranked: Sequence[tuple[Any, ...]]) -> int:
        """The number of ranked prices that are not what the source asks: what it asked on the clean day, or,
        if the change is true, what it asks since."""
        is_true = isinstance(change, Change) and change.good
        truth = self._truth(change if is_true else Misread(change.source, list))

        def is_right(row: tuple[Any, ...]) -> bool:
            *identity, price = row
            return any(abs(price - true) <= TOLERANCE * true for true in truth[tuple(identity)])

        return sum(not is_right(row) for row in ranked)

    def _truth(self, change: Misread) -> Mapping[tuple[Any, ...], list[float]]:
        """USD per GPU-hour of the offers by identity, those that a gate would hold among them."""
        rates = Records(self._sample).usd_rates(FIRST_DAY)
        rows, config = self._changed(change)[1], source_config(change.source)
        found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for offer in build_offers(rows, config, rates, any_currency=True).offers:
            if offer.usd_per_gpu_hour is not None:
                identity = tuple(getattr(offer, name) for name in IDENTITY.split(", "))
                found[identity].append(float(offer.usd_per_gpu_hour))
        return found
