"""Stages: plain functions, which a flow runs as Prefect tasks unless they are over at once, and how long each took.

Prefect walks through every collection and dataclass that a task is given, once for each argument: with a batch of
episodes that takes longer than many a stage. Arguments and result therefore travel in an opaque ``_Call``. Nothing is
cached or persisted: what lasts is committed by the lineage, never by the orchestrator. A task run is named by revision
and stage, ``r12 rollout``; one that belongs to no revision has the stage's name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper, wraps
from time import perf_counter
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, runtime_checkable

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

from coevo.tasks.publish.reporter import Silent, in_stage, reporting_to

P = ParamSpec("P")
R = TypeVar("R")

_seconds: ContextVar[MutableMapping[str, float] | None] = ContextVar("seconds", default=None)


class Numbered(Protocol):
    """A revision in the making."""

    revision: int


@runtime_checkable
class HasPending(Protocol):
    """An argument that has the revision a stage works on: a session, or a frozen revision."""

    @property
    def pending(self) -> Numbered:
        """The revision in the making."""


class _Call(Generic[R]):
    """A function with its arguments, and its result once it was run; no collection and no dataclass on purpose."""

    result: R

    def __init__(self, name: str, body: Callable[[], R], revision: int | None = None) -> None:
        self.name = name
        self.body = body
        self.label = name if revision is None else f"r{revision} {name}"

    def run(self) -> None:
        """Call the function; its seconds are added up under the stage's name, whether or not it succeeds."""
        start = perf_counter()
        try:
            self.result = self.body()
        finally:
            record = _seconds.get()
            if record is not None:
                record[self.name] = record.get(self.name, 0.0) + perf_counter() - start


class Stage(Generic[P, R]):
    """A function that is a Prefect task within a flow, and the plain function outside of one."""

    __name__: str

    def __init__(self, name: str, function: Callable[P, R], retries: int) -> None:
        @task(
            name=name,
            task_run_name="{call.label}",
            retries=retries,
            cache_policy=NO_CACHE,
            persist_result=False,
            log_prints=False,
        )
        def run(call: _Call[Any]) -> None:
            call.run()

        self._name = name
        self._function = function
        self._task = run
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the stage."""
        call = self._called(*args, **kwargs)
        with in_stage(call.label):
            if FlowRunContext.get() is None:
                call.run()
            else:
                self._task(call)
        return call.result

    @contextmanager
    def beside(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[None]:
        """Run the stage in a thread beside the block, and wait for it at the block's end.

        Its progress is not reported: that of the block is. What the stage raises comes before what the block raises.
        Outside of a flow the stage ends before the block.
        """
        call = self._called(*args, **kwargs)
        call.body = _silent(call.body)
        if FlowRunContext.get() is None:
            call.run()
            yield
            return
        running = self._task.submit(call)
        try:
            yield
        finally:
            running.result()

    def _called(self, *args: P.args, **kwargs: P.kwargs) -> _Call[R]:
        return _Call(self._name, partial(self._function, *args, **kwargs), _revision(args))


def _silent(body: Callable[[], R]) -> Callable[[], R]:
    def quietly() -> R:
        with reporting_to(Silent()):
            return body()

    return quietly


def _revision(arguments: Iterable[object]) -> int | None:
    """Number of the revision in the making that a stage works on; None where no argument has one."""
    return next((given.pending.revision for given in arguments if isinstance(given, HasPending)), None)


def stage(name: str, retries: int = 0) -> Callable[[Callable[P, R]], Stage[P, R]]:
    """Make a function a stage.

    Args:
        name: of the task and of its seconds; Prefect shows a run of it as ``r12 name``.
        retries: how often Prefect calls it again after an exception; only for functions that may safely be repeated.
    """
    return lambda function: Stage(name, function, retries)


def grouping(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function that calls stages a Prefect task above theirs, which reports nothing and has no seconds itself.

    Prefect's timeline shows the group as one bar with its stages below.

    Args:
        name: of the task; Prefect shows a run of it as ``r12 name``.
    """

    @task(name=name, task_run_name="{call.label}", cache_policy=NO_CACHE, persist_result=False, log_prints=False)
    def run(call: _Call[Any]) -> None:
        call.result = call.body()

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def grouped(*args: P.args, **kwargs: P.kwargs) -> R:
            if FlowRunContext.get() is None:
                return function(*args, **kwargs)
            call = _Call(name, partial(function, *args, **kwargs), _revision(args))
            run(call)
            return call.result

        return grouped

    return made


def untracked(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a stage that is no task of Prefect: it takes less time than Prefect takes for one.

    Args:
        name: of its seconds.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            call = _Call(name, partial(function, *args, **kwargs))
            call.run()
            return call.result

        return timed

    return made


def part_name(kind: str) -> str:
    """The ``type`` of a part as metrics spell it; metrics of this part alone have its name."""
    return re.sub(r"\W", "_", kind)


@contextmanager
def recording(seconds: MutableMapping[str, float]) -> Iterator[None]:
    """Add the seconds of every stage called within to ``seconds``, by stage name."""
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)
