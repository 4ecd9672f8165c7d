"""Sessions of an agent that is only asked: they hold the tokens of conversations, and nothing of them is kept."""

from collections import OrderedDict

from coevo.tasks.gateway.gateway_session import ANSWERS, GatewaySession, SessionLimits, check_name
from coevo.tasks.gateway.memory_bound import MemoryBound
from coevo.tasks.gateway.session_store import SessionTask


class ServedSessions:
    """Conversations in progress, whose next requests continue the tokens that were drawn.

    A request says everything that its answer depends on, its task included. A conversation that grew too large, or was
    unused longest when others need room, is forgotten: the answers in its next request are encoded again.

    Args:
        limits: bounds, of which ``idle`` has no effect.
    """

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._open: OrderedDict[str, GatewaySession] = OrderedDict()
        self._memory = MemoryBound(limits.memory, "the conversations in progress are full: send fewer at once")

    def use(self, name: str, task: SessionTask | None = None) -> GatewaySession:
        """The session of a name as one request sees it, or one of this request alone if the name is empty.

        Requests of a name share its answers and their memory. Each has its own task, and counts no repeats of others.

        Raises:
            CoevoError: the name cannot be that of a session.
        """
        if not name:
            bound = MemoryBound(self._limits.each, "the request is too large: send fewer messages")
            return GatewaySession("", "evaluation", "", task or SessionTask(), memory=bound)
        session = self._open.pop(name, None) or self._new(name)
        if session.memory.used > self._limits.each // 2 or len(session.tree.turns) > ANSWERS // 2:
            session.memory.leave()
            session = self._new(name)
        session = self._open[name] = session.seen_with(task or SessionTask())
        while len(self._open) > 1 and self._is_full():
            _, unused = self._open.popitem(last=False)
            unused.memory.leave()
        return session

    def _new(self, name: str) -> GatewaySession:
        check_name(name)
        bound = MemoryBound(self._limits.each, f"session {name} is full: send fewer messages", self._memory)
        return GatewaySession(name, "evaluation", "", SessionTask(), memory=bound)

    def _is_full(self) -> bool:
        return len(self._open) > self._limits.sessions or self._memory.used > self._limits.memory // 2
