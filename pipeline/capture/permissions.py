"""Permission to ask a source: from its terms of use, the user's choice, or the user's own key.

Only requests need permission; saved answers (from pages, the archive or a replay server) do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.catalog.source_config import SourceConfig
from pipeline.home.paths import Home


class Choice(BaseModel):
    """A user's choice and its date (UTC): to ask a source despite its terms, or never to ask it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    asked: bool
    since: date


CHOICES = TypeAdapter(dict[str, Choice])
"""Schema of <home>/permissions.json: the choices, keyed by source."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choices, keyed by source. If the file that stores them cannot be used, ``problem`` says why,
    and no source is asked, because the user may have disabled any of them."""

    by_source: Mapping[str, Choice] = field(default_factory=dict)
    problem: str | None = None


def read_choices(home: Home) -> Choices:
    """Return the user's choices. Never raises: a file that cannot be used is reported as a ``problem``."""
    try:
        return Choices(CHOICES.validate_json(home.permissions.read_bytes()))
    except FileNotFoundError:
        return Choices()
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    except ValidationError:
        problem = "it is damaged"
    return Choices(
        problem=f"{home.permissions}: {problem}. gpufare does not know which sources you disabled, so it "
        "asks none: delete the file, or choose again with gpufare sources enable NAME or disable NAME"
    )


def why_off(config: SourceConfig, choices: Choices, environment: Mapping[str, str]) -> str | None:
    """Return the reason why a source is not asked, and how to turn it on, or None if the source may be asked.

    The user's choice decides. Without a choice, a source whose terms forbid automated reading is asked only
    with the user's own key. If a source always needs a key, a missing key is reported elsewhere.
    """
    if choices.problem is not None:
        return (
            "permissions.json in the data home cannot be read, and you may have disabled this source: delete "
            "that file, or choose again with gpufare sources enable or disable"
        )
    if (choice := choices.by_source.get(config.name)) is not None:
        return None if choice.asked else f"you disabled it on {choice.since}: {_enable(config)}"
    if config.terms.automated != "forbidden" or config.needs_key or config.has_key(environment):
        return None
    keys = f", or set {' and '.join(config.key_variables)}" if config.key_variables else ""
    return (
        f"its terms are reported to forbid automated reading ({config.terms.url or 'no address'}, "
        f"read on {config.terms.read_on}): {_enable(config)}{keys}"
    )


def _enable(config: SourceConfig) -> str:
    return f"gpufare sources enable {config.name}"
