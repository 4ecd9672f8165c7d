"""Sessions of the gateway: what is open, how long, and how it ends.

A session that ended is kept by ``session_store`` before its client hears of it. One that is open is lost with the
process, and nothing else is.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Literal, NamedTuple

from coevo.lineage.names import RUN
from coevo.records.episode import Completion
from coevo.records.message import Message
from coevo.tasks.gateway.memory_bound import MIB, FullError, MemoryBound
from coevo.tasks.gateway.session_store import (
    Ended,
    Mode,
    SessionOutcome,
    SessionRecord,
    SessionStore,
    SessionTask,
    turn_records,
)
from coevo.tasks.gateway.session_tree import UNNAMED, AnswerOrigin, AskedPrompt, DrawnTurn, SessionTree
from coevo.tasks.play.retrieve import Experience
from coevo.utilities.errors import CoevoError, counted

ANSWERS = 10_000
"""Maximum answers of a session."""
ASKED_BYTES = 256
"""Bytes that a prompt takes whose answers are counted."""
SESSION_BYTES = 64 * MIB
"""Maximum bytes of a session, by default."""


class OverError(CoevoError):
    """The session has ended."""


@dataclass(eq=False)
class GatewaySession:
    """An open session.

    Attributes:
        name: its name in the address.
        mode: ``training``, or ``evaluation``, which teaches nothing.
        group: name of its group of attempts at one task; empty for none.
        task: its task; a field that is empty is taken from the first message.
        tree: its answers.
        experience: retrieval for it; None before its first prompt.
        seen_in: policy and bank that this retrieval is of.
        used: time of its latest request, in seconds of a clock that only moves forward.
        memory: bytes that its answers and its task take.
        open: False once it has an outcome.
        waiting: number of its answers that are being drawn.
    """

    name: str
    mode: Mode
    group: str
    task: SessionTask
    tree: SessionTree = field(default_factory=SessionTree)
    experience: Experience | None = None
    seen_in: AnswerOrigin = UNNAMED
    used: float = field(default_factory=monotonic)
    memory: MemoryBound = field(default_factory=lambda: MemoryBound(SESSION_BYTES, "the session is full"))
    open: bool = True
    waiting: int = 0
    _asked: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def drawing(self, asked: AskedPrompt, count: int) -> Iterator[None]:
        """Draw answers of a request within the block, which reserves memory; the session is not abandoned meanwhile.

        Raises:
            FullError: as ``check_room``, or there is no memory for the request.
        """
        self.check_room(count)
        size = count * asked.bytes
        self.memory.take(size)
        self.waiting += count
        try:
            yield
        finally:
            self.memory.add(-size)
            self.waiting -= count
            self.used = monotonic()

    def keep(self, asked: AskedPrompt, completion: Completion, answer: Message, drawing: float) -> DrawnTurn:
        """Add an answer that was drawn, in so many seconds."""
        turn = self.tree.add(asked, completion, answer, drawing)
        self.memory.add(turn.bytes)
        return turn

    def check_room(self, count: int) -> None:
        """Check that it may have more answers.

        Raises:
            FullError: with those that are being drawn it would have more than ``ANSWERS``.
        """
        if len(self.tree.turns) + self.waiting + count > ANSWERS:
            raise FullError(f"session {self.name}: {ANSWERS} answers are the most of a session: report its outcome")

    def task_of(self, first: str) -> SessionTask:
        """Its task, with the first user's message as the instruction of one that has none."""
        missing = {"id": self.name, "instruction": first}
        return self.task.model_copy(
            update={name: value for name, value in missing.items() if not getattr(self.task, name)}
        )

    def seen_with(self, task: SessionTask) -> "GatewaySession":
        """The same answers, for a request with a task of its own, to which no prompt was asked before."""
        return replace(self, task=task, waiting=0, _asked=Counter())

    def repeated(self, prompt: str, count: int) -> int:
        """Number of answers to a prompt that were asked for before; ``count`` more are now."""
        if prompt not in self._asked:
            self.memory.take(ASKED_BYTES)
        before = self._asked[prompt]
        self._asked[prompt] += count
        return before


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of a gateway.

    Attributes:
        sessions: maximum number of open sessions.
        idle: seconds without a request after which a session is abandoned.
        memory: maximum bytes that all open sessions take.
        each: maximum bytes that one of them takes.
    """

    sessions: int = 4096
    idle: float = 3600.0
    memory: int = 768 * MIB
    each: int = SESSION_BYTES


class _Closing(NamedTuple):
    """A session whose line is being written: its end, and where the news of it comes."""

    end: Ended
    kept: "Future[Ended]"


class Sessions:
    """All sessions of a gateway; for one thread.

    Args:
        store: keeps those that ended.
        limits: bounds.
        mode: mode of a session that names none.
        policy: ``RUN@N`` of the policy.
        bank: ``RUN@N`` of the bank; empty without one.
    """

    def __init__(self, store: SessionStore, limits: SessionLimits, mode: Mode, policy: str, bank: str) -> None:
        self._store, self._limits = store, limits
        self.mode, self.policy, self.bank = mode, policy, bank
        self._open: dict[str, GatewaySession] = {}
        self._closing: dict[str, _Closing] = {}
        self._reaching = Counter[str]()
        self._memory = MemoryBound(limits.memory, "the open sessions are full: report outcomes, or raise --max-memory")

    def open(
        self, name: str, mode: Mode | None = None, group: str = "", task: SessionTask | None = None
    ) -> GatewaySession:
        """The session of a name, which is opened if there is none.

        Raises:
            OverError: it has ended.
            FullError: as many are open as may be.
            CoevoError: it is open with another mode, group or task, or the name is none.
        """
        # A writer puts the name among the ended, or the open again, before it is no longer among the closing.
        if (closing := self._closing.get(name)) is not None:
            raise _over(name, closing.end)
        if name in self._open:
            return self._same(self._open[name], mode, group, task)
        check_name(name)
        if name in self._store.ended:
            raise _over(name, self._store.ended[name])
        self.expire()
        if len(self._open) >= self._limits.sessions:
            raise FullError(f"{counted(len(self._open), 'session')} are open: report outcomes, or raise --max-sessions")
        self._memory.check()
        bound = MemoryBound(self._limits.each, f"session {name} is full: report its outcome", self._memory)
        if task is not None:
            bound.take(task.bytes)
        session = GatewaySession(name, mode or self.mode, group, task or SessionTask(), memory=bound)
        self._store.opened(name, session.mode)
        self._open[name] = session
        return session

    @contextmanager
    def reaching(self, name: str) -> Iterator[None]:
        """Do not abandon the session of a name within the block, in which a request waits for its turn."""
        self._reaching[name] += 1
        try:
            yield
        finally:
            self._reaching -= Counter([name])
            if name in self._open:
                self._open[name].used = monotonic()

    def use(self, name: str, count: int = 1, task: SessionTask | None = None) -> GatewaySession:
        """The session of a name, for one more request of ``count`` answers; ``task`` if the request names one.

        Raises:
            CoevoError: as ``open``, or it has too many answers.
        """
        session = self.open(name, task=task)
        session.check_room(count)
        session.memory.check()
        session.used = monotonic()
        return session

    def to_play(self, name: str) -> tuple[SessionTask, int] | None:
        """Task and number of answers of an open session; None for one that is over.

        Raises:
            CoevoError: there is no such session, or it has no answer.
        """
        if name in self._closing or name in self._store.ended:
            return None
        session = self._answered(name)
        return session.task, len(session.tree.turns)

    def kept_outcome(self, name: str) -> SessionOutcome | None:
        """Outcome on the disk of a session that is over; it waits for the disk, so another thread may call it."""
        if (closing := self._closing.get(name)) is not None:
            closing.kept.result()
        return self._store.outcome_of(name)

    def end(self, name: str, outcome: SessionOutcome) -> Callable[[], Ended]:
        """End a session; the function that is returned keeps it, and may be called in another thread.

        The same outcome again waits until the first is kept, and fails with it.

        Raises:
            OverError: it ended without an outcome, or with another one.
            CoevoError: there is no such session, or steps are not of its answers.
        """
        closing = self._closing.get(name)
        ended = self._store.ended.get(name) if closing is None else closing.end
        if ended is not None:
            if ended == Ended("outcome", outcome.digest):
                return closing.kept.result if closing is not None else lambda: ended
            if ended.end != "outcome":
                self._store.late += 1
            raise OverError(f"session {name} is over ({ended.end}): this outcome came too late")
        session = self._answered(name)
        _check_steps(name, outcome, len(session.tree.turns))
        return self._close(session, "outcome", outcome)

    def expire(self) -> list[Exception]:
        """Keep sessions that no request reached for too long as abandoned; one that cannot be kept stays open.

        Returns:
            The error of each that could not be kept.
        """
        before, failures = monotonic() - self._limits.idle, []
        for session in [each for each in tuple(self._open.values()) if each.used < before]:
            if session.waiting or session.name in self._reaching:
                continue
            try:
                self._close(session, "abandoned", None)()
            except Exception as error:  # noqa: BLE001  (one that cannot be kept does not stop the others)
                failures.append(error)
        return failures

    def counts(self) -> dict[str, int]:
        """Number of sessions that are open, and of those that ended, by reason; outcomes that came too late."""
        ended = {name: self._store.ends[name] for name in ("outcome", "abandoned", "lost")}
        return {"open": len(self._open), **ended, "late": self._store.late}

    def _answered(self, name: str) -> GatewaySession:
        """The open session of a name, if it has an answer. Raises ``CoevoError``."""
        if name not in self._open or not self._open[name].tree.turns:
            raise CoevoError(f"session {name} has no answer: ask for one before its outcome")
        return self._open[name]

    def _close(
        self, session: GatewaySession, end: Literal["outcome", "abandoned"], outcome: SessionOutcome | None
    ) -> Callable[[], Ended]:
        record = SessionRecord(
            session=session.name,
            end=end,
            outcome=outcome,
            mode=session.mode,
            group=session.group,
            task=session.task,
            policy=self.policy,
            bank=self.bank,
            turns=turn_records(session.tree.turns),
        )
        kept: Future[Ended] = Future()
        self._closing[session.name] = _Closing(record.ended, kept)
        del self._open[session.name]
        session.open = False

        def keep() -> Ended:
            try:
                kept.set_result(self._store.keep(record))
                session.memory.leave()
            except BaseException as error:  # noqa: BLE001  (whoever waits for the end gets it)
                session.open = True
                self._open[session.name] = session
                kept.set_exception(error)
            del self._closing[session.name]
            return kept.result()

        return keep

    def _same(self, session: GatewaySession, mode: Mode | None, group: str, task: SessionTask | None) -> GatewaySession:
        given = (mode or session.mode, group or session.group, task or session.task)
        if given != (session.mode, session.group, session.task):
            raise CoevoError(f"session {session.name} is open with another mode, group or task: choose another name")
        return session


def check_name(name: str) -> None:
    """Check that a session can have a name.

    Raises:
        CoevoError: it cannot.
    """
    if not RUN.fullmatch(name):
        raise CoevoError(f"{name[:40]!r} cannot name a session: use letters, digits, '.', '_' and '-', at most 100")


def _check_steps(name: str, outcome: SessionOutcome, count: int) -> None:
    """Check that steps report on the answers of a session, on each once at most.

    Raises:
        CoevoError: they do not.
    """
    for turn, reports in Counter(step.turn for step in outcome.steps).items():
        if turn >= count:
            raise CoevoError(f"steps: session {name} has {counted(count, 'answer')}, and turn {turn} is none of them")
        if reports > 1:
            raise CoevoError(f"steps: turn {turn} of session {name} has {reports} reports: send one")


def _over(name: str, ended: Ended) -> OverError:
    return OverError(f"session {name} is over ({ended.end}): open one of another name")
