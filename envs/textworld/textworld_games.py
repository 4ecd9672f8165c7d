"""The environment over TextWorld's games (Côté et al. 2018)."""

from pathlib import Path
from typing import Any

from coevo.envs.base import Guide, Step
from coevo.envs.stateful.stateful_environment import SimulatorPosition, StatefulEnvironment
from coevo.envs.textworld.games import FOLDER, GameSize, commands, game_file, open_game, solution, things
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, generator, seed_of
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError

HELD_OUT = 10**6
"""Seed of the first game that training leaves out."""
VERBS = ("look", "inventory", "examine", "go", "take")
"""Verbs that every game accepts."""


class TextWorld(StatefulEnvironment):
    """Text adventures generated from seeds: move, take, open and place things until the goal is reached."""

    name, version, panels = "textworld", "1", {"new-games": "games that training leaves out"}
    has_expert, expert_guesses = True, False

    def __init__(
        self, rooms: int = 2, objects: int = 4, quest: int = 2, games: int = 1000, folder: str = str(FOLDER)
    ) -> None:
        if not all(1 <= number <= 20 for number in (rooms, objects, quest)) or not 1 <= games <= HELD_OUT:
            raise ValueError(f"rooms, objects and quest are 1 to 20, games 1 to {HELD_OUT}")
        self.size, self.games, self.folder = GameSize(rooms, objects, quest), games, Path(folder)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training games, each once as long as there are enough."""
        drawn = generator(key).choice(self.games, count, replace=count > self.games)
        return [self._task(int(seed), "train") for seed in drawn]

    def panel(self, name: str, size: int) -> Panel:
        """Games that training leaves out."""
        if name not in self.panels:
            raise CoevoError(f"textworld has the panel new-games, not {name!r}")
        return Panel(name, self.version, tuple(self._task(HELD_OUT + n, name) for n in range(size)))

    def guide(self, task: Task) -> Guide:
        """Forms of the commands that a game has, and the names of its things."""
        kinds = things(self._file(task))
        return Guide(f"One command per turn: {commands(kinds)}. Things of this game: {', '.join(kinds)}.", VERBS)

    def advise(self, state: SimulatorPosition, moment: Moment, key: Key) -> Answer:
        """Next command of the game's own solution, which no agent sees; ``look`` beside it."""
        shortest, played = solution(self._file(state.task)), state.actions
        left = shortest[len(played) :] if shortest[: len(played)] == played else ()
        return Answer("", left[0] if left else "look")

    def open(self, task: Task, key: Key) -> tuple["Game", str]:
        """Start a game; its interpreter would otherwise take its seed from the clock."""
        env = open_game(self._file(task))
        env.seed(seed_of(key) % 2**31)
        game = Game(env)
        return game, game.observation

    def _file(self, task: Task) -> Path:
        return game_file(GameSize(*task.data["size"]), task.data["seed"], self.folder)

    def _task(self, seed: int, split: str) -> Task:
        data = {"size": list(self.size), "seed": seed}
        return Task(self.name, "quest", f"reach the goal of game {seed}", f"game {seed}", split, data)


class Game:
    """A running game. Each step shows the goal, the room and what is carried."""

    def __init__(self, env: Any) -> None:
        self._env, self._state = env, env.reset()

    @property
    def observation(self) -> str:
        """Goal, room and inventory."""
        state = self._state
        return f"Goal: {state.objective}\n{state.description.strip()}\n{state.inventory.strip()}"

    def act(self, action: str) -> Step[None]:
        """Give a command; the reward is the share of the score that it gains."""
        before, valid = self._state, action in self._state.admissible_commands
        self._state, score, done = self._env.step(action)
        reward = (score - before.score) / before.max_score
        feedback = " ".join(self._state.feedback.partition("\n>")[0].partition("***")[0].split())
        seen = feedback if done else self.observation
        return Step(None, seen, feedback, reward, done, success=self._state.won, valid=valid)

    def close(self) -> None:
        """End the interpreter."""
        self._env.close()
