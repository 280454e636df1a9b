"""Enabling and disabling sources, and which of them are off and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from filelock import FileLock

from pipeline.capture.permissions import CHOICES, Choice, Choices, read_choices, why_off
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import replacing, set_aside
from pipeline.home.paths import Home
from pipeline.record.records import Records

LOCK_SECONDS = 30


class RetiredSourceError(GpufareError):
    """A source that is never asked was to be enabled: says why it is not."""


def enable(names: Sequence[str], home: Home, today: date, environment: Mapping[str, str]) -> list[str]:
    """Ask the sources from now on, whatever their terms; ``today`` is in UTC. Returns what to tell the user:
    what the terms say, where they are, and how to undo it.

    A source that is asked by default needs no permission: only an earlier "never" is forgotten.
    Raises UnknownSourceError and RetiredSourceError, with nothing changed, and UnwritableError.
    """
    chosen = [source_config(name) for name in dict.fromkeys(names)]
    for config in chosen:
        if config.disabled is not None:
            raise RetiredSourceError(f"{config.name} cannot be enabled: {config.disabled}")
    wanted = {
        config.name: Choice(asked=True, since=today) if config.terms.automated == "forbidden" else None
        for config in chosen
    }
    said = _change(home, wanted)
    return [*said, *(line for config in chosen for line in _enabled(config, environment))]


def disable(names: Sequence[str], home: Home, today: date) -> list[str]:
    """Never ask the sources until they are enabled again, also with a key. Returns what to tell the user.

    Raises UnknownSourceError, with nothing changed, and UnwritableError.
    """
    chosen = [source_config(name) for name in dict.fromkeys(names)]
    said = _change(home, {config.name: Choice(asked=False, since=today) for config in chosen})
    return said + [
        f"{config.name}: not asked any more, also with a key{_what_stays(config, home, today)}. "
        f"To undo it: gpufare sources enable {config.name}"
        for config in chosen
    ]


def _what_stays(config: SourceConfig, home: Home, today: date) -> str:
    last = max(Records(home).days_with_offers(config.name), default=None)
    if last is None or (today - last).days > config.stale_after_days:
        return ""
    return f"; its last prices stay ranked for {config.stale_after_days} days at most"


@dataclass(frozen=True, slots=True)
class Standing:
    """Sources by whether a live refresh asks them, and why not. While the user's choices cannot be read, no
    source is asked: those that are not retired are in ``off_by_terms``."""

    asked: Sequence[SourceConfig]
    off_by_terms: Sequence[SourceConfig]
    off_by_choice: Sequence[SourceConfig]
    without_key: Sequence[SourceConfig]
    retired: Sequence[SourceConfig]


def standing(chosen: Iterable[SourceConfig], choices: Choices, environment: Mapping[str, str]) -> Standing:
    """Tell the sources that a live refresh asks from those that are off."""
    all_chosen = list(chosen)
    live = [config for config in all_chosen if config.disabled is None]
    off = [config for config in live if why_off(config, choices, environment) is not None]
    allowed = [config for config in live if config not in off]
    without_key = [config for config in allowed if config.needs_key and not config.has_key(environment)]
    return Standing(
        asked=[config for config in allowed if config not in without_key],
        off_by_terms=[config for config in off if config.name not in choices.by_source],
        off_by_choice=[config for config in off if config.name in choices.by_source],
        without_key=without_key,
        retired=[config for config in all_chosen if config.disabled is not None],
    )


def off_lines(chosen: Sequence[SourceConfig], home: Home, environment: Mapping[str, str]) -> list[str]:
    """Which of the sources a live refresh does not ask, why, and how to turn them on: a line per reason."""
    choices = read_choices(home)
    if choices.problem:
        return [choices.problem]
    found = standing(chosen, choices, environment)
    by_terms, without_key = found.off_by_terms, found.without_key
    return [
        *_line("off by their terms", by_terms, "gpufare sources enable NAME", _or_set_keys(by_terms)),
        *_line("off because you disabled them", found.off_by_choice, "gpufare sources enable NAME"),
        *_line("off without a key", without_key, "set " + _keys(without_key)),
        *_line(
            "terms read again since you enabled them",
            [each for each in chosen if each.disabled is None and _is_older_than_terms(choices, each)],
            "gpufare sources enable NAME shows them and confirms your choice",
        ),
        *([f"retired: {', '.join(each.name for each in found.retired)}"] if found.retired else []),
    ]


def _is_older_than_terms(choices: Choices, config: SourceConfig) -> bool:
    """Whether the user's choice is older than what the catalogue has of the terms."""
    choice, read_on = choices.by_source.get(config.name), config.terms.read_on
    return choice is not None and choice.asked and read_on is not None and choice.since < read_on


def off_sources(
    configs: Iterable[SourceConfig], home: Home, environment: Mapping[str, str]
) -> dict[str, str]:
    """Why each source that is off is not asked, by name."""
    choices = read_choices(home)
    reasons = {config.name: why_off(config, choices, environment) for config in configs}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _change(home: Home, wanted: Mapping[str, Choice | None]) -> list[str]:
    """Keep choices in place of earlier ones; None forgets one. Says so where a file was damaged."""
    said: list[str] = []
    home.root.mkdir(parents=True, exist_ok=True)
    with FileLock(home.permissions_lock, timeout=LOCK_SECONDS):
        choices = read_choices(home)
        if choices.problem:
            said += _moved_aside(home)
        kept = {name: choice for name, choice in {**choices.by_source, **wanted}.items() if choice}
        with replacing(home.permissions) as temporary:
            temporary.write_bytes(CHOICES.dump_json(dict(sorted(kept.items())), indent=2) + b"\n")
    return said


def _moved_aside(home: Home) -> list[str]:
    with suppress(OSError):
        place = set_aside(home, home.permissions)
        return [f"{home.permissions} was damaged: it is now {place}, and what it said before is forgotten"]
    return [f"{home.permissions} was damaged, and what it said before is forgotten"]


def _enabled(config: SourceConfig, environment: Mapping[str, str]) -> Iterator[str]:
    terms = config.terms
    yield f"{config.name}: asked from now on. To undo it: gpufare sources disable {config.name}"
    yield f"  terms: {terms.url or 'no address is known'}"
    yield f"  {_VERDICTS[terms.automated]}{f' (read on {terms.read_on})' if terms.read_on else ''}"
    if terms.note:
        yield f"  {terms.note}"
    if config.needs_key and (missing := config.missing_keys(environment)):
        yield f"  it still needs a key: set {' and '.join(missing)}"


_VERDICTS = {
    "allowed": "they allow automated reading",
    "silent": "they say nothing of automated reading",
    "forbidden": "they forbid automated reading: whether you may is between you and the provider",
    "unknown": "nobody is known to have read them",
}


def _line(what: str, configs: Sequence[SourceConfig], remedy: str, more: str = "") -> list[str]:
    names = ", ".join(config.name for config in configs)
    return [f"{what}: {names}; {remedy}{more}"] if configs else []


def _or_set_keys(configs: Sequence[SourceConfig]) -> str:
    keyed = [config for config in configs if config.key_variables]
    return f", or set {_keys(keyed)}" if keyed else ""


def _keys(configs: Sequence[SourceConfig]) -> str:
    return ", ".join(f"{' and '.join(config.key_variables)} ({config.name})" for config in configs)
