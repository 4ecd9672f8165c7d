"""BabyAI in words: the package's rooms and rules, described as in BabyAI-Text, with its bot as expert."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from coevo.configs.env import BabyAIConfig
from coevo.envs.babyai import babyai_contents, babyai_demonstrations, babyai_tasks
from coevo.envs.babyai.level_episode import LevelPoint, begin
from coevo.envs.babyai.level_plan import plan_of
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Step
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError


class BabyAI(Environment[LevelPoint]):
    """Rooms of BabyAI with things to go to, pick up, open and put down (extra babyai).

    Args:
        kinds: kinds of tasks, equally likely.
        distractors: number of things that no instruction names, 0 to 10.
        steps: actions after which an episode is cut; None for 64 (goto, pickup) or 128.

    Raises:
        ConfigError: an option is out of its bounds.
    """

    name: ClassVar[str] = babyai_contents.NAME
    version: str = "1"
    panels: Mapping[str, str] = {name: kind.about for name, kind in babyai_tasks.PANELS.items()}
    has_expert: bool = True
    expert_guesses: ClassVar[bool] = False

    def __init__(self, kinds: Sequence[str] = ("goto",), distractors: int = 8, steps: int | None = None) -> None:
        self._config = BabyAIConfig.of(kinds=tuple(kinds), distractors=distractors, steps=steps)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks; none of their instructions names a held-out pair of colour and thing."""
        return babyai_tasks.sample(self._config, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Held-out tasks, kinds in turn; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, babyai_tasks.panel(self._config, name, size))

    def start(self, task: Task) -> tuple[LevelPoint, str]:
        """First state and view of a task.

        Raises:
            CoevoError: the task is of another environment, or the installed minigrid draws another level for it.
        """
        state = begin(plan_of(task))
        if state.simulator.mission != task.instruction:
            raise CoevoError(
                f"task {task.id} says {task.instruction!r}, but minigrid draws a level that asks "
                f"{state.simulator.mission!r}: install the version of minigrid that it was recorded with"
            )
        return state, state.simulator.view(())

    def step(self, states: Sequence[LevelPoint], actions: Sequence[str]) -> list[Step[LevelPoint]]:
        """Take one of the six actions for each state; any other text passes the time."""
        return [state.simulator.step(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The six actions, the same in every task; each is a verb of its own."""
        return Guide(babyai_contents.GUIDE, babyai_contents.ACTIONS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of every kind, sorted."""
        return babyai_contents.words()

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the bot remembers everything that it has seen, which is more than a moment contains."""
        raise MissingPartError("babyai's expert plays from a state: use advise")

    def advise(self, state: LevelPoint, moment: Moment, key: Key) -> Answer:
        """Action of the package's bot, which has watched the episode from its beginning."""
        return state.simulator.advice(state.actions)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` episodes of the bot.

        Raises:
            ConfigError: drills are requested; BabyAI has nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: babyai has nothing to recite; set warmstart.drills=0")
        return babyai_demonstrations.episodes(self._config, episodes, key)

    def probe(self, size: int, key: Key) -> Probe:
        """Fresh tasks without lessons: only success counts, since BabyAI has no lessons to read."""
        fresh = babyai_tasks.sample(self._config, size, extend(key, "probe"), "fresh")
        return Probe(tuple(fresh), ((),) * size, ())
