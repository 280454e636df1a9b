"""Runs many traces in processes that are replaced now and then, because torch never frees some memory."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from pipeline.contracts.errors import GpufareError

CALLS_PER_PROCESS = 150
Result = TypeVar("Result")


class TracingProcessError(GpufareError):
    """A process died while tracing."""


def in_processes(
    function: Callable[..., Result], calls: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Call a module-level function with each of ``calls``, in ``jobs`` processes; yield indices and results.

    Each result is yielded as soon as it is ready. max_tasks_per_child is not used: Python 3.11's pool hangs
    once a process has done its share. Raises ``TracingProcessError`` if a process dies.
    """
    batch = jobs * CALLS_PER_PROCESS
    for start in range(0, len(calls), batch):
        yield from _batch(function, dict(enumerate(calls[start : start + batch], start)), jobs)


def _batch(
    function: Callable[..., Result], calls: dict[int, tuple[Any, ...]], jobs: int
) -> Iterator[tuple[int, Result]]:
    with ProcessPoolExecutor(jobs, get_context("spawn"), _quietly) as pool:
        futures = {pool.submit(function, *call): index for index, call in calls.items()}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise TracingProcessError(
                "a tracing process died, perhaps for lack of memory; what was traced is kept: run the "
                "command again with fewer --jobs"
            ) from error
        finally:
            for future in futures:
                future.cancel()


def _quietly() -> None:
    """Silence the frameworks in a tracing process: everything that matters is in the rows."""
    import logging
    import os
    import warnings

    logging.disable(logging.WARNING)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
