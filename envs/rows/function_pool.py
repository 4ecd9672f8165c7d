"""Calls of users' functions in worker processes: side by side, each within its time limit, none able to hang the run.

A function that does not return is stopped with its process, and another process takes its place. Functions with the
same time limit share processes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from coevo.configs.base import MAX_TOKENS
from coevo.configs.rows_config import FunctionRewardConfig, JudgeRewardConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure, FailureKind, one_line
from coevo.envs.rows.function_worker import Callee, FunctionHost
from coevo.envs.rows.judge_reward import judge_key
from coevo.envs.stateful.interface import Opening
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.records.draws import key
from coevo.records.task import Task

START_SECONDS = 120.0
"""Time limit for the start of a worker, which imports its functions."""
EXTRA_SECONDS = 1.0
"""Seconds beside those of calls that are awaited together, whose own limits come first."""
AWAITED = 256
"""Most calls that are awaited together."""
HOSTING = Opening(Task("rows", "functions", "host functions", "", "train", {}), key("rows", "functions"))
"""Episode of a worker: there is no task, but the interface has one."""


class CallOutcome(BaseModel):
    """Outcome of a call: its value, a refusal for the policy, or an error."""

    model_config = ConfigDict(strict=True, extra="forbid")

    value: float | str | None = None
    refused: str = ""
    error: str = ""
    kind: FailureKind = "exception"


OUTCOMES = TypeAdapter(list[CallOutcome])


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Calls of one function.

    Attributes:
        callee: the function.
        items: arguments of each call.
    """

    callee: Callee
    items: Sequence[Sequence[Any]]


class FunctionPool:
    """Worker processes of some functions, started when they are first needed; several threads may call at once."""

    def __init__(self, callees: Sequence[Callee], tool_seconds: float, workers: int) -> None:
        """Args:
        callees: the functions.
        tool_seconds: time limit of a call of a tool.
        workers: processes for each time limit.

        Raises:
            JudgeError: the environment has no key for a judge.
        """
        limits = [tool_seconds if isinstance(callee, str) else _limit(callee) for callee in callees]
        self._groups = {
            seconds: WorkerGroup(
                [each for each, limit in zip(callees, limits, strict=True) if limit == seconds], workers, seconds
            )
            for seconds in dict.fromkeys(limits)
        }

    def call(self, calls: Sequence[FunctionCalls]) -> list[list[CallOutcome | EpisodeFailure]]:
        """Carry out calls; return an outcome per item, function by function."""
        found: list[list[CallOutcome | EpisodeFailure]] = [[] for _ in calls]
        for group in self._groups.values():
            mine = [
                (place, part) for place, each in enumerate(calls) if group.has(each.callee) for part in _parts(each)
            ]
            for (place, part), outcomes in zip(mine, group.run([part for _, part in mine]), strict=True):
                found[place] += _matched(outcomes, len(part.items))
        return found

    def close(self) -> None:
        """End the workers; they start again when they are needed."""
        for group in self._groups.values():
            group.close()


class WorkerGroup:
    """Workers of functions with one time limit."""

    def __init__(self, callees: Sequence[Callee], workers: int, seconds: float) -> None:
        self._callees, self._seconds = tuple(callees), seconds
        self._settings = SimulatorConfig(
            workers=workers, open_seconds=START_SECONDS, act_seconds=seconds, longest=MAX_TOKENS
        )
        keys = tuple(judge_key(each) if isinstance(each, JudgeRewardConfig) else "" for each in callees)
        self._workers = LocalWorkers(FunctionHost(self._callees, keys), self._settings)
        self._handles: list[object] = []
        self._turns, self._lock = count(), Lock()

    def has(self, callee: Callee) -> bool:
        """Report whether a function is one of these."""
        return callee in self._callees

    def run(self, calls: Sequence[FunctionCalls]) -> list[list[CallOutcome] | EpisodeFailure]:
        """Carry out calls, each in one request; those whose worker another call has ended are sent again."""
        requests = [json.dumps({"function": self._callees.index(each.callee), "items": each.items}) for each in calls]
        results: dict[int, list[CallOutcome] | EpisodeFailure] = {}
        while left := [index for index in range(len(calls)) if index not in results]:
            handles = self._ready(len(left))
            if isinstance(handles, EpisodeFailure):
                return [results.get(index, handles) for index in range(len(calls))]
            chosen = [handles[next(self._turns) % len(handles)] for _ in left]
            steps = self._workers.act(chosen, [requests[index] for index in left])
            results |= {index: _outcomes(step) for index, step in zip(left, steps, strict=True) if step is not None}
            self._drop({id(handle) for handle, step in zip(chosen, steps, strict=True) if _has_ended(step)})
        return [results[index] for index in range(len(calls))]

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            self._handles.clear()
            self._workers.shutdown()

    def _ready(self, wanted: int) -> list[object] | EpisodeFailure:
        """Handles of workers, as many as there may be and are wanted; the failure of the first that does not start."""
        with self._lock:
            lacking = min(wanted, self._settings.workers) - len(self._handles)
            for opened in self._workers.start([HOSTING] * max(0, lacking)):
                if isinstance(opened, EpisodeFailure):
                    return EpisodeFailure(opened.kind, one_line(f"its worker does not start: {opened.detail}"))
                self._handles.append(opened.handle)
            return list(self._handles)

    def _drop(self, ended: set[int]) -> None:
        with self._lock:
            gone = [handle for handle in self._handles if id(handle) in ended]
            self._handles = [handle for handle in self._handles if id(handle) not in ended]
            self._workers.close(gone)


def _limit(config: FunctionRewardConfig | JudgeRewardConfig) -> float:
    """Seconds after which a request is stopped."""
    alone = isinstance(config, FunctionRewardConfig) and config.call != "async"
    return config.seconds if alone else config.seconds + EXTRA_SECONDS


def _parts(calls: FunctionCalls) -> list[FunctionCalls]:
    """Calls by request: one each, or as many as belong together."""
    items, size = calls.items, 1
    if isinstance(calls.callee, JudgeRewardConfig):
        size = calls.callee.concurrency
    elif isinstance(calls.callee, FunctionRewardConfig) and calls.callee.call != "plain":
        size = AWAITED if calls.callee.call == "async" else max(1, len(items))
    return [FunctionCalls(calls.callee, items[start : start + size]) for start in range(0, len(items), size)]


def _has_ended(step: Step[None] | EpisodeFailure | None) -> bool:
    """Report whether a worker is gone: it was stopped, it ended, or another call ended it."""
    return step is None or (isinstance(step, EpisodeFailure) and step.kind != "exception")


def _outcomes(step: Step[None] | EpisodeFailure) -> list[CallOutcome] | EpisodeFailure:
    if isinstance(step, EpisodeFailure):
        return step
    try:
        return OUTCOMES.validate_json(step.observation)
    except ValidationError as error:
        return EpisodeFailure(
            "invalid", one_line(f"a worker's reply is not as it should be: {error.errors()[0]['msg']}")
        )


def _matched(outcomes: list[CallOutcome] | EpisodeFailure, size: int) -> list[CallOutcome | EpisodeFailure]:
    """An outcome per item; a failure of a request is that of all its items."""
    if isinstance(outcomes, EpisodeFailure):
        return [outcomes] * size
    if len(outcomes) != size:
        return [EpisodeFailure("invalid", f"{len(outcomes)} outcomes for {size} calls")] * size
    return [EpisodeFailure(each.kind, one_line(each.error)) if each.error else each for each in outcomes]
