"""Processes that an engine starts: its servers, and the senders of their weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coevo.configs.rollout.engine_config import VllmEngineConfig
from coevo.models.engines.vllm.expected import Weights
from coevo.models.engines.vllm.replica import Start
from coevo.models.engines.vllm.sender import FILES, Delivery, Sender, SenderLaunch
from coevo.models.engines.vllm.server_command import ServerSettings, command, sender_command, sender_settings, settings
from coevo.models.engines.vllm.vllm_server import VllmServer, inherited


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """Start of the processes of an engine.

    Attributes:
        config: of the engine.
        key: API key of the servers.
        place: directory of their logs.
    """

    config: VllmEngineConfig
    key: str
    place: Path

    def server(self, number: int, serving: Callable[[Weights], ServerSettings]) -> Start:
        """Function that starts a server with weights; ``serving`` gives its settings."""
        log = self.place / f"server-{number}.log"

        def start(weights: Weights) -> VllmServer:
            return VllmServer(command(self.config, serving(weights)), settings(self.config, number, self.key), log)

        return start

    def sender(self, number: int) -> Delivery:
        """Start what delivers weights to a server, if ``rollout.engine.sync`` needs a process for it."""
        config = self.config
        if config.sync == "files":
            return FILES
        environment = {**inherited(), **sender_settings(config, number, self.key)}
        log = self.place / f"sender-{number}.log"
        return Sender(SenderLaunch(sender_command(config), environment, log, config.startup_timeout))
