"""The one thing to do about a source that gave no prices, or not all of them."""

from collections.abc import Callable, Mapping

from pipeline.capture.http.user_network import (
    ALLOW_VARIABLE,
    DOCUMENT,
    OPENABLE_NETWORKS,
    OpenableNetwork,
)
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.outcome import OutcomeCode, SourceResult

CERTIFICATES = "SSL_CERT_FILE"

Step = Callable[[SourceConfig], str]


def next_step(result: SourceResult, code: OutcomeCode | None, config: SourceConfig) -> str | None:
    """What to do about a source's result; None where nothing is to be done."""
    step = (_BY_CODE.get(code) if code and result in _OF_A_REQUEST else None) or _BY_RESULT.get(result)
    return step(config) if step else None


def key_text(config: SourceConfig) -> str:
    """The variables to set for a source's key, and where a user gets one."""
    origin = config.coverage.key_from
    return " and ".join(config.key_variables) + (f": {origin}" if origin else "")


def _examine(config: SourceConfig) -> str:
    return f"`gpufare doctor --live --source {config.name} --save DIR`"


def _step_of_network(openable: OpenableNetwork) -> Step:
    step = f"if you are behind {openable.whose}, set {ALLOW_VARIABLE}={openable.network} ({DOCUMENT})"
    return lambda c: step


_OF_A_REQUEST = frozenset(
    {
        SourceResult.CHANGED,
        SourceResult.REFUSED_BY_HOST,
        SourceResult.REFUSED_BY_US,
        SourceResult.UNREACHABLE,
    }
)
"""Results that a single request decides."""

_BY_CODE: Mapping[OutcomeCode, Step] = {
    OutcomeCode.HTTP_403: lambda c: "try from another network: hosts refuse VPNs and data centres",
    OutcomeCode.HTTP_429: lambda c: "wait an hour before you refresh again",
    OutcomeCode.HTTP_4XX: lambda c: (
        f"check the key in {' and '.join(c.key_variables)}, where it is set; else the request has to change: "
        f"{_examine(c)} keeps the answer for a report"
        if c.key_variables
        else f"the request has to change: {_examine(c)} keeps the answer for a report"
    ),
    OutcomeCode.ROBOTS_DISALLOWED: lambda c: (
        f"save the page in a browser and read it with `gpufare read {c.name} FILE`: robots.txt is kept to"
    ),
    OutcomeCode.HTTP_404: lambda c: f"look for its new address, from {c.homepage}, and report it",
    OutcomeCode.ADDRESS_REFUSED: lambda c: (
        "log in to the network if it asks for that, or choose another resolver: host names must lead to "
        "public addresses"
    ),
    **{code: _step_of_network(openable) for code, openable in OPENABLE_NETWORKS.items()},
    OutcomeCode.TLS_ERROR: lambda c: (
        f"check this machine's clock; behind a proxy that opens TLS, set {CERTIFICATES} to a file with its "
        f"certificate ({DOCUMENT})"
    ),
    OutcomeCode.PROXY_FAILED: lambda c: "check the proxy's address, and whether the proxy runs",
    OutcomeCode.PROXY_REFUSED: lambda c: (
        f"put the proxy's name and password in its address ({DOCUMENT}), or ask whoever runs it to allow the "
        "hosts"
    ),
    OutcomeCode.DNS_ERROR: lambda c: "check this machine's network and resolver, and refresh again",
    OutcomeCode.REQUEST_LIMIT: lambda c: f"its list has grown beyond the limit: {_examine(c)} for a report",
    OutcomeCode.SOURCE_TIMEOUT: lambda c: (
        f"refresh again at another hour; time_limit_seconds in catalog/sources/{c.name}.yaml is the limit"
    ),
}

_BY_RESULT: Mapping[SourceResult, Step] = {
    SourceResult.PARTIAL: lambda c: f"refresh again later today; if it stays so, {_examine(c)}",
    SourceResult.DOUBTED: lambda c: (
        f"compare with {c.homepage}; where the page says what was refused, confirm it in "
        f"catalog/sources/{c.name}.yaml (reviewed_prices, or expect)"
    ),
    SourceResult.CHANGED: lambda c: (
        f"its reader has to be adapted: {_examine(c)} keeps the page for a report"
    ),
    SourceResult.REFUSED_BY_HOST: lambda c: f"{_examine(c)} keeps the answer for a report",
    SourceResult.REFUSED_BY_US: lambda c: f"{_examine(c)} shows the answer's host, type and size",
    SourceResult.UNREACHABLE: lambda c: "refresh again later today",
    SourceResult.FAILED_HERE: lambda c: "`gpufare doctor` examines this machine and its data",
    SourceResult.NEEDS_KEY: lambda c: f"set {key_text(c)}",
}
