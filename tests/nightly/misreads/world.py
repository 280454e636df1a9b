"""The sample day of all sources, in which one source is misread: judged and published as on any morning."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Row
from pipeline.contracts.reject_reasons import CONTRADICTIONS, RejectReason
from pipeline.gates.judge import judge
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.months import file_of, months
from pipeline.record.records import Records
from pipeline.sources import source_module
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.marts import fill
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


class World:
    """The sample answers of every source, and a database with their clean offers."""

    def __init__(self, sample: Home, folder: Path) -> None:
        self._folder = folder
        self._sample = sample
        self._database = in_memory("offers_latest")
        self._database.execute("SET VARIABLE as_of_day = ?", [FIRST_DAY])
        for month in months(sample, "offers"):
            self._database.execute(LOAD, [str(file_of(sample, month))])
        self._truths: dict[str, Mapping[tuple[Any, ...], list[float]]] = {}
        self._read: dict[str, tuple[list[Answer], list[Row]]] = {}

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

    def with_misread(self, misread: Misread, days: Sequence[bool]) -> list[tuple[Any, ...]]:
        """The wrong ranked offers of the source on the last of consecutive days; on each it is misread (True)
        or read well."""
        home = Home(self._folder / "home")
        shutil.rmtree(home.root, ignore_errors=True)
        shutil.copytree(self._sample.record, home.record)
        shutil.rmtree(home.record / "offers" / misread.source)
        shutil.rmtree(home.record / "rejects" / misread.source)
        for number, misreads in enumerate(days):
            self._record(misread, FIRST_DAY + timedelta(days=number), misreads, home)
        return self._wrong(misread.source, FIRST_DAY + timedelta(days=len(days) - 1), home)

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

    def _record(self, misread: Misread, day: date, misreads: bool, home: Home) -> None:
        """As the daily job does with the rows of a reader."""
        config, records = source_config(misread.source), Records(home)
        answers, rows = self.clean(misread.source)
        if misreads:
            answers = [replace(answer, body=misread.page(answer.body)) for answer in answers]
            rows = misread.listings(rows)
        built = build_offers(rows, config, records.usd_rates(day))
        built, acceptance = judge(built, answers, config, day, records)
        if acceptance.accepted:
            records.write_accepted(day, config.name, built.offers)
        records.write_rejects(day, config.name, built.rejects)

    def _wrong(self, source: str, day: date, home: Home) -> list[tuple[Any, ...]]:
        database = self._database.cursor()
        database.execute("SET VARIABLE as_of_day = ?", [day])
        database.begin()
        try:
            database.execute("DELETE FROM main.offers WHERE source = ?", [source])
            for month in months(home, "offers", source):
                database.execute(LOAD, [str(file_of(home, month))])
            fill(database, "offers_latest")
            ranked = database.execute(
                f"SELECT {IDENTITY}, usd_per_gpu_hour::DOUBLE FROM main.offers_latest "
                "WHERE ranked AND source = ?",
                [source],
            ).fetchall()
        finally:
            database.rollback()
        truth = self._truth(source)

        def is_true(row: tuple[Any, ...]) -> bool:
            *identity, price = row
            return any(abs(price - true) <= TOLERANCE * true for true in truth[tuple(identity)])

        return [row for row in ranked if not is_true(row)]

    def _truth(self, source: str) -> Mapping[tuple[Any, ...], list[float]]:
        """USD per GPU-hour of the clean offers by identity, those that a gate would hold among them."""
        if source not in self._truths:
            rates = Records(self._sample).usd_rates(FIRST_DAY)
            found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
            for offer in build_offers(self.clean(source)[1], source_config(source), rates).offers:
                if offer.usd_per_gpu_hour is not None:
                    identity = tuple(getattr(offer, name) for name in IDENTITY.split(", "))
                    found[identity].append(float(offer.usd_per_gpu_hour))
            self._truths[source] = found
        return self._truths[source]
