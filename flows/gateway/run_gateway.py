"""Opening a gateway: the policy and the bank of a package, the sessions of its run, and a socket to listen on."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from coevo.configs.load.open_parts import open_parts
from coevo.configs.outside_part import outside_parts
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.flows.endpoint.listening import listening, url_of
from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.gateway.gateway_app import Gateway, Tokens, gateway_application
from coevo.flows.history.revision_reference import reading
from coevo.flows.packages.serving import Address, packaged
from coevo.flows.run_environment import run_environment
from coevo.flows.servers.server_secret import home, secret_of
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.trust import Consent, confirmed_before, extend_path
from coevo.lineage.workspace import Workspace
from coevo.models.engines.requests import Engine
from coevo.models.policy.context import Context
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.tasks.gateway.chat_agent import ChatAgent, root_of
from coevo.tasks.gateway.draw_queue import AT_ONCE, DrawQueue
from coevo.tasks.gateway.environment_outcome import OutcomeEnvironment
from coevo.tasks.gateway.gateway_session import SessionLimits, Sessions
from coevo.tasks.gateway.request_gate import RequestGate
from coevo.tasks.gateway.session_store import Mode, SessionStore
from coevo.tasks.gateway.session_tree import AnswerOrigin
from coevo.tasks.iteration.agent_sessions import AgentSessions, GatewayParts
from coevo.tasks.package.package import Package
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.assemble import open_engine
from coevo.tasks.run.weight_digests import check_weights
from coevo.tasks.session import Session
from coevo.utilities.errors import CoevoError

SERVER = "gateway"
"""Folder of the workspace for the gateways' secret and sessions."""
CONNECTIONS = 8192
"""Most concurrent connections; further ones get 503."""
BACKLOG = 2048
"""Most connections that wait to be taken."""
POLL_INTERVAL_S = 0.5
"""Seconds between two looks of the main thread, which gets signals."""
SHUTDOWN_S = 3
"""Seconds that answers have at the end."""
RETRIEVAL = "bank.retrieval"
OVER = "{run} has stopped: coevo resume {run} trains it further, coevo gateway {run} serves it as it is"
"""Answer to a request that waits when a run stops."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Settings of a gateway.

    Attributes:
        address: where it listens.
        mode: mode of a session that names none.
        sessions: bounds of its sessions.
        body: maximum bytes of a request.
    """

    address: Address = field(default_factory=Address)
    mode: Mode = "training"
    sessions: SessionLimits = field(default_factory=SessionLimits)
    body: int = 4 * 2**20


class ServedGateway:
    """A gateway that listens.

    Attributes:
        name: ``RUN@N`` of the policy.
        url: its root URL.
        token_file: file with its token.
    """

    def __init__(self, gateway: Gateway, settings: GatewaySettings, listener: socket.socket, token_file: Path) -> None:
        host, port = settings.address.host, listener.getsockname()[1]
        self.name, self.token_file = gateway.sessions.policy, token_file
        self.url = url_of(host, port)
        app = gateway_application(gateway, hosts_of(host, settings.address.allowed))
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
        bounds: dict[str, Any] = {"limit_concurrency": CONNECTIONS, "timeout_graceful_shutdown": SHUTDOWN_S}
        self._server = uvicorn.Server(uvicorn.Config(app, **quiet, **bounds))
        # Signals are for the main thread, which uvicorn would take them from.
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the server ends.

        Raises:
            CoevoError: it ended by itself.
        """
        while self._thread.is_alive():
            self._thread.join(POLL_INTERVAL_S)
        self.check()

    def check(self) -> None:
        """Check that the server listens.

        Raises:
            CoevoError: it ended by itself.
        """
        if not self._thread.is_alive():
            raise CoevoError(f"the gateway at {self.url} ended: start it again")

    def close(self) -> None:
        """End the server."""
        self._server.should_exit = True
        self._thread.join()


@contextmanager
def gateway_of(
    what: str, settings: GatewaySettings, workspace: Workspace, consent: Consent = confirmed_before
) -> Iterator[ServedGateway]:
    """Listen within the block.

    Args:
        what: ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS``.
        settings: of the gateway.
        workspace: the workspace.
        consent: called with what has to be confirmed of a registered version.

    Raises:
        CoevoError: the package does not exist, is neither proven nor confirmed, the port is in use, another gateway of
            the run is open, or the engine cannot be started.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(listening(settings.address.host, settings.address.port or 0, BACKLOG))
        secret = secret_of(workspace.root, SERVER)
        name, directory = stack.enter_context(packaged(what, workspace, consent))
        package = Package(directory)
        store = SessionStore(sessions_of(workspace.root, package.origin.run))
        stack.enter_context(closing(store))
        scratch = stack.enter_context(scratch_directory(workspace.root))
        with in_stage("loads the policy"):
            agent = stack.enter_context(_agent(package, scratch))
        bank = package.origin.name if package.config.bank is not None else ""
        sessions = Sessions(store, settings.sessions, settings.mode, package.origin.name, bank)
        sampling = package.config.rollout.sampling.model_dump(mode="json")
        environment = None
        if "/" not in name:  # a run, not a registered version
            environment = OutcomeEnvironment(
                partial(_environment_of, name, workspace), package.config.rollout.max_turns
            )
            stack.callback(environment.close)
        tokens = Tokens(secret, package.origin.run)
        gateway = Gateway(agent, sessions, tokens, settings.body, sampling, environment=environment)
        served = ServedGateway(gateway, settings, listener, home(workspace.root, SERVER) / "secret")
        yield stack.enter_context(closing(served))


@contextmanager
def training_gateway(session: Session, settings: GatewaySettings) -> Iterator[ServedGateway]:
    """Listen within the block for a run that learns from agents with their own loop, who are its source of episodes.

    Raises:
        CoevoError: the port is in use, or another gateway of the run is open.
    """
    config, paths, engine = session.config, session.stores.paths, session.parts.worker.engine
    root, address, gate = paths.workspace.root, settings.address, RequestGate(is_open=False)
    assert config.rollout.gateway is not None
    with ExitStack() as stack:
        listener = stack.enter_context(listening(address.host, address.port or 0, BACKLOG))
        tokens = Tokens(secret_of(root, SERVER), paths.name)
        directory = sessions_of(root, paths.name)
        store = stack.enter_context(closing(SessionStore(directory)))
        agent = stack.enter_context(chat_agent(config, engine))
        sessions = Sessions(store, settings.sessions, settings.mode, f"{paths.name}@0", "")
        sampling = config.rollout.sampling.model_dump(mode="json")
        environment = OutcomeEnvironment(partial(run_environment, config, root), config.rollout.max_turns)
        stack.callback(environment.close)
        gateway = Gateway(agent, sessions, tokens, settings.body, sampling, gate, environment)
        served = ServedGateway(gateway, settings, listener, home(root, SERVER) / "secret")
        stack.enter_context(closing(served))
        stack.callback(gate.end, OVER.format(run=paths.name))
        parts = GatewayParts(agent, store, sessions, gate)
        session.source = AgentSessions(config.rollout.gateway, directory, parts, served.check)
        yield served


def sessions_of(root: Path, run: str) -> Path:
    """Directory of the sessions of a run's gateways in a workspace."""
    return home(root, SERVER) / "sessions" / run


def _environment_of(revision: str, workspace: Workspace) -> Environment[Any]:
    """Environment of a served revision ``RUN@N``, with the data that it was made with.

    Raises:
        CoevoError: it cannot be built, or its data have changed.
    """
    with reading(revision, workspace) as opened:
        check_weights(opened.manifest, opened.config, workspace.root, opened.name)
        extend_path(opened.config)
        return run_environment(opened.config, workspace.root, opened)


@contextmanager
def _agent(package: Package, scratch: Path) -> Iterator[ChatAgent]:
    """Agent of a package, whose engine runs within the block."""
    config, origin = package.config, package.origin
    if any(part.setting == RETRIEVAL for part in outside_parts(config)):
        extend_path(config)
        open_parts(config, RETRIEVAL)
    bank = origin.name if config.bank is not None else ""
    with (
        closing(open_engine(config, package.directory / "policy", scratch / "engine")) as engine,
        chat_agent(config, engine) as agent,
    ):
        agent.serve(package.index(), root_of(config.seed, origin.revision), AnswerOrigin(origin.name, bank))
        yield agent


@contextmanager
def chat_agent(config: RunConfig, engine: Engine) -> Iterator[ChatAgent]:
    """Agent over a run's engine, without a bank, within the block."""
    served, tokenizer = config.rollout.engine, engine.policy.tokenizer
    rows, threads = (1, AT_ONCE) if isinstance(served, VllmEngineConfig) else (served.rows, 1)
    with closing(DrawQueue(engine, rows, threads)) as queue:
        context, prompts = Context(config.context, tokenizer), MessagePrompts(tokenizer, config.context.template)
        yield ChatAgent(engine, queue, context, prompts, None, root_of(config.seed, 0))
