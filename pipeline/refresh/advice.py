"""Advice on failed sources: the next step for each source, and the cause that many of them share."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.capture.http.proxy_settings import DOCUMENT, PROXY_VARIABLE
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult

CERTIFICATES = "SSL_CERT_FILE"

FEWEST_ALIKE = 3
"""If fewer sources than this fail alike, it may be chance."""

_NOT_NOW = re.compile(r"certificate (?:is not yet valid|has expired)")
_PATH = re.compile(r"/\S+")


def next_step(result: SourceResult, code: OutcomeCode | None, config: SourceConfig) -> str | None:
    """Return the next step for a source's result; None if nothing needs to be done."""
    # If the source gave prices, the code belongs to a request that did not decide the result.
    advice = _BY_CODE.get(code) if code and code.result is result else None
    step = (advice and advice.step) or _BY_RESULT.get(result)
    if step is None:
        return None
    check = f"check the key in {' and '.join(config.key_variables)}, where it is set; else "
    check_key = check if config.key_variables else ""
    return step.format(c=config, check_key=check_key, key=key_text(config))


def next_step_of(outcome: Outcome) -> str | None:
    """Return the next step for an attempt; None if nothing needs to be done."""
    return next_step(outcome.result, outcome.code, source_config(outcome.source))


def key_text(config: SourceConfig) -> str:
    """Return the variables to set for a source's key, and where to get the key."""
    origin = config.coverage.key_from
    return " and ".join(config.key_variables) + (f": {origin}" if origin else "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause that failed sources share, and the next step."""

    what: str
    step: str
    sources: tuple[str, ...]
    all_asked: bool

    def line(self, asked: int, where: str) -> str:
        """Return the diagnosis in one line; ``asked`` is the number of sources asked, and ``where`` says
        where to find each source's error."""
        who = f"all {asked}" if self.all_asked else f"{len(self.sources)} of {asked}"
        names = "" if self.all_asked else f" ({', '.join(self.sources)})"
        return f"{who} sources asked failed alike: {self.what}{names} -> {self.step}; {where}"


def diagnosis(outcomes: Sequence[Outcome], replay_url: str | None = None) -> Diagnosis | None:
    """Return the cause shared by more than half of the asked sources, and by at least FEWEST_ALIKE of them;
    None if there is no such cause. ``replay_url`` is the server that was asked instead of the providers."""
    asked = [outcome for outcome in outcomes if outcome.result.asked]
    alike: dict[str, list[tuple[Outcome, str, str | None]]] = defaultdict(list)
    for outcome in asked:
        if cause := _cause(outcome, replay_url):
            alike[_PATH.sub("", cause[0].replace(outcome.source, ""))].append((outcome, *cause))
    most = max(alike.values(), key=len, default=[])
    if len(most) < FEWEST_ALIKE or 2 * len(most) <= len(asked):
        return None
    first, what, step = most[0]
    steps = {outcome.source: next_step_of(outcome) or "" for outcome, *_ in most}
    begin = "" if len(set(steps.values())) == 1 else f"begin with {first.source}: "
    return Diagnosis(
        what, step or begin + steps[first.source], tuple(steps), all_asked=len(most) == len(asked)
    )


def _cause(outcome: Outcome, replay_url: str | None) -> tuple[str, str | None] | None:
    """Return why a source failed, and the next step if many fail that way; None if the source did not fail,
    or failed because of its answer."""
    result, code, error = outcome.result, outcome.code, outcome.error or outcome.reason or ""
    if outcome.accepted or result is SourceResult.DOUBTED:
        return None
    if result is SourceResult.FAILED_HERE:
        return error, None
    if code is None:
        return None
    if replay_url and code in _SERVER_IS_DOWN:
        return f"{replay_url} does not answer ({code})", "start the replay server, or correct --pages"
    if code is OutcomeCode.TLS_ERROR and _NOT_NOW.search(error):
        what = "every certificate is out of date or not yet valid: this machine's clock is wrong"
        return what, "set the clock"
    advice = _BY_CODE.get(code, _Advice())
    return advice.of_many or code.sentence, advice.step_of_many


@dataclass(frozen=True, slots=True)
class _Advice:
    """The next step for a source whose request ended with a code; for many such sources, the shared cause,
    and the next step if it differs from the step for one source.

    Steps may contain ``{c.name}`` and other fields of a source's config, and ``{key}`` and ``{check_key}``.
    """

    step: str | None = None
    of_many: str | None = None
    step_of_many: str | None = None


_REPORT = "report it with the answer, kept in the home: archive/{c.name}"

REFRESH_AGAIN = "refresh again later today"

_ANOTHER_NETWORK = "try from another network: hosts refuse VPNs and data centres"

_UNCONNECTED = dict.fromkeys(
    (OutcomeCode.CONNECTION_REFUSED, OutcomeCode.CONNECTION_FAILED, OutcomeCode.CONNECT_TIMEOUT),
    _Advice(
        of_many="host names are resolved but no connection is made: a firewall blocks all but a proxy",
        step_of_many=f"set {PROXY_VARIABLE} to the proxy's address",
    ),
)

_SERVER_IS_DOWN = {*_UNCONNECTED, OutcomeCode.DNS_ERROR, OutcomeCode.TLS_ERROR}

_BY_CODE: Mapping[OutcomeCode, _Advice] = {
    **_UNCONNECTED,
    OutcomeCode.HTTP_403: _Advice(_ANOTHER_NETWORK, "the hosts forbid the requests (403)"),
    OutcomeCode.HTTP_404: _Advice("look for its new address, from {c.homepage}, and report it"),
    OutcomeCode.HTTP_429: _Advice("wait an hour before you refresh again"),
    OutcomeCode.HTTP_4XX: _Advice("{check_key}the request has to change: " + _REPORT),
    OutcomeCode.ROBOTS_DISALLOWED: _Advice(
        "save the page in a browser and read it with `gpufare read {c.name} FILE`: robots.txt is respected"
    ),
    OutcomeCode.WRONG_CONTENT_TYPE: _Advice(
        of_many="the answers are not prices but pages of another type, as hosts send to addresses that they "
        "block",
        step_of_many=_ANOTHER_NETWORK,
    ),
    OutcomeCode.ADDRESS_REFUSED: _Advice(
        "log in to the network if it asks for that, or choose another resolver; in a VPN with fake addresses "
        f"set {PROXY_VARIABLE} to its HTTP proxy ({DOCUMENT})",
        "host names lead to addresses that are not public: a captive portal, a resolver that blocks them, or "
        "a VPN with fake addresses",
    ),
    OutcomeCode.TLS_ERROR: _Advice(
        f"check this machine's clock; behind a proxy that opens TLS, set {CERTIFICATES} to a file with its "
        f"certificate ({DOCUMENT})",
        "no host could be verified over TLS: a proxy on the way opens TLS with its own certificate",
    ),
    OutcomeCode.PROXY_FAILED: _Advice("check the proxy's address, and whether the proxy runs"),
    OutcomeCode.PROXY_REFUSED: _Advice(
        f"put the proxy's name and password in its address ({DOCUMENT}), or ask whoever runs it to allow the "
        "hosts",
        "the proxy refuses the requests",
    ),
    OutcomeCode.DNS_ERROR: _Advice(
        "check this machine's network and resolver, and refresh again",
        "no host name could be resolved: no network, or no resolver",
        "connect this machine, check its DNS, and refresh again",
    ),
    OutcomeCode.REQUEST_LIMIT: _Advice("its list has grown beyond the limit: " + _REPORT),
    OutcomeCode.SOURCE_TIMEOUT: _Advice(
        "refresh again at another hour; time_limit_seconds in catalog/sources/{c.name}.yaml is the limit"
    ),
}

_BY_RESULT: Mapping[SourceResult, str] = {
    SourceResult.PARTIAL: f"{REFRESH_AGAIN}; if it stays so, " + _REPORT,
    SourceResult.DOUBTED: "compare with {c.homepage}; if the page says what was refused: gpufare confirm "
    "{c.name}",
    SourceResult.CHANGED: "its reader has to be adapted: " + _REPORT,
    SourceResult.REFUSED_BY_HOST: _REPORT,
    SourceResult.REFUSED_BY_US: _REPORT,
    SourceResult.UNREACHABLE: REFRESH_AGAIN,
    SourceResult.FAILED_HERE: "`gpufare doctor` examines this machine and its data",
    SourceResult.NEEDS_KEY: "set {key}",
}
