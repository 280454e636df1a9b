"""The arguments of tools as JSON schemas, made from the settings of a job, and the check of what is given."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pipeline.catalog.job_settings import JobSetting, job_settings
from pipeline.questions.job import Job, JobError, whole

Schema = dict[str, Any]

MOST_CHARACTERS = 10_000
"""The most characters that the arguments of a call have, as JSON."""


def of_settings(names: Iterable[str], *, brief: bool = False) -> dict[str, Schema]:
    """Return a schema for each of these settings of a job. If they are ``brief``, the schemas do not explain
    what the settings mean."""
    return {name: _schema(job_settings()[name], brief) for name in names}


def _schema(setting: JobSetting, brief: bool) -> Schema:
    schema = _type(setting)
    if not brief:
        schema["description"] = setting.meaning
    if setting.default_value:
        is_number = setting.kind in ("whole", "number")
        schema["default"] = json.loads(setting.default_value) if is_number else setting.default_value
        if setting.kind == "names":
            schema["default"] = setting.default_value.split(",")
    return schema


def _type(setting: JobSetting) -> Schema:
    """Return the type that a setting of this kind has in JSON, with its choices and bounds."""
    choices = {"enum": list(setting.choices)} if setting.choices else {}
    match setting.kind:
        case "flag":
            return {"type": "boolean"}
        case "names" | "machines":
            return {"type": "array", "items": {"type": "string", **choices}}
        case "amount":
            return {"type": ["number", "string"]}
        case "whole" | "number":
            least = {"exclusiveMinimum": 0} if setting.least is None else {"minimum": setting.least}
            most = {} if setting.most is None else {"maximum": setting.most}
            return {"type": "integer" if setting.kind == "whole" else "number", **least, **most}
    return {"type": "string", **choices}


def checked(tool: str, schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given, without empty ones. Raises JobError for an unknown or missing
    argument, and for one of the wrong type; the values of a job's settings are checked by the macros."""
    if len(json.dumps(arguments)) > MOST_CHARACTERS:
        raise JobError(f"the arguments are longer than {MOST_CHARACTERS:,} characters")
    known = schema["properties"]
    for name in arguments:
        if name not in known:
            raise JobError(f"{tool} has no argument {name!r}{_hint(name, known)}")
    given = {name: value for name, value in arguments.items() if value not in (None, [])}
    for name in schema["required"]:
        if name not in given:
            raise JobError(f"{tool} needs {name}: {known[name].get('description', 'see its description')}")
    return {name: _of_type(name, value, known[name]) for name, value in given.items()}


def _hint(name: str, known: Iterable[str]) -> str:
    other = [each.setting for each in job_settings().values() if each.other_name == name]
    nearest = [each for each in other if each in known] or get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(nearest)}?" if nearest else f"; it takes {', '.join(known)}"


def _of_type(name: str, value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        raise JobError(f"{name} must not be an object")
    if schema["type"] == "array" and not (
        isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
    ):
        raise JobError(f"{name} must be a list of names, not {json.dumps(value)}")
    if schema["type"] == "string" and not isinstance(value, str):
        raise JobError(f"{name} must be text, not {json.dumps(value)}")
    if schema["type"] != "array" and isinstance(value, list):
        raise JobError(f"{name} must be one value, not a list")
    if schema["type"] == "boolean" and not isinstance(value, bool):
        raise JobError(f"{name} must be true or false, not {json.dumps(value)}")
    return whole(name, value) if schema["type"] == "integer" else value


def job_in(arguments: Mapping[str, Any]) -> Job:
    """Return the job that checked arguments describe, leaving out arguments that are no settings of a job."""
    return Job(**{name: value for name, value in arguments.items() if name in job_settings()})
