"""Errors in a trace, worded for the person whose step is traced."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.contracts.errors import GpufareError
from pipeline.parsing.printable import printable

MAX_CHARACTERS = 600
"""Longest message, in characters: text from a config.json or a library can have any length."""


class CannotTraceError(GpufareError):
    """A step cannot be traced; the message says what prevented it, where, and what to do.

    Messages quote configs and libraries: control characters are replaced, and long messages are cut.
    """

    def __init__(self, message: str) -> None:
        text = printable(message[: MAX_CHARACTERS + 1])
        super().__init__(text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…")


@contextmanager
def speaking_errors() -> Iterator[None]:
    """Turn torch's errors on fake tensors into errors that name the operation, the place and a workaround."""
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
    )

    # torch would also log the traceback of an error that it raises.
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise CannotTraceError(
            f"{error.func} depends on the values of a tensor, and fake tensors have none{place_of(error)}: "
            "take the branch or the size from the configuration instead"
        ) from error
    except UnsupportedOperatorException as error:
        raise CannotTraceError(
            f"{error.func} has no fake implementation{place_of(error)}: register one with "
            "torch.library.register_fake, or trace without that kernel"
        ) from error
    except UnsupportedFakeTensorException as error:
        raise CannotTraceError(f"{error.reason}{place_of(error)}") from error
    except RuntimeError as error:
        if "data pointer" in str(error) or "data_ptr" in str(error):
            raise CannotTraceError(
                f"a compiled extension reads a tensor's memory{place_of(error)}, and fake tensors have none: "
                "wrap it as a torch.library operator with a register_fake, or trace without it"
            ) from error
        if "numpy" in str(error):
            raise CannotTraceError(
                f"a tensor's values are read{place_of(error)}, and fake tensors have none: trace without it"
            ) from error
        raise
    finally:
        log.setLevel(level)


def place_of(error: BaseException) -> str:
    """Return file:line of the innermost code outside torch and the tracer, as part of a sentence."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "importlib" in frame.filename:
            continue
        if "/torch/" not in frame.filename and "/gpufare_tracer/" not in frame.filename:
            return f" (at {frame.filename}:{frame.lineno})"
    return ""
