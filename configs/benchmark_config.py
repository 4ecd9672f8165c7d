"""Benchmarks that a user downloads, and that coevo plays: a checkout of tau2-bench, and AppWorld's data."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.adapter_config import InterpreterPath
from coevo.configs.bank.writer_model_config import EndpointUrl, KeyName
from coevo.configs.base import MAX_FACTOR, MAX_SECONDS, MAX_SEED, Config, FromAnywhere
from coevo.configs.simulator_config import SimulatorConfig
from coevo.configs.trust_settings import Trusted

Folder = Annotated[str | None, Trusted("runs the code there"), FromAnywhere]
"""Folder of a download; null for the one that an environment variable names."""


class UserModelConfig(Config):
    """A model at an endpoint of OpenAI's chat completions API, which plays the user of a conversation."""

    url: Annotated[EndpointUrl, Trusted("sends conversations there")]
    """Address without ``/chat/completions``."""
    model: str = Field(min_length=1, max_length=200)
    """Name of the model at the endpoint."""
    key: Annotated[KeyName | None, Trusted("sends its value there")] = None
    """Name of the environment variable that holds the API key; null for an endpoint without keys."""
    temperature: float = Field(default=0.0, ge=0, le=MAX_FACTOR)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1, le=100_000)
    """Maximum length of a reply."""
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of the requests' seeds, which differ by task and by number of the request."""
    calls: int = Field(default=60, ge=1, le=10_000)
    """Requests of an episode, after which it is cut: the cost of an episode is bounded by it."""
    seconds: float = Field(default=20.0, gt=0, le=MAX_SECONDS)
    """Time limit of a request. An action, with all requests that follow it, has ``simulator.act_seconds``."""
    retries: int = Field(default=1, ge=0, le=100)
    """Maximum number of times that a request is sent again after a failure; each counts as a request."""


class BenchmarkConfig(Config):
    """Base of benchmarks that a user downloads."""

    path: Folder = None
    """Folder of the download; null for the one that the environment variable of the benchmark names."""
    python: InterpreterPath = None
    """Python interpreter with the benchmark's packages."""
    simulator: SimulatorConfig = SimulatorConfig()
    """Workers and limits."""


class Tau2Config(BenchmarkConfig):
    """Customer service of tau2-bench, from a checkout of its authors' repository."""

    type: Literal["tau2"] = "tau2"
    """Name of the environment."""
    domain: Literal["telecom", "retail", "airline"] = "telecom"
    """Domain; only telecom can be played without a user model."""
    tasks: Literal["base", "small"] = "base"
    """``base``: the tasks of published results, with the authors' split; ``small``: telecom's 20 tasks of one fault, of
    which a hash holds out a quarter."""
    policy: Literal["manual", "workflow"] = "manual"
    """Form of telecom's technical instructions."""
    faults: int | None = Field(default=None, ge=1, le=20)
    """Most faults that a telecom task combines, which is its difficulty; null for all tasks."""
    user: UserModelConfig | None = None
    """Model that plays the user; null for solo play, in which the agent has a ticket and the tools of both sides."""
    steps: int = Field(default=100, ge=1, le=10_000)
    """Actions after which an episode is cut, without a reward. ``rollout.max_turns`` also cuts it."""
    errors: int = Field(default=10, ge=1, le=10_000)
    """Calls with an error after which an episode is cut, without a reward."""

    @model_validator(mode="after")
    def _playable(self) -> Self:
        if self.domain != "telecom" and self.user is None:
            raise ValueError(f"domain={self.domain} has no solo play: set user.url and user.model, or domain=telecom")
        if self.domain != "telecom" and (self.tasks, self.policy, self.faults) != ("base", "manual", None):
            raise ValueError("tasks, policy and faults are telecom's: leave them out, or set domain=telecom")
        longest = 0.0 if self.user is None else self.user.seconds * (self.user.retries + 1)
        if longest > self.simulator.act_seconds:
            raise ValueError(
                f"user.seconds and user.retries allow {longest:g} s for one request, more than "
                f"simulator.act_seconds={self.simulator.act_seconds:g}: raise that, or lower them"
            )
        return self


class AppWorldConfig(BenchmarkConfig):
    """Code blocks in AppWorld, whose package and data the user has."""

    type: Literal["appworld"] = "appworld"
    """Name of the environment."""
    difficulty: int | None = Field(default=None, ge=1, le=3)
    """Most difficult training and development tasks that are played; null for all tasks."""
    steps: int = Field(default=40, ge=1, le=1000)
    """Code blocks after which an episode is cut and evaluated. ``rollout.max_turns`` also cuts it."""
    action_seconds: float = Field(default=30.0, gt=0, le=MAX_SECONDS)
    """Time limit of a code block; one that exceeds it ends its episode, unsolved."""
    output: int = Field(default=20_000, ge=100, le=1_000_000)
    """Most bytes of output of a code block that the agent reads."""

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        if self.action_seconds + MARGIN_S > self.simulator.act_seconds:
            raise ValueError(
                f"action_seconds={self.action_seconds:g} is not {MARGIN_S:g} below "
                f"simulator.act_seconds={self.simulator.act_seconds:g}: raise that, or lower it"
            )
        if self.output > self.simulator.longest:
            raise ValueError(f"output={self.output} is above simulator.longest={self.simulator.longest}: raise that")
        return self


MARGIN_S = 20.0
"""Seconds that an evaluation may take after a code block."""
