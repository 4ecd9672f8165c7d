"""Sokoban as an environment (Schrader 2018; board and rewards as in the agents' papers)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from coevo.configs.env import SokobanConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.sokoban import board_draws
from coevo.envs.sokoban.board import ACTIONS, SYMBOLS, UNKNOWN, SokobanState, advance
from coevo.envs.sokoban.solver import solution
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError

GUIDE = """An action is one word: up, down, left or right. It moves you by one cell, and pushes a box that is in the way
if the cell behind it is free. Boxes cannot be pulled.
# is a wall, _ floor, O a target, X a box, √ a box on a target, P you, S you on a target."""
WORDS = (
    "push pushed a box boxes onto off target targets moved is blocked by with wall behind it can no longer reach from ."
)


class Sokoban(Environment[SokobanState]):
    """Boxes that are pushed onto targets, on small boards drawn by this project.

    Args:
        size: cells along a side of a board, walls included, 6 to 8.
        boxes: number of boxes, 1 to 3.
        steps: actions after which an episode is cut, 10 to 200; every board can be solved within them.

    Raises:
        ConfigError: an option is out of its bounds.
    """

    name: ClassVar[str] = board_draws.NAME
    version: str = "1"
    panels: Mapping[str, str] = board_draws.PANELS
    has_expert: bool = True
    expert_guesses: ClassVar[bool] = False
    concurrent: ClassVar[bool] = True

    def __init__(self, size: int = 6, boxes: int = 2, steps: int = 30) -> None:
        self._config = SokobanConfig.of(size=size, boxes=boxes, steps=steps)
        self.reward_range = (-0.1 * steps - boxes - 1, 11.0 + boxes)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Different training boards."""
        return board_draws.sample(self._config, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Boards that training leaves out; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, board_draws.panel(self._config, name, size))

    def start(self, task: Task) -> tuple[SokobanState, str]:
        """First state and board of a task."""
        state = board_draws.state_of(task)
        return state, state.text()

    def step(self, states: Sequence[SokobanState], actions: Sequence[str]) -> list[Step[SokobanState]]:
        """Move by one cell for each state; any other text passes the time."""
        return [advance(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The four directions and the symbols; each direction is a verb of its own."""
        return Guide(GUIDE, ACTIONS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of every board, sorted."""
        numbers = map(str, range(1, self._config.size + 1))
        return tuple(sorted({*WORDS.split(), *UNKNOWN.split(), *SYMBOLS, *ACTIONS, *numbers}))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the solver plays from a state."""
        raise MissingPartError(f"{self.name}'s expert plays from a state: use advise")

    def advise(self, state: SokobanState, moment: Moment, key: Key) -> Answer:
        """First action of a shortest solution; the thought names the next push. ``up`` where nothing is left to do."""
        plan = solution(state) or ()
        return Answer(_next_push(state, plan), plan[0]) if plan else Answer("", ACTIONS[0])

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` shortest solutions, on boards for cloning alone.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        tasks = board_draws.sample(self._config, episodes, key, "fresh")
        return [turn for task in tasks for turn in expert_turns(self, task, key)]

    def probe(self, size: int, key: Key) -> Probe:
        """Boards for cloning alone, without lessons: only success counts."""
        fresh = board_draws.sample(self._config, size, extend(key, "probe"), "fresh")
        return Probe(tuple(fresh), ((),) * size, ())


def _next_push(state: SokobanState, plan: tuple[str, ...]) -> str:
    """The box that a plan pushes next, its place and the direction."""
    player, board = state.player, state.board
    for action in plan:
        player += board.moves[action]
        if player in state.boxes:
            return f"push box {board.place(player)} {action}"
    return ""
