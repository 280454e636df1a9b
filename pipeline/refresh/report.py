"""The output of a refresh: which sources it is about to ask, then what it did.

pipeline/health/digest.py makes the text that is posted in the morning, and pipeline/page the HTML page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from rich.filesize import decimal as size_text

from pipeline.capture.permissions import read_choices
from pipeline.catalog.source_config import SourceConfig, asked_configs, source_config
from pipeline.contracts.incidents import Incident
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.home.paths import Home
from pipeline.parsing.printable import short_addresses
from pipeline.record.records import Records
from pipeline.refresh.advice import Diagnosis, diagnosis, key_text, next_step_of
from pipeline.refresh.permissions import is_asked
from pipeline.warehouse.build import Report

MAX_SHOWN = 20
"""The maximum number of held prices per source, and of incidents, that is listed."""


# ---------------------------------------------------------------- before the first request


def announcement(chosen: Sequence[SourceConfig], home: Home, environment: Mapping[str, str]) -> list[str]:
    """Return a line on the number of sources asked and, before the first accepted day, lines on the coverage
    that keys would add."""
    choices = read_choices(home)
    asked = [config for config in chosen if is_asked(config, choices, environment)]
    if any(Records(home).days_with_offers(name) for name in asked_configs()):
        return [_asking_text(asked, environment)]
    # off_lines names the keys of sources that are off because of their terms.
    keys = [
        f"a key would add to {config.name}: {config.coverage.with_key}; set {key_text(config)}"
        for config in chosen
        if config.terms.automated != "forbidden" and config.disabled is None
        if config.coverage.with_key and not config.has_key(environment)
    ]
    return [_asking_text(asked, environment), *keys]


def _asking_text(asked: Sequence[SourceConfig], environment: Mapping[str, str]) -> str:
    with_keys = [config.name for config in asked if config.has_key(environment)]
    without = len(asked) - len(with_keys)
    who = [f"{without} {'source' if without == 1 else 'sources'} without a key"] if without else []
    who += [f"{', '.join(with_keys)} with your keys"] if with_keys else []
    return f"asking {' and '.join(who) or 'no source'}"


# ---------------------------------------------------------------- when it is done


@dataclass(slots=True)
class RefreshReport:
    """The outcome of each source, and what was published.

    ``replay_url`` is the server that was asked instead of the providers. ``off`` contains lines on the
    sources that were not asked, which are then not listed separately. ``stored`` is a line about the bucket
    with the published file, or None if no bucket is set.
    """

    day: date
    outcomes: list[Outcome] = field(default_factory=list)
    published_day: date | None = None
    published: Report | None = None
    publish_error: str | None = None
    newest_price_day: date | None = None
    swept_files: int = 0
    held: dict[str, list[str]] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    replayed: str = ""
    replay_url: str | None = None
    stored: str | None = None

    @property
    def asked(self) -> list[Outcome]:
        """The outcomes of sources that were asked: those not retired, and with any key and permission that
        they need."""
        return [each for each in self.outcomes if each.result.asked]

    @property
    def failed(self) -> list[Outcome]:
        """The outcomes of sources that were asked but not accepted."""
        return [outcome for outcome in self.asked if not outcome.accepted]

    @property
    def no_answers(self) -> bool:
        """True if sources were asked, but none of them gave an answer that could be read."""
        return bool(self.asked) and all(each.requests <= each.failed_requests for each in self.asked)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The cause, if any, that explains why most of the asked sources failed."""
        return diagnosis(self.outcomes, self.replay_url)

    def lines(self) -> list[str]:
        """Return the report: the sources grouped by result, then problems and the publication."""
        lines = [*self.source_lines(), *self.off]
        if self.swept_files:
            lines.append(f"deleted {self.swept_files} half-written files of killed runs")
        for source, details in self.held.items():
            lines += _shown(f"{source}: prices held until they are confirmed: {len(details)}", details)
        if self.incidents:
            problems = [incident.line() for incident in self.incidents]
            lines += _shown(f"incidents, kept in the table of that name: {len(problems)}", problems)
        if self.published:
            lines += self.published.warnings
            offers = self.published.rows.get("offers_latest", 0)
            lines.append(f"published as of {self.published_day}: {offers} offers")
            if self.replayed:
                lines.append(f"among them, replayed from saved pages and no live prices: {self.replayed}")
            if not self.published.rows.get("rentals"):
                lines.append("no price is recent enough to be ranked: the rankings are empty")
            if self.failed == self.asked and not self.no_answers:
                lines.append(self._nothing_new())
        return [*lines, *filter(None, [self.stored])]

    def source_lines(self, *, recorded: bool = True) -> list[str]:
        """Return the sources grouped by result, each in one line, or several in a shared diagnosis. Unless
        the outcomes are ``recorded``, lines also give the number of requests, the bytes and the seconds."""
        shared = self.diagnosis
        where = "`gpufare sources` has each error" if recorded else "--format json has each error"
        lines = [shared.line(len(self.asked), where)] if shared else []
        rest = [each for each in self.outcomes if not shared or each.source not in shared.sources]
        if self.off:
            rest = [each for each in rest if each.result.asked]
        if shared and shared.all_asked:
            rest = []
        width = max((len(outcome.source) for outcome in rest), default=0)
        by_result = sorted(rest, key=lambda outcome: list(SourceResult).index(outcome.result))
        for result, outcomes in groupby(by_result, lambda outcome: outcome.result):
            same = list(outcomes)
            if len(self.outcomes) > 1:
                lines.append(f"{result.sentence}: {len(same)} of {len(self.outcomes)} sources")
            lines += [
                f"{outcome.source:<{width}}  {_summary(outcome, measured=not recorded)}" for outcome in same
            ]
        return lines

    def failure(self) -> str | None:
        """Return in one line why the run failed (nothing was published, or no source answered), or None."""
        if self.published:
            return self._nothing_new() if self.no_answers else None
        return f"nothing was published: {self.publish_error or self._no_source()}"

    def _nothing_new(self) -> str:
        return f"{self._no_source()}; the newest prices are of {self.newest_price_day}"

    def _no_source(self) -> str:
        if not self.asked:
            return "no source was asked"
        if not any(each.requests for each in self.asked):
            what = "no answer could be kept"
        else:
            what = "no source answered" if self.no_answers else "no source was accepted"
        return f"{what} ({len(self.asked)} asked)"


def _shown(heading: str, details: Sequence[str]) -> list[str]:
    more = len(details) - MAX_SHOWN
    return [
        heading,
        *(f"  {detail}" for detail in details[:MAX_SHOWN]),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def _summary(outcome: Outcome, *, measured: bool) -> str:
    step = next_step_of(outcome)
    if not outcome.result.asked:
        line = f"not asked  {'needs a key' if step else outcome.reason}"
    elif outcome.accepted:
        line = _accepted_text(outcome, source_config(outcome.source))
    else:
        detail = f" ({outcome.error})" if outcome.error and outcome.error != outcome.reason else ""
        line = f"NOT ACCEPTED  {outcome.reason}{detail}"
    if measured and outcome.result.asked:
        requests = f"{outcome.requests} {'request' if outcome.requests == 1 else 'requests'}"
        line += f"; {requests}, {size_text(outcome.bytes)} in {outcome.duration_seconds:.1f} s"
    return short_addresses(f"{line}{f' -> {step}' if step else ''}")


def _accepted_text(outcome: Outcome, config: SourceConfig) -> str:
    rejected = f", {outcome.rejects} rejected" if outcome.rejects else ""
    unidentified = outcome.ambiguous + outcome.unknown
    open_labels = f", {unidentified} with an open GPU" if unidentified else ""
    partial = f"  PARTIAL {outcome.error}" if outcome.status == "partial" else ""
    warned = f"  warning: {'; '.join(outcome.warnings)}" if outcome.warnings else ""
    what = "exchange rates" if config.kind == "exchange_rates" else "offers"
    return f"accepted  {outcome.rows} {what}{rejected}{open_labels}{partial}{warned}"
