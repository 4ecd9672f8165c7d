"""Requests to a bank, checked and carried out within what their token opens."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coevo.flows.bank_server.bank_tokens import Grant
from coevo.memory.validate import shortened
from coevo.tasks.bank_alone.bank_reader import MOST_RESULTS
from coevo.tasks.bank_alone.bank_store import BusyError
from coevo.tasks.bank_alone.chat_trajectory import ChatTrajectory
from coevo.tasks.bank_alone.standalone_bank import open_bank
from coevo.utilities.errors import CoevoError

MAX_QUERY_CHARS = 20_000
"""Most characters of a query."""
MAX_ITEMS = 1000
"""Most items of a list in a request."""
BUSY_TIMEOUT_S = 5.0
"""Seconds to wait for another process that changes the bank."""
POLL_INTERVAL_S = 0.05
"""Seconds between two attempts to change it."""
BUSY = 503
"""Status of a request that may be sent again, since another process changes the bank."""
FAILED = "the bank failed: see the server's log"
T = TypeVar("T")


class BankRequest(BaseModel):
    """A request or a part of one: unknown fields and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


ScopeField = str | dict[str, str] | None
"""Scope of a request; by default the names of its token."""


class RecallRequest(BankRequest):
    """Ask for the lessons that match a task."""

    query: str = Field(max_length=MAX_QUERY_CHARS, description="The task or question, in words.")
    scope: ScopeField = Field(default=None, description="Names of user, agent and task; by default those of the token.")
    k: int | None = Field(default=None, ge=0, le=MOST_RESULTS, description="Most lessons; by default the server's.")


class SeenEpisode(BankRequest):
    """Report an episode that lessons were shown in."""

    shown: list[str] = Field(max_length=MAX_ITEMS, description="Ids of the lessons that the agent was shown.")
    success: bool = Field(description="Whether the episode succeeded.")


class OutcomesRequest(BankRequest):
    """Report episodes."""

    episodes: list[SeenEpisode] = Field(min_length=1, max_length=MAX_ITEMS)


class LessonFields(BankRequest):
    """A lesson by its fields."""

    strategy: str
    condition: str = ""
    example: str = ""
    keywords: str = ""


class ProposeRequest(BankRequest):
    """Put lessons forward."""

    lessons: list[str | LessonFields] = Field(min_length=1, max_length=MAX_ITEMS)
    scope: ScopeField = None


class TrajectoryFields(BankRequest):
    """An attempt; its messages are checked when it is recorded."""

    messages: list[dict[str, Any]]
    reward: float
    success: bool
    scope: ScopeField = None
    shown: list[str] = Field(default=[], max_length=MAX_ITEMS)
    task: str = ""


class RecordRequest(BankRequest):
    """Record attempts."""

    trajectories: list[TrajectoryFields] = Field(min_length=1, max_length=MAX_ITEMS)


@dataclass
class _Report:
    """Episodes that wait for their commit.

    Attributes:
        episodes: ids and success of each.
        error: why they were not counted.
        done: True once they are.
    """

    episodes: Sequence[tuple[Sequence[str], bool]]
    error: CoevoError | None = None
    done: bool = False


class BankService:
    """One bank for many clients: one thread reads it and another one changes it, since a bank serves one thread.

    Args:
        path: directory of the bank, created if missing.
        retrieval: as for ``coevo.open_bank``.
        k: likewise.

    Raises:
        CoevoError: as ``coevo.open_bank``.
    """

    def __init__(self, path: Path, retrieval: str = "tfidf", k: int = 8) -> None:
        self.path = path
        self._reader, self._writer = (open_bank(path, retrieval, k) for _ in range(2))
        self._reading, self._writing = (ThreadPoolExecutor(1, f"bank-{name}") for name in ("reader", "writer"))
        self._reports: deque[_Report] = deque()

    async def recall(self, grant: Grant, asked: RecallRequest) -> dict[str, Any]:
        """Lessons of a scope, and those without scope, that match best, with their ids and scores.

        Raises:
            CoevoError: the request is not acceptable.
        """
        scope = grant.scope(asked.scope)
        hits = await self._in(self._reading, partial(self._reader.retrieve, asked.query, scope, asked.k))
        names = ("id", "strategy", "condition", "example", "scope")
        rows = [{name: getattr(hit.entry, name) for name in names} | {"score": hit.score} for hit in hits]
        return {"lessons": rows}

    async def outcomes(self, grant: Grant, asked: OutcomesRequest) -> dict[str, Any]:
        """Count episodes. Reports that arrive together are one revision; the answer comes after its commit.

        Raises:
            CoevoError: an id is not that of an active entry that the token sees; nothing of the request is counted.
        """
        episodes = [(tuple(each.shown), each.success) for each in asked.episodes]
        shown = [name for names, _ in episodes for name in names]
        await self._in(self._reading, partial(self._require_seen, grant, shown))
        report = _Report(episodes)
        self._reports.append(report)
        # The thread works in order: when this has run, the report was counted by it, or by an earlier one.
        await self._in(self._writing, self._count)
        if not report.done:
            raise report.error or CoevoError(f"{self.path}: episodes were not counted")
        return {"counted": len(episodes)}

    async def propose(self, grant: Grant, asked: ProposeRequest) -> dict[str, Any]:
        """Put lessons forward; the bank's owner judges them.

        Raises:
            CoevoError: a lesson is not acceptable, or too many wait; nothing changed.
        """
        scope = grant.scope(asked.scope)
        lessons = [each if isinstance(each, str) else each.model_dump() for each in asked.lessons]
        names = await self._change(partial(self._writer.propose, lessons, scope))
        return {"candidates": names}

    async def record(self, grant: Grant, asked: RecordRequest) -> dict[str, Any]:
        """Keep attempts until the bank's owner lets a writer read them.

        Raises:
            CoevoError: one is not acceptable, or too many wait; nothing changed.
        """
        attempts = [
            ChatTrajectory(**each.model_dump(exclude={"scope"}), scope=grant.scope(each.scope))
            for each in asked.trajectories
        ]
        shown = [name for each in attempts for name in each.shown]
        await self._in(self._reading, partial(self._require_seen, grant, shown))
        return {"trajectories": await self._change(partial(self._writer.record, attempts))}

    def refused(self, error: CoevoError) -> tuple[int, str]:
        """Status and text of a refusal; what concerns the directory goes to the server's log alone."""
        if isinstance(error, BusyError):
            return BUSY, "another process changes this bank: try again when it has finished"
        if str(self.path) in str(error):
            sys.stderr.write(f"{error}\n")
            return 500, FAILED
        return 422, str(error)

    def close(self) -> None:
        """End the threads, after what they are doing."""
        self._reading.shutdown()
        self._writing.shutdown()

    async def _in(self, thread: ThreadPoolExecutor, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(thread, act)

    async def _change(self, change: Callable[[], T]) -> T:
        return await self._in(self._writing, partial(_patiently, change))

    def _require_seen(self, grant: Grant, names: Sequence[str]) -> None:
        for name in dict.fromkeys(names):
            if not grant.sees(self._reader.entry(name).scope):
                # As for an entry that is not there.
                raise CoevoError(f"{shortened(name)} is no active entry: `entries()` lists them with their ids")

    def _count(self) -> None:
        """Count all reports that wait, in one revision; one by one where one of them is refused."""
        reports = [self._reports.popleft() for _ in range(len(self._reports))]
        if not self._try(reports) and len(reports) > 1:
            for report in reports:
                self._try([report])

    def _try(self, reports: Sequence[_Report]) -> bool:
        episodes = [episode for report in reports for episode in report.episodes]
        try:
            _patiently(partial(self._writer.outcomes, episodes))
        except CoevoError as error:
            for report in reports:
                report.error = error
            return isinstance(error, BusyError)
        for report in reports:
            report.done = True
        return True


def first_mistake(error: ValidationError) -> str:
    """The first mistake of a request, in a line."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}".removeprefix(": ")


def _patiently(change: Callable[[], T]) -> T:
    """Change the bank, once no other process does.

    Raises:
        BusyError: another one does for ``BUSY_TIMEOUT_S``.
        CoevoError: the change is refused.
    """
    until = monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return change()
        except BusyError:
            if monotonic() > until:
                raise
        sleep(POLL_INTERVAL_S)
