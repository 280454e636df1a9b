"""Whether a source may be asked: by its terms of use, by the user's own choice, or by the user's own key.

Asking is what needs a permission. Answers that are there already (saved pages, the archive, a replay server)
are read without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.catalog.source_config import SourceConfig
from pipeline.home.paths import Home


class Choice(BaseModel):
    """What the user said of a source, and on which day (UTC): to ask it despite its terms, or never."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    asked: bool
    since: date


CHOICES = TypeAdapter(dict[str, Choice])
"""The content of <home>/permissions.json, by source."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choices by source. ``problem`` says why the file with them cannot be used: what the user
    disabled is then not known, and no source is asked."""

    by_source: Mapping[str, Choice] = field(default_factory=dict)
    problem: str | None = None


def read_choices(home: Home) -> Choices:
    """What the user enabled and disabled. Never raises: a file that cannot be used is a ``problem``."""
    try:
        return Choices(CHOICES.validate_json(home.permissions.read_bytes()))
    except FileNotFoundError:
        return Choices()
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    except ValidationError:
        problem = "it is damaged"
    return Choices(
        problem=f"{home.permissions}: {problem}, so that what you disabled is not known, and no source "
        "is asked: delete it, or choose again with gpufare sources enable NAME or disable NAME"
    )


def why_off(config: SourceConfig, choices: Choices, environment: Mapping[str, str]) -> str | None:
    """Why a source is not asked, and how to turn it on; None when it may be.

    A user's choice decides; where the choices cannot be read, no source is asked. Without a choice, a source
    whose terms forbid automated reading is asked only with a key of the user's own; where there is nothing to
    ask without a key, the lack of it is not reported here.
    """
    if choices.problem is not None:
        return (
            "permissions.json in the data home cannot be read, so that it is not known whether you disabled "
            "this source: delete that file, or choose again with gpufare sources enable or disable"
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
