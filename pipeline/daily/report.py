"""What a refresh did, in lines for people."""

from dataclasses import dataclass, field
from datetime import date

from pipeline.contracts.capture import Outcome
from pipeline.warehouse.build import Report

MAX_SHOWN_CHANGES = 20


@dataclass(slots=True)
class RefreshReport:
    """The outcome of each source, and what was published."""

    day: date
    outcomes: list[Outcome] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)
    published_day: date | None = None
    published: Report | None = None
    publish_error: str | None = None
    swept_files: int = 0

    def lines(self) -> list[str]:
        """One line per source and one on what was published."""
        width = max((len(outcome.source) for outcome in self.outcomes), default=0)
        lines = [f"{outcome.source:<{width}}  {_summary(outcome)}" for outcome in self.outcomes]
        if self.swept_files:
            lines.append(f"swept {self.swept_files} half-written files of runs that were killed")
        for source, changed in self.changes.items():
            lines.append(f"{source}: {len(changed)} changes against what was published of {self.day}")
            lines += [f"  {change}" for change in changed[:MAX_SHOWN_CHANGES]]
        if self.published:
            lines += [f"warning: {warning}" for warning in self.published.warnings]
            offers = self.published.rows.get("offers_latest", 0)
            lines.append(f"published as of {self.published_day}: {offers} current offers")
        return lines

    def why_not_published(self) -> str:
        """The reason, in one line."""
        if self.publish_error:
            return f"nothing was published: {self.publish_error}"
        reasons = "; ".join(f"{outcome.source}: {_summary(outcome)}" for outcome in self.outcomes)
        return f"nothing was published, because no source has accepted offers ({reasons})"


def _summary(outcome: Outcome) -> str:
    if not outcome.accepted:
        detail = f" ({outcome.error})" if outcome.error and outcome.error != outcome.reason else ""
        return f"NOT ACCEPTED  {outcome.reason}{detail}"
    rejected = f", {outcome.rejects} rejected" if outcome.rejects else ""
    unidentified = outcome.ambiguous + outcome.unknown
    open_labels = f", {unidentified} with an open GPU" if unidentified else ""
    partial = f"  PARTIAL {outcome.error}" if outcome.status == "partial" else ""
    warned = f"  warning: {'; '.join(outcome.warnings)}" if outcome.warnings else ""
    return f"accepted  {outcome.rows} offers{rejected}{open_labels}{partial}{warned}"
