"""Asks sources whether their readers still work: one request each, nothing published and nothing kept.

Besides it robots.txt is asked, and a failed connection is tried again, as in a refresh; no other query is
made in its place.

Answers are read in a home of their own, which is gone afterwards. robots.txt, terms of use, pauses and the
client's limits apply as in a refresh. To keep the answers as a folder of pages, each source's whole visit is
made: a folder that has only the first answer proves nothing.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.capture.permissions import read_choices, why_off
from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.hosts import host_of
from pipeline.contracts.listing import Answer, Request
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.contracts.progress import Progress, no_progress
from pipeline.contracts.request import Entry
from pipeline.gates.acceptance import missing_cards
from pipeline.health.doctor.saved_pages import check_free, save_pages
from pipeline.home.paths import Home
from pipeline.parsing.paging import next_page
from pipeline.parsing.printable import printable, short_addresses
from pipeline.record.records import Records
from pipeline.refresh.announcement import is_asked
from pipeline.refresh.diagnosis import Diagnosis, diagnosis, result_of
from pipeline.refresh.ingest import read_answers, record_day
from pipeline.refresh.next_steps import next_step
from pipeline.refresh.origin import RefreshError, capture_live, chosen_sources, is_url
from pipeline.sources import source_module
from pipeline.warehouse.query import Result

Verdict = Literal["works", "partly", "answers", "unsure", "fails", "skipped"]

MEANINGS: Mapping[Verdict, str] = {
    "works": "it was asked, read and accepted as on a first day",
    "partly": "it was accepted, but some requests failed",
    "answers": "its first request is answered and read; the others were not made: no bounds are compared",
    "unsure": "its first request is answered, but cannot be read without the others, or has changed",
    "fails": "a refresh would get no prices from it",
    "skipped": "it was not asked",
}

_LOOK_THROUGH = (
    "the saved answers have no keys and no cookies; look through them before you hand them on: a page may "
    "show the address that it was asked from"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one source answered, and what that means. ``requests`` were made, of ``requests_in_all``, which is
    the least where pages follow; ``largest_bytes`` is of the largest answer. ``missing_gpus`` is '' where
    every must-have GPU is there. What is not known is None."""

    source: str
    verdict: Verdict
    result: SourceResult
    meaning: str
    remedy: str
    reason: str | None = None
    robots: str | None = None
    status: int | None = None
    host: str | None = None
    content_type: str | None = None
    largest_bytes: int | None = None
    max_body_bytes: int | None = None
    requests: int = 0
    requests_in_all: int | None = None
    seconds: float | None = None
    rows: int | None = None
    rejects: int | None = None
    rows_min: int | None = None
    rows_max: int | None = None
    missing_gpus: str | None = None
    evidence: str
    evidence_age_days: int
    saved_to: str | None = None

    def line(self) -> str:
        """All of it but its meaning, in one line for people."""
        parts = [
            self.reason,
            self.robots,
            self._answer_text(),
            self._size_text(),
            self._rows_text(),
            self._gpus_text(),
            f"evidence: {self.evidence}, {self.evidence_age_days} days old",
            f"saved in {self.saved_to}" if self.saved_to else None,
        ]
        remedy = f" -> {self.remedy}" if self.remedy else ""
        said = "; ".join(part for part in parts if part)
        return short_addresses(printable(f"{self.verdict:<7} {self.source:<14} {said}{remedy}"))

    def _gpus_text(self) -> str | None:
        if self.missing_gpus is None:
            return None
        return (
            f"must-have GPUs missing: {self.missing_gpus}"
            if self.missing_gpus
            else "must-have GPUs are there"
        )

    def _answer_text(self) -> str | None:
        if self.host is None:
            return None
        status = f"status {self.status}" if self.status is not None else "no answer"
        kind = f", {self.content_type}" if self.content_type else ""
        return f"{status} from {self.host}{kind}"

    def _size_text(self) -> str | None:
        if not self.requests:
            return None
        more = self.requests_in_all is not None and self.requests_in_all > self.requests
        noun = "request" if self.requests == 1 and not more else "requests"
        of = f" of {self.requests_in_all}" if more else ""
        limit = f" of {self.max_body_bytes:,} allowed" if self.max_body_bytes else ""
        size = f"at most {self.largest_bytes:,} bytes{limit}"
        return f"{self.requests}{of} {noun} in {self.seconds:.1f} s, {size}"

    def _rows_text(self) -> str | None:
        if self.rows is None:
            return None
        rejected = f", {self.rejects} rejected" if self.rejects else ""
        most = f" to {self.rows_max}" if self.rows_max is not None else " or more"
        compared = "" if self.verdict != "answers" else ", of all requests"
        return f"{self.rows} offers{rejected} (expected: {self.rows_min}{most}{compared})"


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The probes in the order of their sources, and what most of those that failed have in common."""

    probes: tuple[Probe, ...]
    diagnosis: Diagnosis | None

    @property
    def asked(self) -> int:
        """How many sources were asked."""
        return sum(probe.verdict != "skipped" for probe in self.probes)

    @property
    def failed(self) -> int:
        """How many of them would give a refresh no prices."""
        return sum(probe.verdict == "fails" for probe in self.probes)

    def lines(self) -> list[str]:
        """A line per source, those that failed alike in one, and what the verdicts mean."""
        shared = self.diagnosis
        alike = shared.sources if shared else ()
        shown = [probe for probe in self.probes if probe.source not in alike]
        used = {probe.verdict for probe in shown}
        return [
            *([shared.line(self.asked, "--format json has each error")] if shared else []),
            *(probe.line() for probe in shown),
            *(f"{verdict}: {meaning}" for verdict, meaning in MEANINGS.items() if verdict in used),
            *([_LOOK_THROUGH] if any(probe.saved_to for probe in self.probes) else []),
        ]

    def table(self) -> Result:
        """The probes with a column per field."""
        numbers = {"status", "largest_bytes", "max_body_bytes", "requests", "requests_in_all"}
        numbers |= {"rows", "rejects", "rows_min", "rows_max", "evidence_age_days"}
        names = tuple(each.name for each in fields(Probe))
        types = tuple("INTEGER" if name in numbers else "VARCHAR" for name in names)
        return Result(names, types, [tuple(getattr(each, name) for name in names) for each in self.probes])


@dataclass(slots=True)
class _Plan:
    """What is asked of one source: its first request alone, or all. ``total`` counts what a visit begins
    with, once it has been asked."""

    config: SourceConfig
    module: ModuleType
    whole: bool
    total: int | None = field(default=None)

    @property
    def asked_config(self) -> SourceConfig:
        return self.config if self.whole else self.config.model_copy(update={"paging": None})

    def asked_module(self) -> ModuleType:
        """The source's module; for its first request alone, without what the answer leads to."""
        if self.whole:
            return self.module
        module = ModuleType(self.module.__name__)
        if hasattr(self.module, "redact"):
            module.__dict__["redact"] = self.module.redact
        module.__dict__["requests"] = self._first
        return module

    def _first(self, config: SourceConfig, environment: Mapping[str, str]) -> list[Request]:
        requests = first_requests(self.config, self.module, environment)
        self.total = len(requests)
        return sorted(requests, key=lambda request: request.optional)[:1]


def examine_live(
    home: Home,
    *,
    names: Sequence[str] = (),
    now: datetime,
    environment: Mapping[str, str],
    save: Path | None = None,
    pages: str | None = None,
    progress: Progress = no_progress,
    limits: Limits | None = None,
) -> LiveReport:
    """Ask the sources (all by default), in parallel, and say what they answered.

    ``save`` keeps the answers of whole visits as DIR/<source>/; ``pages`` is the URL of a replay server that
    is asked in place of the providers. ``now`` is in UTC. Raises GpufareError when it cannot begin.
    """
    if pages is not None and not is_url(pages):
        raise RefreshError(f"--pages {pages}: doctor --live takes the URL of a replay server")
    chosen = chosen_sources(names, pages)
    if save is not None:
        check_free(save, chosen)
    plans = {
        config.name: _Plan(config, source_module(config.name), whole=save is not None) for config in chosen
    }
    choices = read_choices(home)
    off = [each.name for each in chosen if pages is None and why_off(each, choices, environment) is not None]
    asked = [each for each in chosen if each.name not in off and is_asked(each, environment)]
    with tempfile.TemporaryDirectory(prefix="gpufare-doctor-") as folder:
        apart = _home_apart(home, Path(folder))
        noun = "source" if len(asked) == 1 else "sources"
        progress(f"asking {len(asked)} {noun}, {'whole visits' if save else 'one request each'}")
        captures = capture_live(
            [plan.asked_config for plan in plans.values()],
            now.date(),
            Archive(apart.archive),
            environment,
            replay_url=pages,
            progress=progress,
            limits=limits,
            module_of=lambda name: plans[name].asked_module(),
        )
        outcomes = [record_day(each, now.date(), [captures[each.name]], apart) for each in chosen]
        probes = [
            _probe(plans[outcome.source], captures[outcome.source], outcome, apart, now, environment, save)
            for outcome in outcomes
        ]
        return LiveReport(tuple(probes), diagnosis(outcomes, pages))


def _home_apart(home: Home, folder: Path) -> Home:
    """A home that is thrown away, with the user's permissions and the newest exchange rates."""
    apart = Home(folder / "home")
    apart.root.mkdir()
    try:
        shutil.copyfile(home.permissions, apart.permissions)
    except FileNotFoundError:
        pass
    except OSError:
        apart.permissions.touch()  # one that cannot be read is one that is damaged: nothing is asked
    rates = sorted(home.exchange_rates.glob("????-??-??.json"))[-1:]
    if rates:
        apart.exchange_rates.mkdir(parents=True)
        with suppress(OSError):  # prices in other currencies are then rejects, with that reason
            shutil.copyfile(rates[0], apart.exchange_rates / rates[0].name)
    return apart


def _probe(
    plan: _Plan,
    capture: Capture,
    outcome: Outcome,
    apart: Home,
    now: datetime,
    environment: Mapping[str, str],
    save: Path | None,
) -> Probe:
    config = plan.config
    answers = Archive(apart.archive).answers(capture) if capture.capture_id is not None else []
    result = result_of(outcome)
    verdict = _verdict(plan, result, outcome, answers)
    sent = [entry for entry in capture.entries if entry.sent]
    saved, not_saved = None, None
    try:
        if save is not None and sent:
            saved = save_pages(save / config.name, capture, Archive(apart.archive), config, environment)
    except GpufareError as error:
        not_saved = str(error)
    fine = verdict in ("works", "answers")
    reasons = (None if fine else _reason(outcome), not_saved)
    whole_visit = f"`gpufare doctor --live --source {config.name} --save DIR` makes the whole visit"
    step = whole_visit if verdict == "unsure" else next_step(result, outcome.code, config)
    return Probe(
        source=config.name,
        verdict=verdict,
        result=SourceResult.FRESH if fine else result,
        meaning=MEANINGS[verdict],
        remedy="" if fine or step is None else step,
        reason="; ".join(reason for reason in reasons if reason) or None,
        **_of_answer(config, capture, result),
        requests=len(sent),
        requests_in_all=_in_all(plan, capture, answers),
        seconds=capture.duration_seconds if sent else None,
        max_body_bytes=config.max_body_bytes if sent else None,
        **_of_reading(config, outcome, answers, apart, now),
        evidence=f"{config.evidence.level} {config.evidence.date}",
        evidence_age_days=(now.date() - config.evidence.date).days,
        saved_to=str(saved) if saved else None,
    )


def _verdict(plan: _Plan, result: SourceResult, outcome: Outcome, answers: Sequence[Answer]) -> Verdict:
    if not result.asked:
        return "skipped"
    if answers and _is_part(plan, answers):
        read = result in (SourceResult.FRESH, SourceResult.DOUBTED)
        return "answers" if read else "unsure"
    if result is SourceResult.FRESH:
        return "works"
    return "partly" if outcome.accepted else "fails"


def _is_part(plan: _Plan, answers: Sequence[Answer]) -> bool:
    """Whether a visit would make more requests than the one that was made."""
    return not plan.whole and ((plan.total or 0) > 1 or _more_follow(plan, answers))


def _more_follow(plan: _Plan, answers: Sequence[Answer]) -> bool:
    try:
        for answer in answers:
            if plan.config.paging is not None:
                return next_page(Request(answer.url), answer, plan.config.paging) is not None
            if hasattr(plan.module, "next_requests") and plan.module.next_requests(answer, plan.config):
                return True
    except Exception:  # an answer may be anything; its reader has said so
        return False
    return False


def _in_all(plan: _Plan, capture: Capture, answers: Sequence[Answer]) -> int | None:
    if plan.whole:
        return len(capture.entries) or None
    return plan.total + _more_follow(plan, answers) if plan.total is not None else None


def _reason(outcome: Outcome) -> str | None:
    """In the words of the record; of a source that was not asked, without the code before them."""
    texts = dict.fromkeys(text for text in (outcome.reason, outcome.error) if text)
    return ": ".join(texts).removeprefix("needs_key: ") or None


def _of_answer(config: SourceConfig, capture: Capture, result: SourceResult) -> dict[str, Any]:
    """Of the request that decided: the first that failed, or the first of all."""
    entries = [entry for entry in capture.entries if not entry.optional] or list(capture.entries)
    failed = [entry for entry in entries if not entry.usable] if result is not SourceResult.FRESH else []
    entry = next(iter(failed or entries), None)
    if entry is None or not result.asked:
        return {}
    kind = entry.headers.get("content-type", "").split(";")[0].strip()
    return {
        "robots": _robots_text(config, entry),
        "status": entry.status if entry.sent else None,
        "host": host_of(entry.final_url or entry.url),
        "content_type": kind or None,
        "largest_bytes": max(each.bytes for each in capture.entries),
    }


def _robots_text(config: SourceConfig, entry: Entry) -> str:
    if config.is_api(entry.url):
        return "an API: robots.txt does not apply"
    if entry.outcome is OutcomeCode.ROBOTS_DISALLOWED:
        return "robots.txt disallows it"
    if (entry.error or "").startswith("robots.txt could not be read"):
        return "robots.txt could not be read"
    return "robots.txt allows it" if entry.sent else "robots.txt was not asked"


def _of_reading(
    config: SourceConfig, outcome: Outcome, answers: Sequence[Answer], apart: Home, now: datetime
) -> dict[str, Any]:
    if not answers:
        return {}
    read: dict[str, Any] = {"rows": outcome.rows, "rejects": outcome.rejects}
    if config.kind == "prices":
        read |= {"rows_min": config.expect.rows_min, "rows_max": config.expect.rows_max}
        try:
            built = read_answers(answers, config, Records(apart).usd_rates(now.date()))
        except GpufareError:
            return read
        if config.expect.must_have:
            read["missing_gpus"] = ", ".join(missing_cards(built.offers, config))
    else:
        read |= {"rows_min": 1}
    return read
