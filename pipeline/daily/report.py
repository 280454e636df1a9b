"""What a refresh did, in lines for people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from pipeline.contracts.capture import Outcome
from pipeline.contracts.incidents import Incident
from pipeline.warehouse.build import Report

NOT_ASKED = ("disabled", "needs_key", "needs_permission")
"""Statuses of a capture for which nothing was requested; none of them is a failure."""

MAX_SHOWN = 20
"""Changes, held prices and incidents are listed up to this number each."""


@dataclass(slots=True)
class RefreshReport:
    """The outcome of each source, and what was published."""

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

    @property
    def asked(self) -> list[Outcome]:
        """The outcomes of sources that were asked: not those disabled or without a key or a permission."""
        return [each for each in self.outcomes if each.status not in NOT_ASKED]

    @property
    def nobody_answered(self) -> bool:
        """Whether sources were asked and not one of them gave an answer that can be read."""
        return bool(self.asked) and all(each.requests <= each.failed_requests for each in self.asked)

    def lines(self) -> list[str]:
        """One line per source and one on what was published."""
        width = max((len(outcome.source) for outcome in self.outcomes), default=0)
        lines = [f"{outcome.source:<{width}}  {_summary(outcome)}" for outcome in self.outcomes]
        lines += self.off
        if self.swept_files:
            lines.append(f"swept {self.swept_files} half-written files of runs that were killed")
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
            if not self.published.rows.get("rentals"):
                lines.append("no price is recent enough to be ranked: the rankings are empty")
            if not any(outcome.accepted for outcome in self.asked):
                lines.append(self._nothing_new())
        return lines

    def failure(self) -> str | None:
        """Why the run failed, in one line: nothing was published, or nobody answered; else None."""
        if not self.published:
            return self.why_not_published()
        return self._nothing_new() if self.nobody_answered else None

    def _nothing_new(self) -> str:
        what = "no source answered" if self.nobody_answered else "no source was accepted"
        what = what if self.asked else "no source was asked"
        example = f", {self.asked[0].source}: {_summary(self.asked[0])}" if self.asked else ""
        return f"{what} ({len(self.asked)} asked{example}); the newest prices are of {self.newest_price_day}"

    def why_not_published(self) -> str:
        """The reason, in one line."""
        if self.publish_error:
            return f"nothing was published: {self.publish_error}"
        reasons = "; ".join(f"{outcome.source}: {_summary(outcome)}" for outcome in self.outcomes)
        return f"nothing was published, because no source has accepted offers ({reasons})"


def _shown(heading: str, details: Sequence[str]) -> list[str]:
    more = len(details) - MAX_SHOWN
    return [
        heading,
        *(f"  {detail}" for detail in details[:MAX_SHOWN]),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def _summary(outcome: Outcome) -> str:
    if outcome.status in NOT_ASKED:
        return f"not asked  {outcome.reason}"
    if not outcome.accepted:
        detail = f" ({outcome.error})" if outcome.error and outcome.error != outcome.reason else ""
        return f"NOT ACCEPTED  {outcome.reason}{detail}"
    rejected = f", {outcome.rejects} rejected" if outcome.rejects else ""
    unidentified = outcome.ambiguous + outcome.unknown
    open_labels = f", {unidentified} with an open GPU" if unidentified else ""
    partial = f"  PARTIAL {outcome.error}" if outcome.status == "partial" else ""
    warned = f"  warning: {'; '.join(outcome.warnings)}" if outcome.warnings else ""
    return f"accepted  {outcome.rows} offers{rejected}{open_labels}{partial}{warned}"
