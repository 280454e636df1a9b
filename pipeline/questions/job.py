"""A training job and the constraints on its answers."""

from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.catalog.job_settings import JobSetting, job_settings
from pipeline.contracts.amounts import amount_in, number_in
from pipeline.contracts.errors import GpufareError

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel


class JobError(GpufareError):
    """The question cannot be answered; the message names the part of the job that is wrong."""

    exit_code: ClassVar[int] = 2


class NoAnswerError(JobError):
    """Nothing is wrong with the job, but the published file has no answer to it."""

    exit_code: ClassVar[int] = 1


class Job:
    """A job, given by settings (``catalog/job_settings.csv``): names are checked here, values by the macros.
    ``config`` is the config.json from which the job's model was read, if any."""

    def __init__(self, config: Path | None = None, **settings: Any) -> None:
        """Raises JobError for an unknown setting, and for a value that no setting can have."""
        for name in settings:
            if name not in job_settings():
                raise JobError(f"a job has no setting {name!r}{_hint(name)}")
        self.config = config
        self.settings: dict[str, Any] = {
            name: _given(job_settings()[name], value) for name, value in settings.items() if value is not None
        }

    def but(self, **changes: Any) -> "Job":
        """Return the same job with other settings; None removes a setting."""
        return Job(self.config, **(self.settings | changes))

    def __getitem__(self, name: str) -> Any:
        """Return the value of a setting; None if the setting is open."""
        return self.settings.get(name)


def given_job(
    model: str | None, config: Path | None, settings: dict[str, Any]
) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the job, the model read from a config.json (None for a model in the catalogue), and notes on
    parts of the file that are not read. Raises JobError, and GivenModelError for a config.json that is not
    understood.
    """
    if config is None:
        return Job(model=model, **settings), None, []
    from pipeline.model.given_models import model_of_file

    given, left_out = model_of_file(config)
    job = Job(config, model=given.model, **settings)
    return job, given, [f"{config}: {line}" for line in left_out]


def _hint(name: str) -> str:
    other = [setting.setting for setting in job_settings().values() if setting.other_name == name]
    nearest = other or get_close_matches(name, job_settings(), n=3)
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""


def _given(setting: JobSetting, value: Any) -> Any:
    """Return a value in the form that the macros take and check: several names as one string, and text such
    as 100M, $20 or 24h as a number. Raises JobError."""
    if setting.kind in ("amount", "number", "whole") and isinstance(value, str):
        return _number_in(setting, value)
    if getattr(value, "ndim", None) == 0:  # a NumPy scalar
        return value.item()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise JobError(f"{setting.setting} must be text, not {name!r}")
    return ("; " if setting.kind == "machines" else ",").join(names)


def _number_in(setting: JobSetting, text: str) -> float:
    """Return the number in a text, in the setting's unit; a whole number is an integer. Raises JobError."""
    try:
        if setting.kind == "amount":
            return amount_in(text, setting.unit)
        is_whole = setting.kind == "whole"
        found = number_in(text, setting.unit, is_length=is_whole and setting.unit == "tokens")
    except ValueError as error:
        raise JobError(f"{setting.setting}: {error}") from error
    return int(found) if is_whole and found.is_integer() else found


def number(name: str, value: Any, unit: str = "") -> float:
    """Return a value as a number in ``unit``, a unit of job settings. Raises JobError."""
    if isinstance(value, str):
        try:
            return number_in(value, unit)
        except ValueError as error:
            raise JobError(f"{name}: {error}") from error
    if not isinstance(value, bool) and isinstance(value, Real | Decimal):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise JobError(f"{name} must be a number, not {value!r}")


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Return a value as a whole number of at least ``least``, in the unit of the job setting of this name, if
    there is one. Raises JobError."""
    setting = job_settings().get(name)
    if setting is not None and isinstance(value, str):
        value = _number_in(setting, value)
    amount = number(name, value)
    if not amount.is_integer():
        raise JobError(f"{name} must be a whole number, not {value}")
    if least is not None and amount < least:
        raise JobError(f"{name} must be at least {least}, not {value}")
    return int(amount)
