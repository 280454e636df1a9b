"""One cause for many failures: what is wrong with this machine's network when sources fail alike."""

import ipaddress
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.capture.http.user_network import ALLOW_VARIABLE, PROXY_VARIABLE
from pipeline.contracts.capture import Outcome, OutcomeCode, SourceResult
from pipeline.daily.next_steps import CERTIFICATES

FEWEST_ALIKE = 3
"""Fewer sources that fail alike may do so by chance."""

SHARED_NETWORKS = tuple(ipaddress.ip_network(block) for block in ("198.18.0.0/15", "100.64.0.0/10"))
"""What fake-IP VPNs and carriers' NAT give as the addresses of public hosts."""

_RESOLVED = re.compile(r"resolves to ([0-9a-f.:]+),")
_NOT_NOW = re.compile(r"certificate (?:is not yet valid|has expired)")

_UNCONNECTED = frozenset(
    {
        OutcomeCode.CONNECTION_REFUSED,
        OutcomeCode.CONNECTION_FAILED,
        OutcomeCode.CONNECT_TIMEOUT,
        OutcomeCode.READ_TIMEOUT,
    }
)


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


def diagnosis(outcomes: Sequence[Outcome], replay_url: str | None = None) -> Diagnosis | None:
    """The cause that more than half of the asked sources have in common, at least FEWEST_ALIKE; None when
    there is no such cause. ``replay_url``: the server that was asked in place of the providers."""
    asked = [outcome for outcome in outcomes if outcome.result is None or outcome.result.asked]
    causes = {outcome.source: cause for outcome in asked if (cause := _cause(outcome, replay_url))}
    if not causes:
        return None
    (cause, count), *_ = Counter(causes.values()).most_common(1)
    if count < FEWEST_ALIKE or 2 * count <= len(asked):
        return None
    alike = tuple(source for source, each in causes.items() if each == cause)
    return Diagnosis(*cause, alike, all_asked=count == len(asked))


def _cause(outcome: Outcome, replay_url: str | None) -> tuple[str, str] | None:
    """What failed and what to do about it, of a source that got no answer; None for what hosts do."""
    if outcome.accepted or outcome.result not in (SourceResult.UNREACHABLE, SourceResult.REFUSED_BY_US):
        return None
    code, error = outcome.code, outcome.error or ""
    if replay_url and code in _UNCONNECTED | {OutcomeCode.DNS_ERROR, OutcomeCode.TLS_ERROR}:
        return f"{replay_url} does not answer ({code})", "start the replay server, or correct --pages"
    if code is OutcomeCode.DNS_ERROR:
        return (
            "no host name could be resolved: there is no network, or no resolver",
            "connect this machine, check its DNS, and refresh again",
        )
    if code is OutcomeCode.ADDRESS_REFUSED:
        return _cause_of_addresses(error)
    if code is OutcomeCode.TLS_ERROR and _NOT_NOW.search(error):
        return (
            "every certificate is out of date or not yet valid: this machine's clock is wrong",
            "set the clock",
        )
    if code is OutcomeCode.TLS_ERROR:
        return (
            "no host could be verified over TLS: a proxy on the way opens TLS with its own certificate",
            f"set {CERTIFICATES} to a file that has the proxy's certificate",
        )
    if code is OutcomeCode.PROXY_FAILED:
        return (
            "the proxy could not be used",
            f"check the address in {PROXY_VARIABLE}, and whether the proxy runs",
        )
    if code is OutcomeCode.PROXY_REFUSED:
        return (
            "the proxy refuses the requests",
            f"give {PROXY_VARIABLE} the proxy's name and password, or ask whoever runs it to allow the hosts",
        )
    if code in _UNCONNECTED:
        return (
            "host names are resolved but no connection is made: a firewall blocks all but a proxy",
            f"set {PROXY_VARIABLE} to the proxy's address",
        )
    return None


def _cause_of_addresses(error: str) -> tuple[str, str] | None:
    """Of host names that lead to addresses that are not public."""
    found = _RESOLVED.search(error)
    try:
        address = ipaddress.ip_address(found[1]) if found else None
    except ValueError:
        address = None
    if address is None:
        return None
    for network in SHARED_NETWORKS:
        if address in network:
            return (
                f"the resolver gives addresses in {network} for public hosts, as a VPN with fake addresses "
                "or a carrier's NAT does",
                f"set {ALLOW_VARIABLE}={network}",
            )
    return (
        "host names lead to addresses that are not public: a captive portal, or a resolver that blocks them",
        "log in to the network, or choose another resolver",
    )
