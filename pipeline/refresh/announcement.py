"""What a live refresh says before it asks: how many sources, for how long, and what keys would add."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.capture.archive import Archive
from pipeline.capture.http.secrets import WatchedEnvironment
from pipeline.capture.permissions import read_choices, why_off
from pipeline.capture.visit import MAX_PARALLEL, first_requests, sharing_hosts
from pipeline.catalog.source_config import SourceConfig, asked_configs
from pipeline.contracts.hosts import host_of
from pipeline.contracts.listing import Request
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.next_steps import key_text
from pipeline.refresh.permissions import off_lines
from pipeline.sources import source_module


@dataclass(frozen=True, slots=True)
class _Visit:
    """What a visit to a source takes. ``measured``: its last one took so long; else it is the least that its
    first requests take, which the host's speed and further pages add to."""

    config: SourceConfig
    requests: int
    seconds: float
    measured: bool


def announcement(chosen: Sequence[SourceConfig], home: Home, environment: Mapping[str, str]) -> list[str]:
    """One line on any day, and all that can be said until there is a first accepted day."""
    choices = read_choices(home)
    asked = [config for config in chosen if is_asked(config, environment)]
    asked = [config for config in asked if why_off(config, choices, environment) is None]
    lines = [_whatis_asked(asked, home, environment)]
    if any(Records(home).accepted_days(name) for name in asked_configs()):
        return lines
    return [
        *lines,
        *off_lines(chosen, home, environment),
        *_what_keys_add(chosen, environment),
    ]


def is_asked(config: SourceConfig, environment: Mapping[str, str]) -> bool:
    """Whether a source could be asked: it is not retired, and has the key without which it cannot be."""
    return config.disabled is None and (config.has_key(environment) or not config.needs_key)


def _whatis_asked(asked: Sequence[SourceConfig], home: Home, environment: Mapping[str, str]) -> str:
    keyed = [config.name for config in asked if config.has_key(environment)]
    if not asked:
        return "asking no source"
    archive = Archive(home.archive)
    visits = {config.name: _visit(config, archive, environment) for config in asked}
    seconds = seconds_in_parallel(
        [sum(visits[config.name].seconds for config in group) for group in sharing_hosts(list(asked))]
    )
    longest = max(visits.values(), key=lambda visit: visit.seconds)
    about = "about" if all(visit.measured for visit in visits.values()) else "at least"
    keyless = len(asked) - len(keyed)
    noun = "source" if keyless == 1 else "sources"
    parts = [f"{keyless} {noun} without a key"] if keyless else []
    parts += [f"{', '.join(keyed)} with your keys"] if keyed else []
    number = f"{longest.requests} requests {longest.config.spacing_seconds:g} s apart"
    why = f"; {longest.config.name} takes the longest: {number}" if longest.requests > 1 else ""
    # A visit of one request takes no pauses, and how long the host takes is not known.
    duration = f": {about} {_duration_text(seconds)}{why}" if seconds > 0 else ""
    return f"asking {' and '.join(parts)}{duration}"


def _visit(config: SourceConfig, archive: Archive, environment: Mapping[str, str]) -> _Visit:
    try:
        requests = first_requests(config, source_module(config.name), WatchedEnvironment(environment))
    except Exception:  # the source's own code: its visit says what is wrong
        requests = []
    last = archive.latest_capture(config.name)
    if last is not None and last.replayed_from is None:
        return _Visit(config, len(last.entries), last.duration_seconds, measured=True)
    return _Visit(config, len(requests), _least_seconds(requests, config), measured=False)


def _least_seconds(requests: Sequence[Request], config: SourceConfig) -> float:
    """The pauses between requests to the same host, whose robots.txt is asked too unless it is an API's."""
    turns = Counter(host_of(request.url) for request in requests)
    for host in {host_of(request.url) for request in requests if not config.is_api(request.url)}:
        turns[host] += 1
    return config.spacing_seconds * sum(count - 1 for count in turns.values())


def seconds_in_parallel(durations: Sequence[float]) -> float:
    """How long MAX_PARALLEL workers take, who take the next when they are done with one."""
    free_at = [0.0] * MAX_PARALLEL
    for duration in durations:
        first = free_at.index(min(free_at))
        free_at[first] += duration
    return max(free_at)


def _duration_text(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"


def _what_keys_add(chosen: Sequence[SourceConfig], environment: Mapping[str, str]) -> Iterator[str]:
    for config in chosen:
        if config.terms.automated == "forbidden":
            continue  # its key turns it on, as the line of what is off says
        if config.disabled is None and config.coverage.with_key and not config.has_key(environment):
            yield f"a key would add to {config.name}: {config.coverage.with_key}; set {key_text(config)}"
