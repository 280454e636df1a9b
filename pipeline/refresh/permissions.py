"""Enables and disables sources, and explains why sources are off."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date

from pipeline.capture.permissions import (
    CHOICES,
    Choice,
    Choices,
    read_choices,
    why_off,
)
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import choices_lock, replacing, set_aside
from pipeline.home.paths import Home
from pipeline.record.records import Records


def enable(names: Sequence[str], home: Home, today: date, environment: Mapping[str, str]) -> list[str]:
    """Allow the sources to be asked, regardless of their terms; ``today`` is in UTC. Return lines for the
    user on the terms, the URL of the terms, and how to undo this.

    A source that is asked by default needs no permission: only an earlier "never" is deleted.
    Raises GpufareError for an unknown or retired source, without changing anything.
    """
    chosen = [source_config(name) for name in dict.fromkeys(names)]
    for config in chosen:
        if config.disabled is not None:
            raise GpufareError(f"{config.name} cannot be enabled: {config.disabled}")
    wanted = {
        config.name: Choice(asked=True, since=today) if config.terms.automated == "forbidden" else None
        for config in chosen
    }
    return [*_change(home, wanted), *(line for config in chosen for line in _enabled(config, environment))]


def disable(names: Sequence[str], home: Home, today: date) -> list[str]:
    """Stop asking the sources until they are enabled again, even if a key is set. Return lines for the user.

    Raises UnknownSourceError, without changing anything, and UnwritableError.
    """
    chosen = [source_config(name) for name in dict.fromkeys(names)]
    lines = _change(home, {config.name: Choice(asked=False, since=today) for config in chosen})
    return lines + [
        f"{config.name}: disabled, even if a key is set{_remaining_prices(config, home, today)}. "
        f"To undo it: gpufare sources enable {config.name}"
        for config in chosen
    ]


def _remaining_prices(config: SourceConfig, home: Home, today: date) -> str:
    last = max(Records(home).days_with_offers(config.name), default=None)
    if last is None or (today - last).days > config.stale_after_days:
        return ""
    return f"; its last prices stay ranked for {config.stale_after_days} days at most"


def is_asked(config: SourceConfig, choices: Choices, environment: Mapping[str, str]) -> bool:
    """True if a live refresh asks a source: it is permitted and not retired, and any key it needs is set."""
    has_key = not config.needs_key or config.has_key(environment)
    return config.disabled is None and has_key and why_off(config, choices, environment) is None


def off_lines(chosen: Sequence[SourceConfig], home: Home, environment: Mapping[str, str]) -> list[str]:
    """Return the sources that a live refresh does not ask, with the reason and how to turn them on, in one
    line per reason."""
    choices = read_choices(home)
    if choices.problem:
        return [choices.problem]
    retired = [each for each in chosen if each.disabled is not None]
    live = [each for each in chosen if each.disabled is None]
    off = [each for each in live if why_off(each, choices, environment) is not None]
    by_terms = [each for each in off if each.name not in choices.by_source]
    by_choice = [each for each in off if each.name in choices.by_source]
    without_key = [each for each in live if each not in off and not is_asked(each, choices, environment)]
    enable = "gpufare sources enable NAME"
    return [
        *_line("off because of their terms", by_terms, f"; {enable}{_or_set_keys(by_terms)}"),
        *_line("off because you disabled them", by_choice, f"; {enable}"),
        *_line("off without a key", without_key, f"; set {_keys(without_key)}"),
        *_line("retired", retired),
    ]


def off_sources(
    configs: Iterable[SourceConfig], home: Home, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return why each source that is off is not asked, keyed by name."""
    choices = read_choices(home)
    reasons = {config.name: why_off(config, choices, environment) for config in configs}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _change(home: Home, wanted: Mapping[str, Choice | None]) -> list[str]:
    """Replace the given sources' choices (None deletes one). Return a warning if the file was damaged."""
    lines: list[str] = []
    with choices_lock(home):
        choices = read_choices(home)
        if choices.problem:
            place = ""
            with suppress(OSError):
                place = f": it is now {set_aside(home, home.permissions)}"
            lines.append(f"{home.permissions} was damaged{place}; earlier choices are lost")
        kept = {name: choice for name, choice in {**choices.by_source, **wanted}.items() if choice}
        with replacing(home.permissions) as temporary:
            temporary.write_bytes(CHOICES.dump_json(dict(sorted(kept.items())), indent=2) + b"\n")
    return lines


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
    "silent": "they do not mention automated reading",
    "forbidden": "they forbid automated reading: whether you may is between you and the provider",
    "unknown": "they have not been read",
}


def _line(what: str, configs: Sequence[SourceConfig], remedy: str = "") -> list[str]:
    return [f"{what}: {', '.join(config.name for config in configs)}{remedy}"] if configs else []


def _or_set_keys(configs: Sequence[SourceConfig]) -> str:
    keyed = [config for config in configs if config.key_variables]
    return f", or set {_keys(keyed)}" if keyed else ""


def _keys(configs: Sequence[SourceConfig]) -> str:
    return ", ".join(f"{' and '.join(config.key_variables)} ({config.name})" for config in configs)
