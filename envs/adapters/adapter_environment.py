"""Environments of other libraries, as a run sees them: tasks, panels, and what their simulators say of themselves.

Nothing of a library is imported in this process: its simulator is asked, in a worker.
"""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from coevo.configs.adapter_config import (
    AdapterConfig,
    FactoryConfig,
    GymnasiumConfig,
    McpConfig,
    OpenEnvConfig,
    VerifiersConfig,
)
from coevo.configs.proxies import reach
from coevo.configs.rows_config import HELD_OUT, TRAIN, SplitConfig
from coevo.configs.run_config import digest
from coevo.envs.adapters.episode_parts import SimulatorFacts, facts_of
from coevo.envs.adapters.factory_episodes import FactorySimulator
from coevo.envs.adapters.gymnasium_games import GymnasiumSimulator
from coevo.envs.adapters.mcp_tools import McpSimulator
from coevo.envs.adapters.openenv_sessions import OpenEnvSimulator
from coevo.envs.adapters.verifiers_tasks import VerifiersSimulator
from coevo.envs.base import Guide, Probe
from coevo.envs.failures import sound
from coevo.envs.rows.table_splits import RowTasks
from coevo.envs.rows.task_table import Row, load_table, table_of
from coevo.envs.stateful.interface import Simulator
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.records.answer_form import AnswerForm, BlockForm, WholeForm
from coevo.records.demonstration import Answer, Demonstration, Moment, PastTurn
from coevo.records.draws import Key, extend, generator, key
from coevo.records.inert import encodable
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError

ConfigT = TypeVar("ConfigT", bound=AdapterConfig)
FIRST_HELD_OUT = 10**9
"""Seed of the first task of the panel."""
FIRST_SHOWN = 2 * 10**9
"""Seed of the first task of demonstrations and of the reading probe."""
SHOWN_EPISODES = 64
"""Episodes that demonstrations show moments of."""
SHOWN_TURNS = 20
"""Most turns of such an episode."""
ANSWERS: Mapping[str, AnswerForm | None] = {"": None, "block": BlockForm(), "whole": WholeForm()}
"""Form of an answer, by the name that a simulator gives it."""
INDIFFERENT = {"tasks", "repeats", "python", "simulator", "split", "held_out", "split_seed", "scope", "rows"}
"""Settings that do not decide how a task plays."""


class AdapterEnvironment(StatefulEnvironment, Generic[ConfigT]):
    """Base of the environments of other libraries.

    Args:
        config: the environment, and its tasks.

    Raises:
        ConfigError: the table of tasks cannot be read.
    """

    version = "1"
    panels: Mapping[str, str] = {HELD_OUT: "tasks that training leaves out"}
    expert_guesses = False
    brings_rows = False
    """True if the simulator has the tasks."""
    title = "environment"
    """Name of the environment in an instruction, where no setting has one."""

    def __init__(self, config: ConfigT) -> None:
        self.config, self.simulator, self.python = config, config.simulator, config.python
        self.repeats, self.reward_range = config.repeats, config.reward_range
        self.version = f"1-{digest(config.model_dump(mode='json', exclude=INDIFFERENT))[:8]}"
        if config.table is not None:
            assert self._rows is not None
            self.panels = self._rows.panels

    @abstractmethod
    def program(self) -> Simulator:
        """The simulator that workers get: plain values, since their interpreter may have other packages."""

    def open(self, task: Task, key: Key) -> Any:
        """Start an episode in this process, to debug it; runs start theirs in workers."""
        return self.program().open(task, key)

    @cached_property
    def workers(self) -> LocalWorkers:
        """Workers of this machine."""
        if address := getattr(self.config, "url", None):
            reach(address, "env.url", by_requests=False)  # in the environment that they inherit
        return LocalWorkers(self.program(), self.simulator, self.python)

    @cached_property
    def facts(self) -> SimulatorFacts:
        """Description that the simulator gives of itself; a worker is asked once.

        Raises:
            ConfigError: it cannot be played.
        """
        return facts_of(self.workers.facts(), self.name)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training tasks, each once; all of them if there are no more."""
        if self._rows is not None:
            return self._rows.sample(count, key)
        drawn = generator(key).choice(self.config.tasks, min(count, self.config.tasks), replace=False)
        return [self._of_seed(int(seed), TRAIN) for seed in drawn]

    def panel(self, name: str, size: int) -> Panel:
        """Tasks that training leaves out; a smaller panel is the beginning of a larger one."""
        if self._rows is not None:
            return Panel(name, self.version, self._rows.panel(name, size))
        if name not in self.panels:
            raise CoevoError(f"{self.name} has the panel {HELD_OUT}, not {name!r}")
        return Panel(name, self.version, tuple(self._of_seed(FIRST_HELD_OUT + n, name) for n in range(size)))

    def guide(self, task: Task) -> Guide:
        """Actions or tools, as the simulator describes them."""
        facts = self.facts
        return Guide(facts.guide, facts.verbs, facts.tools, ANSWERS[facts.answer])

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Words of tasks, observations and actions, where they are few."""
        if not self.facts.words:
            return ()
        known = f"{self._instruction} reward ; the episode is over".split()
        return tuple(sorted({*self.facts.words, *known}))

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Random actions at moments of random episodes: the form of an answer, and nothing about which is right."""
        moments, verbs, rng = self._moments, self.facts.verbs, generator(key)
        chosen = rng.integers(len(moments), size=episodes + drills)
        actions = rng.integers(len(verbs), size=episodes + drills)
        return [
            Demonstration(moments[moment], Answer("", verbs[action]))
            for moment, action in zip(chosen, actions, strict=True)
        ]

    def probe(self, size: int, key: Key) -> Probe:
        """Fresh tasks, without lessons."""
        if not self.facts.verbs or self._rows is not None:
            raise self.untaught("probe")
        first = FIRST_SHOWN + SHOWN_EPISODES + int(generator(extend(key, "seeds")).integers(10**6))
        return Probe(tuple(self._of_seed(first + n, "probe") for n in range(size)), ((),) * size, ())

    @cached_property
    def _rows(self) -> RowTasks | None:
        """Tasks of a table, or those that the simulator has; None for tasks by seed."""
        if not isinstance(self.config, SplitConfig) or (self.config.table is None and not self.brings_rows):
            return None
        rows = self.facts.rows if self.config.table is None else ()
        table = table_of(rows, self.title) if self.config.table is None else load_table(self.config.table)
        return RowTasks(table, self.config, self._of_row)

    @property
    def _instruction(self) -> str:
        return self.config.instruction or f"reach the goal of {self.title}"

    def _of_seed(self, seed: int, split: str) -> Task:
        return Task(self.name, "seed", self._instruction, self.title, split, {"seed": seed})

    def _of_row(self, row: Row, split: str) -> Task:
        assert isinstance(self.config, SplitConfig)
        scope = row.get(self.config.scope) if self.config.scope else ""
        asked = prompted(row.get(self.config.prompt)) or self._instruction
        return Task(self.name, "row", asked, str(scope or ""), split, {"row": dict(row)})

    @cached_property
    def _moments(self) -> list[Moment]:
        """Moments of episodes with random actions.

        Raises:
            MissingPartError: the actions cannot be listed.
        """
        verbs, found = self.facts.verbs, list[Moment]()
        if not verbs or self._rows is not None:
            raise self.untaught("demonstrations")
        tasks = [self._of_seed(FIRST_SHOWN + n, "shown") for n in range(SHOWN_EPISODES)]
        places = [(state, seen, tuple[PastTurn, ...]()) for state, seen in map(sound, self.try_start(tasks))]
        for turn in range(SHOWN_TURNS):
            found += [Moment(self._instruction, (), past, seen, self.facts.guide) for _, seen, past in places]
            drawn = generator(key("shown", turn)).integers(len(verbs), size=len(places))
            actions = [verbs[index] for index in drawn]
            steps = map(sound, self.try_step([state for state, _, _ in places], actions))
            ended = zip(places, actions, steps, strict=True)
            places = [
                (step.state, step.observation, (*past, PastTurn(seen, action, step.feedback)))
                for (_, seen, past), action, step in ended
                if not step.done
            ]
        self.release([state for state, _, _ in places])
        return found

    def _settings(self, *names: str) -> dict[str, Any]:
        """Settings for the simulator, as plain values."""
        most = self.config.reward_range[1] if self.config.success is None else self.config.success
        every = self.config.model_dump(mode="json") | {"success": most, "longest": self.simulator.longest}
        return {name: every[name] for name in ("success", "longest", *names)}


class GymnasiumEnvironment(AdapterEnvironment[GymnasiumConfig]):
    """Environments of Gymnasium with discrete or text actions (extra gymnasium)."""

    name = "gymnasium"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The id."""
        return self.config.id

    def program(self) -> GymnasiumSimulator:
        """Games of Gymnasium."""
        rest = self._settings("id", "options", "words", "actions", "steps")
        return GymnasiumSimulator(rest | {"success": self.config.success})


class FactoryEnvironment(AdapterEnvironment[FactoryConfig]):
    """Classes with TRL's protocol of environments, unchanged."""

    name = "factory"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The class."""
        return self.config.factory.rpartition(":")[2]

    def program(self) -> FactorySimulator:
        """Episodes of the class."""
        return FactorySimulator(self._settings("factory", "options", "reward", "done", "steps"))


class VerifiersEnvironment(AdapterEnvironment[VerifiersConfig]):
    """Tasksets of verifiers (v1), in an interpreter of their own (env.python)."""

    name, brings_rows = "verifiers", True

    @property
    def title(self) -> str:  # type: ignore[override]
        """The taskset."""
        return self.config.taskset.rpartition(":")[2]

    def program(self) -> VerifiersSimulator:
        """Episodes of the taskset."""
        return VerifiersSimulator(self._settings("taskset", "options", "tasks", "steps"))


class OpenEnvEnvironment(AdapterEnvironment[OpenEnvConfig]):
    """Servers of OpenEnv, by their address (extra openenv)."""

    name = "openenv"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The address."""
        return self.config.url

    def program(self) -> OpenEnvSimulator:
        """Sessions of the server."""
        return OpenEnvSimulator(self._settings("url", "action", "observation", "steps"))


class McpEnvironment(AdapterEnvironment[McpConfig]):
    """Tools of an MCP server, and rows with a reward."""

    name = "mcp"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The server."""
        return self.config.url or self.config.command[0]

    def program(self) -> McpSimulator:
        """Sessions of the server; the token comes from this process: workers may have been started before it was set.

        Raises:
            ConfigError: there is no token.
        """
        token = os.environ.get(self.config.key, "") if self.config.key else ""
        if self.config.key and not (token.isascii() and token.isprintable() and token):
            raise ConfigError(f"env.key: the environment has no token in {self.config.key}: set it")
        return McpSimulator(self._settings("command", "url", "tools", "reward", "steps"), token)


def prompted(value: Any) -> str:
    """Task in words: a text, or the texts of a conversation."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Sequence):
        return ""
    said = [each.get("content") for each in value if isinstance(each, Mapping)]
    return encodable("\n\n".join(each for each in said if isinstance(each, str)))
