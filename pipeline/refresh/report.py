"""What a refresh did, in lines for people."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.incidents import Incident
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.parsing.printable import short_addresses
from pipeline.refresh.diagnosis import Diagnosis, diagnosis, result_of, was_asked
from pipeline.refresh.next_steps import next_step
from pipeline.warehouse.build import Report

MAX_SHOWN = 20
"""Changes, held prices and incidents are listed up to this number each."""

_ORDER = list(SourceResult)


@dataclass(slots=True)
class RefreshReport:
    """The outcome of each source, and what was published.

    ``replay_url`` is that of the server that was asked in place of the providers. ``off`` names the sources
    that were not asked, which then have no line each; ``announced`` was said before the first request.
    ``stored`` says what was sent to the object store, None where none is set.
    """

    day: date
    outcomes: list[Outcome] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)
    published_day: date | None = None
    published: Report | None = None
    publish_error: str | None = None
    newest_price_day: date | None = None
    swept_files: int = 0
    future_days: dict[date, list[str]] = field(default_factory=dict)
    held: dict[str, list[str]] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    announced: list[str] = field(default_factory=list)
    replayed: str = ""
    merged: str = ""
    replay_url: str | None = None
    stored: str | None = None

    @property
    def asked(self) -> list[Outcome]:
        """The outcomes of sources that were asked: not those retired, or without their key or permission."""
        return [each for each in self.outcomes if was_asked(each)]

    @property
    def nobody_answered(self) -> bool:
        """Whether sources were asked and not one of them gave an answer that can be read."""
        return bool(self.asked) and all(each.requests <= each.failed_requests for each in self.asked)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What most of the sources that failed have in common."""
        return diagnosis(self.outcomes, self.replay_url)

    def lines(self) -> list[str]:
        """The sources by their result, each in one line or in the diagnosis that they share, and one line on
        what was published."""
        lines = [*self._of_sources(), *(line for line in self.off if line not in self.announced)]
        if self.swept_files:
            lines.append(f"swept {self.swept_files} half-written files of runs that were killed")
        lines += filter(None, [self.merged])
        for source, changed in self.changes.items():
            lines += _shown(
                f"{source}: {len(changed)} changes against what was published of {self.day}", changed
            )
        for source, details in self.held.items():
            lines += _shown(f"{source}: prices held until they are confirmed: {len(details)}", details)
        for day, folders in self.future_days.items():
            lines.append(f"ignored: files of {day}, a day to come, in {', '.join(folders)}")
        if self.incidents:
            problems = [incident.line() for incident in self.incidents]
            lines += _shown(f"incidents, kept in the table of that name: {len(problems)}", problems)
        if self.published:
            lines += [f"warning: {warning}" for warning in self.published.warnings]
            offers = self.published.rows.get("offers_latest", 0)
            lines.append(f"published as of {self.published_day}: {offers} offers")
            if self.replayed:
                lines.append(f"among them, replayed from saved pages and no live prices: {self.replayed}")
            if not self.published.rows.get("rentals"):
                lines.append("no price is recent enough to be ranked: the rankings are empty")
            if not (self.nobody_answered or any(outcome.accepted for outcome in self.asked)):
                lines.append(self._nothing_new())
        return [*lines, *filter(None, [self.stored])]

    def _of_sources(self) -> list[str]:
        shared = self.diagnosis
        lines = [shared.line(len(self.asked))] if shared else []
        rest = [each for each in self.outcomes if not shared or each.source not in shared.sources]
        if self.off:
            rest = [each for each in rest if was_asked(each)]
        if shared and shared.all_asked:
            rest = []
        width = max((len(outcome.source) for outcome in rest), default=0)
        by_result = sorted(rest, key=lambda outcome: _ORDER.index(result_of(outcome)))
        for result, outcomes in groupby(by_result, result_of):
            same = list(outcomes)
            if len(self.outcomes) > 1:
                lines.append(f"{result.sentence}: {len(same)} of {len(self.outcomes)} sources")
            lines += [f"{outcome.source:<{width}}  {_summary(outcome)}" for outcome in same]
        return lines

    def failure(self) -> str | None:
        """That the run failed, in one line beside ``lines``, which say why: nothing was published, or nobody
        answered; else None."""
        if self.published:
            return self._nothing_new() if self.nobody_answered else None
        return f"nothing was published: {self.publish_error or self._no_source()}"

    def _nothing_new(self) -> str:
        return f"{self._no_source()}; the newest prices are of {self.newest_price_day}"

    def _no_source(self) -> str:
        if not self.asked:
            return "no source was asked"
        if not any(each.requests for each in self.asked):
            what = "no answer could be kept"
        else:
            what = "no source answered" if self.nobody_answered else "no source was accepted"
        return f"{what} ({len(self.asked)} asked)"

    def why_not_published(self) -> str:
        """The reason, in one line, for readers who do not have ``lines``."""
        if self.publish_error:
            return f"nothing was published: {self.publish_error}"
        if self.diagnosis:
            return f"nothing was published: {self.diagnosis.line(len(self.asked))}"
        if len(self.outcomes) <= 1:
            reasons = "; ".join(f"{outcome.source}: {_summary(outcome)}" for outcome in self.outcomes)
        else:
            counts = Counter(result_of(outcome) for outcome in self.outcomes)
            reasons = "; ".join(f"{counts[result]} {result.sentence}" for result in _ORDER if counts[result])
        return f"nothing was published, because no source has accepted offers ({reasons})"


def _shown(heading: str, details: Sequence[str]) -> list[str]:
    more = len(details) - MAX_SHOWN
    return [
        heading,
        *(f"  {detail}" for detail in details[:MAX_SHOWN]),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def _summary(outcome: Outcome) -> str:
    return short_addresses(_whole_summary(outcome))


def _whole_summary(outcome: Outcome) -> str:
    config = configs().get(outcome.source)
    step = next_step(result_of(outcome), outcome.code, config) if config else None
    remedy = f" -> {step}" if step else ""
    if not was_asked(outcome):
        reason = "needs a key" if step else outcome.reason
        return f"not asked  {reason}{remedy}"
    if not outcome.accepted:
        detail = f" ({outcome.error})" if outcome.error and outcome.error != outcome.reason else ""
        return f"NOT ACCEPTED  {outcome.reason}{detail}{remedy}"
    rejected = f", {outcome.rejects} rejected" if outcome.rejects else ""
    unidentified = outcome.ambiguous + outcome.unknown
    open_labels = f", {unidentified} with an open GPU" if unidentified else ""
    covered = _coverage_text(outcome, config) if config else ""
    partial = f"  PARTIAL {outcome.error}" if outcome.status == "partial" else ""
    warned = f"  warning: {'; '.join(outcome.warnings)}" if outcome.warnings else ""
    what = "exchange rates" if config and config.kind == "exchange_rates" else "offers"
    return f"accepted  {outcome.rows} {what}{rejected}{open_labels}{covered}{partial}{warned}{remedy}"


def _coverage_text(outcome: Outcome, config: SourceConfig) -> str:
    """How much of what the provider sells the offers are: counted where its regions are known, else as the
    yaml estimates."""
    if config.coverage.regions is not None and outcome.regions:
        return f", regions {outcome.regions} of {config.coverage.regions}"
    share = config.coverage.share
    return f", about {share:.0%} of what it sells" if share is not None and 0 < share < 1 else ""
