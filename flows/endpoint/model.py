"""The model behind the endpoint: a package, loaded and asked by coevo's own code, and its conversations."""

from collections import OrderedDict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from coevo.configs.load.open_parts import open_parts
from coevo.configs.outside_part import outside_parts
from coevo.flows.endpoint.chat_routes import ServedChat
from coevo.flows.endpoint.request_limits import DEFAULT
from coevo.lineage.trust import extend_path
from coevo.models.policy.context import Context
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.tasks.gateway.chat_agent import ChatAgent, root_of
from coevo.tasks.gateway.draw_queue import DrawQueue
from coevo.tasks.gateway.gateway_session import ANSWERS, GatewaySession, SessionLimits, check_name
from coevo.tasks.gateway.memory_bound import MemoryBound
from coevo.tasks.gateway.session_store import SessionTask
from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED
from coevo.utilities.errors import CoevoError

RETRIEVAL = "bank.retrieval"
"""The only part of a run that its agent needs."""
VERSION = version("mlflow")
"""Version of MLflow whose scoring server the endpoint answers like."""
ROWS = 64
"""Maximum prompts of chats that are drawn as one batch."""
CONVERSATIONS = 1024
"""Maximum conversations whose tokens are held."""


class UnfitError(ValueError):
    """The agent cannot answer the request; the message gives the reason."""


class Model:
    """A packaged agent. Nothing of the package is imported or run.

    Args:
        directory: directory of a package. A user has confirmed the settings of its run, of which a retrieval from
            another package is imported.
        registered: ``MODEL/VERSION`` that it is registered as; empty if it is not.
        body: maximum bytes of a chat's request.

    Attributes:
        chat: the agent for clients of chats.
        sessions: their conversations.

    Raises:
        CoevoError: it is not a package, or its policy, bank, encoder or retrieval cannot be read.
    """

    def __init__(self, directory: str, registered: str = "", body: int = DEFAULT.body) -> None:
        package = Package(Path(directory))
        if any(part.setting == RETRIEVAL for part in outside_parts(package.config)):
            extend_path(package.config)
            open_parts(package.config, RETRIEVAL)
        self._agent = Agent(package)
        self._lock = Lock()
        self.sessions = ServedSessions(SessionLimits(CONVERSATIONS))
        config, origin = package.config, package.origin
        sampling = config.rollout.sampling.model_dump(mode="json")
        bank = origin.name if config.bank is not None else ""
        self.chat = ServedChat(self._chat_agent(package), origin.name, bank, body, sampling, registered, strict=True)

    def predict(self, rows: Sequence[dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
        """One reply per row; one call at a time, since the engine has one set of buffers.

        Raises:
            UnfitError: the agent cannot write a prompt, with its reason.
        """
        seed = self._agent.seed if params["seed"] == ANY_SEED else params["seed"]
        asked = [TurnRequest.of(row) for row in rows]
        with self._lock:
            try:
                replies = self._agent.answer(
                    asked, self._agent.seed if seed == ANY_SEED else seed, params.get("logprobs", False)
                )
            except CoevoError as error:
                raise UnfitError(str(error)) from None
        return [reply.row() for reply in replies]

    def _chat_agent(self, package: Package) -> ChatAgent:
        """The agent behind chats: it has prompts of its own in the engine, which draws for one caller at a time."""
        config, engine = package.config, self._agent.engine
        view, tokenizer = engine.with_sampling(config.rollout.sampling), engine.policy.tokenizer
        queue = DrawQueue(view, ROWS, turn=self._lock)
        context, prompts = Context(config.context, tokenizer), MessagePrompts(tokenizer, config.context.template)
        root = root_of(config.seed, package.origin.revision)
        return ChatAgent(view, queue, context, prompts, package.index(), root)


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
