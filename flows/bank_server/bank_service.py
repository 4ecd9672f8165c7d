"""Requests to a bank, checked and carried out within what their token opens."""

import asyncio
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from coevo.flows.bank_server.bank_tokens import Grant
from coevo.memory.retrieval.index import Hit
from coevo.memory.validate import shortened
from coevo.tasks.bank_alone.bank_reader import MAX_RESULTS
from coevo.tasks.bank_alone.bank_store import BankFullError, BusyError, DirectoryError, WaitingQuota
from coevo.tasks.bank_alone.chat_trajectory import ChatTrajectory
from coevo.tasks.bank_alone.new_lesson import ScopeName
from coevo.tasks.bank_alone.standalone_bank import open_bank
from coevo.utilities.errors import CoevoError

T = TypeVar("T")


class FairThread:
    """One thread. Clients take turns, each with its own work in order; for one event loop.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: OrderedDict[Hashable, deque[tuple[Callable[[], Any], asyncio.Future[Any]]]] = OrderedDict()
        self._is_busy = False

    async def run(self, client: Hashable, act: Callable[[], T]) -> T:
        """Do something for a client in the thread, and return its result or raise its error."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append((act, done))
        if not self._is_busy:
            self._is_busy = True
            asyncio.ensure_future(self._work())  # noqa: RUF006  (it ends with the work, which others wait for)
        return await done

    def close(self) -> None:
        """End the thread, after what it is doing."""
        self._thread.shutdown()

    async def _work(self) -> None:
        while self._waiting:
            client, acts = self._waiting.popitem(last=False)
            act, done = acts.popleft()
            if acts:
                self._waiting[client] = acts
            if done.cancelled():
                continue
            try:
                result = await asyncio.get_running_loop().run_in_executor(self._thread, act)
            except BaseException as error:  # noqa: BLE001  (its client gets it, and the next one has its turn)
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(result)
        self._is_busy = False


MAX_QUERY_CHARS = 20_000
"""Most characters of a query."""
MAX_ITEMS = 1000
"""Most items of a list in a request."""
BUSY_TIMEOUT_S = 5.0
"""Seconds after the arrival of a request until which it waits for another process that changes the bank."""
MAX_CHANGES = 32
"""Most requests that wait to change the bank; further ones get 503, so that readers have connections."""
MAX_CLIENT_CHANGES = 16
"""Most of them with the names of one token, so that one client does not take the places of all others."""
MAX_WAITING = 100
"""Most lessons, and most trajectories, of the names of one token that wait for the bank's owner."""
POLL_INTERVAL_S = 0.05
"""Seconds between two attempts to change it."""
BUSY = 503
"""Status of a request that may be sent again, since other changes come first or the bank is full."""
FAILED = "the bank failed: see the server's log"
BankClient = tuple[tuple[str, str], ...]
"""Names of a token, which its client is known by."""


class BankRequest(BaseModel):
    """A request or a part of one: unknown fields and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


ScopeField = str | dict[str, str] | None
"""Scope of a request; by default the names of its token."""


class RecallRequest(BankRequest):
    """Ask for the lessons that match a task."""

    query: str = Field(max_length=MAX_QUERY_CHARS, description="The task or question, in words.")
    scope: ScopeField = Field(default=None, description="Names of user, agent and task; by default those of the token.")
    k: int | None = Field(default=None, ge=0, le=MAX_RESULTS, description="Most lessons; by default the server's.")


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
        until: time of the monotonic clock until which they wait for another process.
        error: why they were not counted.
        done: True once they are.
    """

    episodes: Sequence[tuple[Sequence[str], bool]]
    until: float
    error: CoevoError | None = None
    done: bool = False


class BankService:
    """One bank for many clients: one thread reads it and another one changes it, since a bank serves one thread.

    Tokens take turns in both.

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
        self._reading, self._writing = (FairThread(f"bank-{name}") for name in ("reader", "writer"))
        self._reports: deque[_Report] = deque()
        self._changes: Counter[BankClient] = Counter()

    async def recall(self, grant: Grant, asked: RecallRequest) -> dict[str, Any]:
        """Lessons of a scope, and those without scope, that match best, with ids, scores, and what is missing.

        Raises:
            CoevoError: the request is not acceptable.
        """
        scope = grant.scope(asked.scope)
        hits, lacking = await self._reading.run(_client(grant), partial(self._recall, asked, scope))
        names = ("id", "strategy", "condition", "example", "scope")
        rows = [{name: getattr(hit.entry, name) for name in names} | {"score": hit.score} for hit in hits]
        return {"lessons": rows, "no_lesson": lacking}

    async def outcomes(self, grant: Grant, asked: OutcomesRequest) -> dict[str, Any]:
        """Count episodes. Reports that arrive together are one revision; the answer comes after its commit.

        Entries that the token sees but may not change, which are those for everybody, are left out.

        Raises:
            CoevoError: an id is not that of an active entry that the token sees; nothing of the request is counted.
        """
        with self._waiting(client := _client(grant)) as until:
            shown = await self._reading.run(client, partial(self._own, grant, [each.shown for each in asked.episodes]))
            success = [each.success for each in asked.episodes]
            report = _Report(list(zip(shown, success, strict=True)), until)
            self._reports.append(report)
            # It counts all reports that wait: when this has run, the report was counted by it, or by an earlier one.
            await self._writing.run(client, self._count)
        if not report.done:
            raise report.error or DirectoryError(f"{self.path}: episodes were not counted")
        return {"counted": len(success)}

    async def propose(self, grant: Grant, asked: ProposeRequest) -> dict[str, Any]:
        """Put lessons forward; the bank's owner judges them.

        Raises:
            CoevoError: a lesson is not acceptable, or too many wait; nothing changed.
        """
        scope = grant.scope(asked.scope)
        lessons = [each if isinstance(each, str) else each.model_dump() for each in asked.lessons]
        with self._waiting(client := _client(grant)) as until:
            change = partial(self._writer.propose, lessons, scope, _quota(grant))
            return {"candidates": await self._writing.run(client, partial(_patiently, change, until))}

    async def record(self, grant: Grant, asked: RecordRequest) -> dict[str, Any]:
        """Keep attempts until the bank's owner lets a writer read them, and count them as ``outcomes`` does.

        Their ids stay here: they tell how often others change the bank.

        Raises:
            CoevoError: one is not acceptable, or too many wait; nothing changed.
        """
        scopes = [grant.scope(each.scope) for each in asked.trajectories]
        with self._waiting(client := _client(grant)) as until:
            shown = await self._reading.run(
                client, partial(self._own, grant, [each.shown for each in asked.trajectories])
            )
            attempts = [
                ChatTrajectory(**each.model_dump(exclude={"scope", "shown"}), scope=scope, shown=names)
                for each, scope, names in zip(asked.trajectories, scopes, shown, strict=True)
            ]
            change = partial(self._writer.record, attempts, _quota(grant))
            return {"recorded": len(await self._writing.run(client, partial(_patiently, change, until)))}

    def refused(self, error: CoevoError) -> tuple[int, str]:
        """Status and text of a refusal; what concerns the directory goes to the server's log alone."""
        if isinstance(error, BusyError):
            return BUSY, "other changes of this bank come first: try again when they have finished"
        if isinstance(error, BankFullError):
            return BUSY, "this bank is full: try again when its owner has judged or written lessons"
        if isinstance(error, DirectoryError):
            sys.stderr.write(f"{error}\n")
            return 500, FAILED
        return 422, str(error)

    def close(self) -> None:
        """End the threads, after what they are doing."""
        self._reading.close()
        self._writing.close()

    def _recall(self, asked: RecallRequest, scope: ScopeName) -> tuple[list[Hit], str]:
        hits = self._reader.retrieve(asked.query, scope, asked.k)
        return hits, "" if asked.k == 0 else self._reader.lacking(scope, hits)

    @contextmanager
    def _waiting(self, client: BankClient) -> Iterator[float]:
        """Be one of the requests that wait to change the bank; the time until which this one does.

        Raises:
            BusyError: too many do, of all clients or of this one.
        """
        if self._changes.total() >= MAX_CHANGES or self._changes[client] >= MAX_CLIENT_CHANGES:
            raise BusyError(f"{self.path}: {self._changes.total()} requests wait to change this bank")
        self._changes[client] += 1
        try:
            yield monotonic() + BUSY_TIMEOUT_S
        finally:
            self._changes[client] -= 1
            if not self._changes[client]:
                del self._changes[client]

    def _own(self, grant: Grant, shown: Sequence[Sequence[str]]) -> list[list[str]]:
        """Of the entries that each episode saw, those that the token may change.

        Raises:
            CoevoError: the token does not see one.
        """
        scopes = {name: self._reader.entry(name).scope for name in dict.fromkeys(chain.from_iterable(shown))}
        for name, scope in scopes.items():
            if not grant.sees(scope):
                # As for an entry that is not there.
                raise CoevoError(f"{shortened(name)} is no active entry: `entries()` lists them with their ids")
        return [[name for name in names if grant.changes(scopes[name])] for names in shown]

    def _count(self) -> None:
        """Count all reports that wait, in one revision; one by one where one of them is refused."""
        reports = [self._reports.popleft() for _ in range(len(self._reports))]
        if reports and not self._try(reports) and len(reports) > 1:
            for report in reports:
                self._try([report])

    def _try(self, reports: Sequence[_Report]) -> bool:
        episodes = [episode for report in reports for episode in report.episodes]
        try:
            _patiently(partial(self._writer.outcomes, episodes), min(report.until for report in reports))
        except CoevoError as error:
            for report in reports:
                report.error = error
            return isinstance(error, BusyError)
        for report in reports:
            report.done = True
        return True


def _client(grant: Grant) -> BankClient:
    return tuple(sorted(grant.names.items()))


def _quota(grant: Grant) -> WaitingQuota | None:
    """Limit of a token, over all scopes that it opens; none where it opens the whole bank."""
    return WaitingQuota(grant.changes, MAX_WAITING) if grant.names else None


def _patiently(change: Callable[[], T], until: float) -> T:
    """Change the bank, once no other process does; try once at least.

    Raises:
        BusyError: another one does until a time of the monotonic clock.
        CoevoError: the change is refused.
    """
    while True:
        try:
            return change()
        except BusyError:
            if monotonic() > until:
                raise
        sleep(POLL_INTERVAL_S)
