"""BabyAI with customs, as an environment.

In each tower the door obeys one colour or one kind of thing. A task names two things, exactly one of which has that
attribute; the first thing that is tried on the door ends the episode, and only then the feedback reveals the custom.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from coevo.configs.env import BabyAIRulesConfig
from coevo.envs.babyai.babyai_contents import ACTIONS
from coevo.envs.babyai.rules import rules_demonstrations, rules_expert, rules_tasks
from coevo.envs.babyai.rules import tower_world as world
from coevo.envs.babyai.rules.room_episode import RoomPoint, begin
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Revealed, Step
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError


class BabyAIRules(Environment[RoomPoint]):
    """Towers of BabyAI rooms whose doors obey hidden customs (extra babyai).

    Args:
        world: seed of the customs; other seeds are other worlds.
        towers: number of towers for training and evaluation, 1 to 32.
        steps: actions after which an episode is cut.

    Raises:
        ConfigError: an option is out of its bounds.
    """

    name: ClassVar[str] = world.NAME
    version: str = "1"
    panels: Mapping[str, str] = {name: kind.about for name, kind in rules_tasks.PANELS.items()}
    has_expert: bool = True

    def __init__(self, world: int = 0, towers: int = 16, steps: int = 16) -> None:
        self._config = BabyAIRulesConfig.of(world=world, towers=towers, steps=steps)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks: towers, pairs of things and rooms uniform; none of the pairs is held out in its tower."""
        return rules_tasks.sample(self._config, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Held-out tasks, towers in turn; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, rules_tasks.panel(self._config, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for ``seen-towers``, an empty list for ``no-bank``, the true notes for ``other-facts``."""
        return rules_tasks.panel_bank(self._config, panel)

    def revealed(self, episode: Episode) -> list[Revealed]:
        """Custom of the tower, if something was tried on its door."""
        plan = rules_tasks.plan_of(episode.task)
        told = {world.outcome(opened, plan.attribute) for opened in (True, False)}
        text, when = world.note(plan.tower, plan.attribute), f"the door of {plan.tower} is to be opened"
        return [Revealed(text, when, step) for step, turn in enumerate(episode.turns) if turn.feedback in told]

    def needed(self, task: Task) -> tuple[str, ...]:
        """Custom of the task's tower."""
        plan = rules_tasks.plan_of(task)
        return (world.note(plan.tower, plan.attribute),)

    def true_notes(self) -> list[Entry]:
        """True note of each training tower: the bank that a perfect writer would write."""
        towers = world.TOWERS[: self._config.towers]
        return [world.true_note(f"train/{self._config.world}", tower) for tower in towers]

    def start(self, task: Task) -> tuple[RoomPoint, str]:
        """First state and view of a task. Raises ``CoevoError`` for a task of another environment."""
        state = begin(rules_tasks.plan_of(task))
        return state, state.observation()

    def step(self, states: Sequence[RoomPoint], actions: Sequence[str]) -> list[Step[RoomPoint]]:
        """Take one of the six actions of BabyAI for each state; any other text passes the time."""
        return [state.simulator.step(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The six actions, the same in every task; each is a verb of its own."""
        return Guide(rules_demonstrations.GUIDE, ACTIONS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of every world, sorted."""
        return world.words()

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: a view does not show the whole room."""
        raise MissingPartError(f"{self.name}'s expert plays from a state: use advise")

    def advise(self, state: RoomPoint, moment: Moment, key: Key) -> Answer:
        """Bring the thing that the notes of the moment name to the door; without a note, the nearer one of the two."""
        return rules_expert.answer(state, [note.text for note in moment.lessons], key)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` expert episodes, each of a fresh world.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        return rules_demonstrations.episodes(self._config, episodes, key)

    def probe(self, size: int, key: Key) -> Probe:
        """Tasks of one fresh world, each with the note of its tower."""
        return rules_demonstrations.probe(self._config, size, extend(key, "probe"))
