"""Start of an engine's servers and senders: which command, with which weights, and in which place."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.expected import Weights
from coevo.models.engines.vllm.replica import Start
from coevo.models.engines.vllm.sender import FILES, Delivery, Sender
from coevo.models.engines.vllm.vllm_server import (
    ServerSettings,
    VllmServer,
    command,
    sender_command,
    sender_settings,
    settings,
)
from coevo.utilities.processes import HERE, ONE_CORE, Launcher, Resources

POOL = "placement.pools.engines"


@dataclass(frozen=True, slots=True)
class ServerPlaces:
    """Places of an engine's servers.

    Attributes:
        launcher: source of places.
        resources: what each takes.
    """

    launcher: Launcher = HERE
    resources: Resources = ONE_CORE

    @property
    def gpus(self) -> int | None:
        """Number of GPUs of a server; None for this machine, where the engine's settings name them."""
        return None if self.launcher is HERE else int(self.resources.gpus)


ON_THIS_MACHINE = ServerPlaces()


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """Start of the processes of an engine.

    Attributes:
        config: of the engine.
        key: API key of the servers.
        directory: of their logs.
        places: of the servers.
    """

    config: VllmEngineConfig
    key: str
    directory: Path
    places: ServerPlaces

    def server(self, number: int, serving: Callable[[Weights], ServerSettings]) -> Start:
        """Function that starts a server with weights; ``serving`` gives its settings."""
        log = self.directory / f"server-{number}.log"

        def start(weights: Weights) -> VllmServer:
            (place,) = self.places.launcher.places(1, self.places.resources, POOL)
            try:
                asked = serving(weights)
                if not weights.adapter:
                    model = self.places.launcher.send(weights.directory, [place])
                    asked = replace(asked, model=str(place.folder / model))
                variables = settings(self.config, number, self.key, asked.on_gpus)
                return VllmServer(command(self.config, asked), variables, log, self.places.launcher, place)
            except BaseException:
                place.end()
                raise

        return start

    def sender(self, number: int) -> Delivery:
        """Start what delivers weights to a server, if ``rollout.engine.sync`` needs a process for it."""
        config = self.config
        if config.sync == "files":
            return FILES
        log = self.directory / f"sender-{number}.log"
        return Sender(sender_command(config), sender_settings(config, number, self.key), log, config.startup_timeout)
