"""One cause for many failures: what sources that fail alike have in common, and what to do about it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.capture.http.user_network import OPENABLE_NETWORKS, PROXY_VARIABLE
from pipeline.catalog.source_config import configs
from pipeline.contracts.outcome import NOT_ASKED, Outcome, OutcomeCode, SourceResult
from pipeline.refresh.next_steps import next_step

FEWEST_ALIKE = 3
"""Fewer sources that fail alike may do so by chance."""

_NOT_NOW = re.compile(r"certificate (?:is not yet valid|has expired)")
_PATH = re.compile(r"/\S+")


def result_of(outcome: Outcome) -> SourceResult:
    """The result of an attempt, also of one that an earlier version recorded without it."""
    accepted = SourceResult.FRESH if outcome.accepted else SourceResult.DOUBTED
    return outcome.result or NOT_ASKED.get(outcome.status, accepted)


def was_asked(outcome: Outcome) -> bool:
    """Whether the source was asked: it is not retired, and does not lack a key or a permission."""
    return result_of(outcome).asked


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What sources that failed alike have in common, and what to do about it."""

    what: str
    step: str
    sources: tuple[str, ...]
    all_asked: bool

    def line(self, asked: int, where: str = "`gpufare sources` has each error") -> str:
        """The diagnosis in one line; ``asked`` is the number of all sources asked, ``where`` says where the
        sources' own errors are."""
        who = f"all {asked}" if self.all_asked else f"{len(self.sources)} of {asked}"
        names = "" if self.all_asked else f" ({', '.join(self.sources)})"
        return f"{who} sources asked failed alike: {self.what}{names} -> {self.step}; {where}"


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a source failed. Sources with the same ``key`` failed alike; ``step`` is None where the next step
    of one source is that of all."""

    key: str
    what: str
    step: str | None = None


def diagnosis(outcomes: Sequence[Outcome], replay_url: str | None = None) -> Diagnosis | None:
    """The cause that more than half of the asked sources have in common, at least FEWEST_ALIKE; None when
    there is no such cause. ``replay_url``: the server that was asked in place of the providers."""
    asked = [outcome for outcome in outcomes if was_asked(outcome)]
    failed = [(outcome, cause) for outcome in asked if (cause := _cause(outcome, replay_url))]
    if not failed:
        return None
    ((key, count),) = Counter(cause.key for _, cause in failed).most_common(1)
    if count < FEWEST_ALIKE or 2 * count <= len(asked):
        return None
    alike = [(outcome, cause) for outcome, cause in failed if cause.key == key]
    cause = alike[0][1]
    return Diagnosis(
        cause.what,
        cause.step or _shared_step([outcome for outcome, _ in alike]),
        tuple(outcome.source for outcome, _ in alike),
        all_asked=count == len(asked),
    )


def _cause(outcome: Outcome, replay_url: str | None) -> _Cause | None:
    """Why a source failed; None where it did not, or where its own answer is the reason."""
    result, code, error = result_of(outcome), outcome.code, outcome.error or outcome.reason or ""
    if outcome.accepted or result is SourceResult.DOUBTED:
        return None
    if result is SourceResult.FAILED_HERE:
        return _Cause(_PATH.sub("", error.replace(outcome.source, "")), error)
    if code is None:
        return None
    if replay_url and code in _UNCONNECTED | {OutcomeCode.DNS_ERROR, OutcomeCode.TLS_ERROR}:
        what = f"{replay_url} does not answer ({code})"
        return _Cause(what, what, "start the replay server, or correct --pages")
    if code is OutcomeCode.TLS_ERROR and _NOT_NOW.search(error):
        what = "every certificate is out of date or not yet valid: this machine's clock is wrong"
        return _Cause(what, what, "set the clock")
    what, step = _OF_ALL.get(code, (code.sentence, None))
    return _Cause(what if code in _OF_ALL else f"{result} {code}", what, step)


def _shared_step(outcomes: Sequence[Outcome]) -> str:
    """The next step of all the sources; where each has another one, that of the first, with its name."""
    steps = {
        outcome.source: next_step(result_of(outcome), outcome.code, configs()[outcome.source]) or ""
        for outcome in outcomes
    }
    name, step = next(iter(steps.items()))
    return step if len(set(steps.values())) == 1 else f"begin with {name}: {step}"


_UNCONNECTED = frozenset(
    {OutcomeCode.CONNECTION_REFUSED, OutcomeCode.CONNECTION_FAILED, OutcomeCode.CONNECT_TIMEOUT}
)

_OF_ALL: Mapping[OutcomeCode, tuple[str, str | None]] = {
    OutcomeCode.DNS_ERROR: (
        "no host name could be resolved: there is no network, or no resolver",
        "connect this machine, check its DNS, and refresh again",
    ),
    OutcomeCode.ADDRESS_REFUSED: (
        "host names lead to addresses that are not public: a captive portal, or a resolver that blocks them",
        None,
    ),
    **{
        code: (
            f"the resolver gives addresses in {openable.network} for public hosts: {openable.whose}",
            None,
        )
        for code, openable in OPENABLE_NETWORKS.items()
    },
    OutcomeCode.TLS_ERROR: (
        "no host could be verified over TLS: a proxy on the way opens TLS with its own certificate",
        None,
    ),
    OutcomeCode.PROXY_REFUSED: ("the proxy refuses the requests", None),
    OutcomeCode.HTTP_403: ("the hosts forbid the requests (403)", None),
    OutcomeCode.WRONG_CONTENT_TYPE: (
        "the answers are not prices but pages of another type, as hosts send to addresses that they block",
        "try from another network: hosts refuse VPNs and data centres",
    ),
    **dict.fromkeys(
        _UNCONNECTED,
        (
            "host names are resolved but no connection is made: a firewall blocks all but a proxy",
            f"set {PROXY_VARIABLE} to the proxy's address",
        ),
    ),
}
"""What it means that many sources fail with a code, and what to do where that is not the step of each."""
