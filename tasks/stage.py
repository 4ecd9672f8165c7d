"""Stages: plain functions that a flow runs as Prefect tasks, and how long each took.

Prefect walks through every collection and dataclass that a task is given, once for each argument: with a batch of
episodes that takes longer than many a stage. Arguments and result therefore travel in an opaque ``_Call``. Nothing is
cached or persisted: what lasts is committed by the lineage, never by the orchestrator.
"""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from time import perf_counter
from typing import Any, Generic, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

P = ParamSpec("P")
R = TypeVar("R")

_seconds: ContextVar[MutableMapping[str, float] | None] = ContextVar("seconds", default=None)


class _Call(Generic[R]):
    """A function with its arguments, and its result once it was run; no collection and no dataclass on purpose."""

    result: R

    def __init__(self, name: str, body: Callable[[], R]) -> None:
        self.name = name
        self.body = body

    def run(self) -> None:
        """Call the function; its seconds are added up under the stage's name, whether or not it succeeds."""
        start = perf_counter()
        try:
            self.result = self.body()
        finally:
            record = _seconds.get()
            if record is not None:
                record[self.name] = record.get(self.name, 0.0) + perf_counter() - start


def stage(name: str, retries: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a stage: a Prefect task within a flow, the plain function outside of one.

    Args:
        name: of the task and of its seconds.
        retries: how often Prefect calls it again after an exception; only for functions that may safely be repeated.
    """

    @task(name=name, retries=retries, cache_policy=NO_CACHE, persist_result=False, log_prints=False)
    def run(call: _Call[Any]) -> None:
        call.run()

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def staged(*args: P.args, **kwargs: P.kwargs) -> R:
            call = _Call(name, lambda: function(*args, **kwargs))
            if FlowRunContext.get() is None:
                call.run()
            else:
                run(call)
            return call.result

        return staged

    return decorate


def part_name(kind: str) -> str:
    """The ``type`` of a part as metrics spell it: what only this part leaves is told under its name."""
    return kind.replace("+", "_").replace("-", "_")


@contextmanager
def recording(seconds: MutableMapping[str, float]) -> Iterator[None]:
    """Add the seconds of every stage called within to ``seconds``, by stage name."""
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)
