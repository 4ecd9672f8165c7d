"""Environments of other libraries: where they are, which tasks they play, and how actions and observations read."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from coevo.configs.bank.writer_model_config import EndpointUrl, KeyName
from coevo.configs.base import MAX_COUNT, MAX_FACTOR, MAX_PROCESSES, Config, FromAnywhere
from coevo.configs.rows_config import FunctionReference, SplitConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.configs.trust_settings import Trusted

InterpreterPath = Annotated[str | None, Trusted("starts it"), FromAnywhere]
"""Path of a Python interpreter; null for the one that runs coevo."""
Options = Annotated[dict[str, JsonValue], Trusted("passes them to that code")]
"""Keyword arguments of a constructor."""


def _listed(reward: object) -> object:
    """One function, or several, as a tuple."""
    if isinstance(reward, str):
        return (reward,)
    return tuple(reward) if isinstance(reward, list) else reward


RewardFunctions = Annotated[
    tuple[FunctionReference, ...], BeforeValidator(_listed), Trusted("imports and calls it"), Field(max_length=64)
]
SumOfRewards = Annotated[float, Field(ge=-MAX_COUNT, le=MAX_COUNT)]
ToolName = Annotated[str, Field(min_length=1, max_length=200)]
MAX_ACTIONS = 1000


class AdapterConfig(Config):
    """Base of the environments of other libraries."""

    instruction: str = ""
    """Task in words, where no row has one; by default one that names the environment."""
    tasks: int = Field(default=1000, ge=1, le=MAX_COUNT)
    """Seeds of training tasks, from 0, where there are no rows. The panel ``held-out`` has seeds from 10**9 on."""
    steps: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    """Actions after which an episode is cut; null for the environment's own limit. ``rollout.max_turns`` also cuts."""
    reward_range: tuple[SumOfRewards, SumOfRewards] = (0.0, 1.0)
    """Least and largest sum of an episode's rewards. A batch beyond it stops the run."""
    success: float | None = Field(default=None, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Least sum of rewards of an episode that ended and counts as solved; null for the environment's own rule."""
    repeats: bool = True
    """True if equal actions give equal steps, which replays need; ``coevo envs check`` tests it."""
    python: InterpreterPath = None
    """Python interpreter of the workers, for packages that conflict with coevo's; it needs numpy and pydantic."""
    simulator: SimulatorConfig = SimulatorConfig()
    """Workers and limits."""

    @field_validator("reward_range")
    @classmethod
    def _ordered(cls, ends: tuple[float, float]) -> tuple[float, float]:
        if ends[0] >= ends[1]:
            raise ValueError(f"{list(ends)} is no range: set the least sum of rewards, then the largest")
        return ends

    @property
    def table(self) -> str | None:
        """Path of the table of tasks; None for tasks by seed."""
        return getattr(self, "rows", None)

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of the user's code that the settings name, sorted."""
        references = [getattr(self, name, None) for name in ("id", "words", "factory", "taskset")]
        found = {each.partition(":")[0] for each in (*references, *getattr(self, "reward", ())) if each and ":" in each}
        return tuple(sorted(found))


class GymnasiumConfig(AdapterConfig):
    """An environment of Gymnasium with discrete or text actions; needs the extra ``gymnasium``."""

    type: Literal["gymnasium"] = "gymnasium"
    """Name of the environment."""
    id: Annotated[str, Trusted("imports it")] = Field(min_length=1, max_length=300)
    """Registered id, such as ``Taxi-v4``; ``module:Game-v0`` imports the module that registers it."""
    options: Options = Field(default_factory=dict)
    """Keyword arguments of ``gymnasium.make``."""
    words: Annotated[str | None, Trusted("imports and calls it")] = Field(
        default=None, max_length=300, pattern=r"^(ansi|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"
    )
    """Observations in words: ``package.module:function``, called with an observation; ``ansi``, the environment's own
    drawing; null for texts as they are, and numbers of discrete and small spaces."""
    actions: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), max_length=MAX_ACTIONS)
    """Names of discrete actions, in the order of their numbers; without them, and beside them, numbers are actions."""

    @field_validator("actions")
    @classmethod
    def _told_apart(cls, actions: tuple[str, ...]) -> tuple[str, ...]:
        for each in actions:
            if each != " ".join(each.split()) or each.isdecimal() or actions.count(each) > 1:
                raise ValueError(f"{each!r} is no name of an action: use different names, each of words, not a number")
        return actions


class FactoryConfig(AdapterConfig, SplitConfig):
    """A class with TRL's protocol of environments: ``reset``, public methods as tools, ``get_reward``."""

    type: Literal["factory"] = "factory"
    """Name of the environment."""
    factory: Annotated[FunctionReference, Trusted("imports and calls it")]
    """``package.module:Class``, or a function that returns an instance."""
    options: Options = Field(default_factory=dict)
    """Keyword arguments of its call."""
    rows: Annotated[str | None, Trusted("reads tasks there"), FromAnywhere] = None
    """Table of tasks (.jsonl, .csv, .parquet), whose rows are arguments of ``reset``; null for ``reset(seed=…)``."""
    reward: RewardFunctions = ()
    """TRL's reward functions, ``package.module:function``, which add up with ``get_reward``."""
    done: str = Field(default="done", max_length=200)
    """Attribute of an instance that says whether its episode is over; one that has none ends by the tool ``answer``."""
    steps: int = Field(default=16, ge=1, le=MAX_COUNT)
    """Calls after which an episode is cut, and rewarded. ``rollout.max_turns`` is at least as large."""


class OpenEnvConfig(AdapterConfig, SplitConfig):
    """An environment of OpenEnv by the address of its server; needs the extra ``openenv``."""

    type: Literal["openenv"] = "openenv"
    """Name of the environment."""
    url: Annotated[EndpointUrl, Trusted("plays there")]
    """Address of the server, such as ``http://localhost:8000``."""
    action: str | None = Field(default=None, max_length=200)
    """Field of an action that holds the policy's text; null for the only required one, else actions are calls."""
    observation: str | None = Field(default=None, max_length=200)
    """Field of an observation that the policy sees; null for all of them."""
    rows: Annotated[str | None, Trusted("reads tasks there"), FromAnywhere] = None
    """Table of tasks, whose rows are arguments of ``reset``; null for ``reset(seed=…)``."""


class McpConfig(AdapterConfig, SplitConfig):
    """The tools of an MCP server as actions: a table of tasks, calls, and an answer that functions reward."""

    type: Literal["mcp"] = "mcp"
    """Name of the environment."""
    command: Annotated[
        tuple[Annotated[str, Field(max_length=4096)], ...], Trusted("starts it"), Field(max_length=MAX_PROCESSES)
    ] = ()
    """Command of a server that speaks over its standard input and output; one is started for each episode."""
    url: Annotated[EndpointUrl | None, Trusted("calls tools there")] = None
    """Address of a server that speaks streamable HTTP, in place of a command; each episode is a session."""
    key: Annotated[KeyName | None, Trusted("sends its value there")] = None
    """Name of the environment variable with a token for ``url``; null for a server without one."""
    tools: tuple[ToolName, ...] = Field(default=(), max_length=MAX_PROCESSES)
    """Tools that are offered; by default all that the server has."""
    rows: Annotated[str, Trusted("reads tasks there"), FromAnywhere] = Field(min_length=1)
    """Table of tasks (.jsonl, .csv, .parquet)."""
    reward: RewardFunctions = Field(min_length=1)
    """Functions ``f(answer, row) -> float``, ``package.module:function``, whose values add up."""
    steps: int = Field(default=16, ge=1, le=MAX_COUNT)
    """Calls after which an episode is cut, with an empty answer. ``rollout.max_turns`` is at least as large."""

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("name one server: its command, or its url")
        if self.key is not None and self.url is None:
            raise ValueError("key is for a url: leave it out beside a command")
        return self


class VerifiersConfig(AdapterConfig, SplitConfig):
    """A taskset of verifiers (v1) in an interpreter of its own, whose packages conflict with coevo's."""

    type: Literal["verifiers"] = "verifiers"
    """Name of the environment."""
    taskset: Annotated[str, Trusted("imports it")] = Field(min_length=1, max_length=300)
    """``package.module:Class``, or the id of a taskset that ``python`` has. Its first ``tasks`` tasks are played."""
    options: Options = Field(default_factory=dict)
    """Settings of the taskset, as verifiers has them under ``env.taskset``."""
    steps: int = Field(default=16, ge=1, le=MAX_COUNT)
    """Calls of tools after which an episode is cut, and rewarded. ``rollout.max_turns`` is at least as large."""
