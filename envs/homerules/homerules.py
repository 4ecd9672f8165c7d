"""HomeRules: an ALFWorld-like household in text whose houses hide conventions that only outcomes reveal.

The closed place of a class of objects, and the one of three appliances that works for a family, differ from house to
house; no prompt, task or other house reveals them. Searching costs steps, and a wrong appliance loses the episode.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import ClassVar, Literal, Self

from coevo.configs.env import HomeRulesConfig
from coevo.envs.base import Environment, Guide, Probe, Revealed, Step
from coevo.envs.homerules import house_demonstrations, house_expert, house_lessons, house_tasks, panels, rules
from coevo.envs.homerules.rules import HouseState, begin, observe
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task


class HomeRules(Environment[HouseState]):
    """A household whose facts are hidden: sixteen houses of one world.

    Args:
        level: 1 has four families, four places and one step more than the shortest plan; 2 has six families,
            sixteen places and ten steps.
        world: seed of the hidden conventions.
        houses: number of houses of the world for training and evaluation, 1 to 16.
        extra_lessons: number of additional unrelated lessons in demonstrations and in the probe, 0 to 8.
        drift: iterations after which one house, in turn, changes all its facts; None for a world that stays as it is.

    Raises:
        ConfigError: an option is out of its bounds.
    """

    name: ClassVar[str] = house_tasks.NAME
    version: str = "1"
    panels: Mapping[str, str] = {name: kind.about for name, kind in panels.PANELS.items()}
    has_expert: bool = True

    def __init__(
        self,
        level: Literal[1, 2] = 1,
        world: int = 0,
        houses: int = 16,
        extra_lessons: int = 0,
        drift: int | None = None,
    ) -> None:
        self._config = HomeRulesConfig.of(
            level=level, world=world, houses=houses, extra_lessons=extra_lessons, drift=drift
        )
        self._changes: Mapping[str, int] = {}

    def at(self, iteration: int) -> Self:
        """The world after the changes of its houses before an iteration, with ``drift``; otherwise the same."""
        if self._config.drift is None:
            return self
        later = copy(self)
        later._changes = house_tasks.changes_at(self._config, iteration)
        return later

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks with equally likely families, houses, objects and targets."""
        return house_tasks.sample(self._config, self._changes, count, key)

    def renewed(self, task: Task) -> Task:
        """The same goal with the facts of its house in force; itself without ``drift``, or in another world."""
        return task if self._config.drift is None else house_tasks.renewed(self._config, self._changes, task)

    def panel(self, name: str, size: int) -> Panel:
        """Held-out combinations, families in turn; a smaller panel is the beginning of a larger one.

        Houses of the training world have the facts in force (``at``); with ``drift``, the hash of the panel shows it.
        """
        return Panel(name, self.version, panels.panel(self._config, self._changes, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for ``seen-houses``, an empty list for ``no-bank``, all facts of the panel's world for the others."""
        return panels.panel_bank(self._config, panel)

    def revealed(self, episode: Episode) -> list[Revealed]:
        """Facts of the house that the feedback of a step reveals, as notes about it."""
        return house_lessons.revealed(episode)

    def needed(self, task: Task) -> tuple[str, ...]:
        """Facts of the house about the task's object and family."""
        return tuple(map(house_tasks.facts_of(task).lesson, house_tasks.goal_of(task).subjects))

    def start(self, task: Task) -> tuple[HouseState, str]:
        """First state of a task, in the hall with empty hands, and its observation."""
        state = begin(house_tasks.goal_of(task), house_tasks.facts_of(task))
        return state, observe(state)

    def step(self, states: Sequence[HouseState], actions: Sequence[str]) -> list[Step[HouseState]]:
        """Take ``go PLACE``, ``take OBJECT``, ``use APPLIANCE`` or ``put TARGET``, one for each state."""
        return [rules.advance(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """Actions of a task, with the places and appliances of its level that can be tried."""
        return house_tasks.guide(task)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of this level, sorted."""
        return house_tasks.words(self._config.level)

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Follow the lessons about its house and its own observations, and guess uniformly otherwise."""
        return house_expert.answer(moment, self._config.level, key)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` expert episodes, each of a fresh world, then ``drills`` recitation drills."""
        level, extra = self._config.level, self._config.extra_lessons
        played = [
            house_demonstrations.episode(level, extend(key, "episode", index), extra) for index in range(episodes)
        ]
        recited = [house_demonstrations.drill(level, extend(key, "drill", index)) for index in range(drills)]
        return [turn for turns in played for turn in turns] + recited

    def probe(self, size: int, key: Key) -> Probe:
        """Tasks of one fresh world, each with its relevant facts, and ``extra_lessons`` others."""
        return house_lessons.probe(size, self._config.level, key, self._config.extra_lessons)
