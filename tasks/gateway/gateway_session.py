"""Sessions of the gateway: what is open, how long, and how it ends.

A session that ended is kept by ``session_store`` before its client hears of it. One that is open is lost with the
process, and nothing else is.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from coevo.lineage.names import RUN
from coevo.tasks.gateway.session_store import (
    Ended,
    SessionOutcome,
    SessionRecord,
    SessionStore,
    SessionTask,
    turn_records,
)
from coevo.tasks.gateway.session_tree import SessionTree
from coevo.tasks.play.retrieve import Experience
from coevo.utilities.errors import CoevoError, counted

Mode = Literal["training", "evaluation"]
ANSWERS = 10_000
"""Maximum answers of a session."""


class OverError(CoevoError):
    """The session has ended."""


class FullError(CoevoError):
    """There are as many sessions, or answers, as the gateway may hold."""


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
        used: time of its latest request, in seconds of a clock that only moves forward.
        open: False once it has an outcome.
        waiting: number of its requests whose answers are being drawn.
    """

    name: str
    mode: Mode
    group: str
    task: SessionTask
    tree: SessionTree = field(default_factory=SessionTree)
    experience: Experience | None = None
    used: float = field(default_factory=monotonic)
    open: bool = True
    waiting: int = 0
    _asked: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Answers of a request are drawn within the block; the session is not abandoned meanwhile."""
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
            self.used = monotonic()

    def task_of(self, first: str) -> SessionTask:
        """Its task, with the first user's message as the instruction of one that has none."""
        missing = {"id": self.name, "instruction": first}
        return self.task.model_copy(
            update={name: value for name, value in missing.items() if not getattr(self.task, name)}
        )

    def repeated(self, prompt: str, count: int) -> int:
        """Number of answers to a prompt that were asked for before; ``count`` more are now."""
        before = self._asked[prompt]
        self._asked[prompt] += count
        return before


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of a gateway.

    Attributes:
        sessions: maximum number of open sessions.
        idle: seconds without a request after which a session is abandoned.
    """

    sessions: int = 4096
    idle: float = 3600.0


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

    def open(
        self, name: str, mode: Mode | None = None, group: str = "", task: SessionTask | None = None
    ) -> GatewaySession:
        """The session of a name, which is opened if there is none.

        Raises:
            OverError: it has ended.
            FullError: as many are open as may be.
            CoevoError: it is open with another mode, group or task, or the name is none.
        """
        if name in self._open:
            return self._same(self._open[name], mode, group, task)
        if not RUN.fullmatch(name):
            raise CoevoError(f"{name[:40]!r} cannot name a session: use letters, digits, '.', '_' and '-', at most 100")
        if name in self._store.ended:
            raise OverError(f"session {name} is over ({self._store.ended[name].end}): open one of another name")
        self.expire()
        if len(self._open) >= self._limits.sessions:
            raise FullError(f"{counted(len(self._open), 'session')} are open: report outcomes, or raise --max-sessions")
        self._store.opened(name)
        self._open[name] = GatewaySession(name, mode or self.mode, group, task or SessionTask())
        return self._open[name]

    def use(self, name: str) -> GatewaySession:
        """The session of a name, for one more request.

        Raises:
            CoevoError: as ``open``, or it has too many answers.
        """
        session = self.open(name)
        if len(session.tree.turns) >= ANSWERS:
            raise FullError(f"session {name} has {ANSWERS} answers, the most of a session: report its outcome")
        session.used = monotonic()
        return session

    def end(self, name: str, outcome: SessionOutcome) -> Callable[[], Ended]:
        """End a session; the function that is returned keeps it, and may be called in another thread.

        Raises:
            OverError: it ended without an outcome, or with another one.
            CoevoError: there is no such session.
        """
        ended = self._store.ended.get(name)
        if ended is not None:
            if ended.end == "outcome" and ended.digest == outcome.digest:
                return lambda: ended
            if ended.end != "outcome":
                self._store.late += 1
            raise OverError(f"session {name} is over ({ended.end}): this outcome came too late")
        if name not in self._open or not self._open[name].tree.turns:
            raise CoevoError(f"session {name} has no answer: ask for one before its outcome")
        return self._close(self._open[name], "outcome", outcome)

    def expire(self) -> None:
        """Keep sessions that no request reached for too long as abandoned."""
        before = monotonic() - self._limits.idle
        for session in [each for each in self._open.values() if each.used < before and not each.waiting]:
            self._close(session, "abandoned", None)()

    def counts(self) -> dict[str, int]:
        """Number of sessions that are open, and of those that ended, by reason; outcomes that came too late."""
        ended = Counter(each.end for each in self._store.ended.values())
        return {"open": len(self._open), **{name: ended[name] for name in ("outcome", "abandoned", "lost")},
                "late": self._store.late}  # fmt: skip

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
        del self._open[session.name]
        session.open = False

        def keep() -> Ended:
            try:
                return self._store.keep(record)
            except OSError:
                session.open = True
                self._open[session.name] = session
                raise

        return keep

    def _same(self, session: GatewaySession, mode: Mode | None, group: str, task: SessionTask | None) -> GatewaySession:
        given = (mode or session.mode, group or session.group, task or session.task)
        if given != (session.mode, session.group, session.task):
            raise CoevoError(f"session {session.name} is open with another mode, group or task: choose another name")
        return session
