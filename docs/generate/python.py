"""docs/reference/python.md: the functions and classes of `import gpufare`, from their docstrings."""

import inspect
from collections.abc import Iterator
from typing import Any

import gpufare

INTRODUCTION = """# Python

This file is made by `make docs` from the docstrings of `gpufare`. `**job` stands for the
[settings of a job](job-settings.md) as keyword arguments; None leaves a setting unset.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for name in sorted(gpufare.__all__):
        thing = getattr(gpufare, name)
        if inspect.isfunction(thing):
            yield _function(f"gpufare.{name}", thing)
    for kind in (gpufare.Prices, gpufare.Answer):
        yield f"## {kind.__name__}\n\n{_doc(kind)}\n"
        for name, member in vars(kind).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                yield _function(f"{kind.__name__}.{name}", member, "###")


def _function(name: str, function: Any, level: str = "##") -> str:
    parameters = ", ".join(
        str(each.replace(annotation=inspect.Parameter.empty))
        for each in inspect.signature(function).parameters.values()
        if each.name != "self"
    )
    return f"{level} {name}\n\n```text\n{name}({parameters})\n```\n\n{_doc(function)}\n"


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "").replace("``", "`")
