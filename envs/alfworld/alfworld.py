"""ALFWorld as an environment (Shridhar et al. 2021): made games of its six families, or the games of its authors."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.alfworld import household, official_games
from coevo.envs.alfworld.household import FAMILIES, NAME, HouseholdGoal
from coevo.envs.alfworld.pddl_engine import PddlGame, game_data, goal_text
from coevo.envs.base import Guide
from coevo.envs.failures import sound
from coevo.envs.stateful.interface import Opening
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.stateful_environment import SimulatorPosition, StatefulEnvironment
from coevo.records.answer_form import LineForm
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, extend, generator, key
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError

GUIDE = """An action is one command:
look; inventory; go to <place>; open <place>; close <place>; examine <thing>; take <thing> from <place>;
move <thing> to <place>; use <lamp>; heat <thing> with <microwave>; cool <thing> with <fridge>;
clean <thing> with <sinkbasin>.
Names have numbers, as in "go to cabinet 1". You carry one thing at a time. A closed place shows and takes nothing. To
look at a thing under a lamp, carry it and use the lamp where it stands."""
VERBS = ("look", "inventory", "go to", "open", "take", "move", "use", "heat", "cool", "clean", "examine", "close")
FORM = LineForm(examples=("go to cabinet 1", "take mug 1 from cabinet 1"))
FIRST_UNSEEN = 1_000
"""Number of the first room that training leaves out."""
MAX_SEED_OF_GAME = 10**6
MAX_PLANS = 1_000
"""Plans that are kept."""
MADE_PANELS = {
    "seen-rooms": "new goals in the training rooms",
    "unseen-rooms": "rooms that training leaves out",
}
OFFICIAL_PANELS = {
    "valid_seen": "ALFWorld's validation games in rooms of its training games",
    "valid_unseen": "ALFWorld's validation games in other rooms",
}


@dataclass(frozen=True)
class AlfWorldSimulator:
    """Source of games, in a worker.

    Attributes:
        folder: folder of the authors' games; None for made ones.
        commands: True if observations list what is possible.
        plan: True if observations are the planner's plan.
    """

    folder: str | None
    commands: bool
    plan: bool = False

    def open(self, task: Task, key: Key) -> tuple[PddlGame, str]:
        """Start a game; nothing in it is random."""
        game = PddlGame(self._data(task), int(task.data["steps"]), self.commands, self.plan)
        return game, game.observation

    def _data(self, task: Task) -> Mapping[str, str]:
        if task.env != NAME:
            raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
        if "game" not in task.data:
            return game_data(household.problem(task.data, goal_text(task.data["family"])), task.instruction)
        if self.folder is None:
            raise CoevoError(f"task {task.id} is a game of ALFWorld's authors: set env.options.games to official")
        game = official_games.read_game(Path(self.folder), str(task.data["game"]))
        if game is None or game.digest != task.data["digest"]:
            raise CoevoError(f"task {task.id}: {task.data['game']} is another game than it was")
        return game_data(game.problem, task.instruction)


class AlfWorld(StatefulEnvironment):
    """Households in text after ALFWorld: things that are found, treated and put elsewhere (extra alfworld).

    Args:
        games: ``made`` or ``official``.
        families: families of made games, all six by default.
        rooms: rooms of each kind that made training games take place in.
        steps: actions after which a game is cut.
        commands: True to list the possible commands in observations.
        path: folder of the official games; None for the one that ``ALFWORLD_DATA`` names.

    Raises:
        ValueError: an argument is out of its bounds.
        CoevoError: the official games are missing.
    """

    name: ClassVar[str] = NAME
    version = "1 made"
    panels: Mapping[str, str] = MADE_PANELS
    has_expert, expert_guesses = True, False

    def __init__(
        self,
        games: Literal["made", "official"] = "made",
        families: Sequence[str] = tuple(FAMILIES),
        rooms: int = 30,
        steps: int = 50,
        commands: bool = False,
        path: str | None = None,
    ) -> None:
        if games not in ("made", "official") or not families or not set(families) <= set(FAMILIES):
            raise ValueError(f"games is made or official, families are some of {', '.join(FAMILIES)}")
        if not 1 <= rooms <= FIRST_UNSEEN or not 1 <= steps <= 1_000:
            raise ValueError(f"rooms is 1 to {FIRST_UNSEEN}, steps 1 to 1000")
        if path is not None and games == "made":
            raise ValueError("path belongs to games=official")
        self._families, self._rooms, self._steps, self._commands = tuple(families), rooms, steps, bool(commands)
        self._folder = official_games.data_folder(path) if games == "official" else None
        if self._folder is not None:
            self.panels = OFFICIAL_PANELS
            listed = [each for split in OFFICIAL_PANELS for each in official_games.listed(self._folder, split)]
            # Results name the version: whose games they are.
            self.version = f"1 official/{hashlib.sha256(' '.join(listed).encode()).hexdigest()[:12]}"
        self._plans = OrderedDict[str, tuple[tuple[str, ...], tuple[str, ...]]]()

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training games; official ones each once as long as there are enough."""
        if self._folder is not None:
            return self._official("train", "train", count, key)
        return [self._made(extend(key, index), index, "train") for index in range(count)]

    def panel(self, name: str, size: int) -> Panel:
        """Games that training leaves out, made ones with families in turn."""
        if name not in self.panels:
            raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(self.panels)}")
        if self._folder is not None:
            return Panel(name, self.version, tuple(self._official(name, name, size, None)))
        return Panel(
            name, self.version, tuple(self._made(key(NAME, "panel", name, index), index, name) for index in range(size))
        )

    def guide(self, task: Task) -> Guide:
        """Commands of the engine."""
        return Guide(GUIDE, VERBS, answer=FORM)

    def open(self, task: Task, key: Key) -> tuple[PddlGame, str]:
        """Start a game in this process, to debug it; runs start theirs in workers."""
        return self._program().open(task, key)

    def advise(self, state: SimulatorPosition, moment: Moment, key: Key) -> Answer:
        """Next command of the engine's planner, which knows what is hidden."""
        actions = state.actions
        since, plan = self._plans.get(state.task.id, ((), ()))
        ahead = actions[len(since) :]
        if actions[: len(since)] != since or plan[: len(ahead)] != ahead or len(ahead) >= len(plan):
            since, plan, ahead = actions, self._planned(state), ()
            self._plans[state.task.id] = since, plan
            if len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)
        return Answer("", plan[len(ahead)] if len(plan) > len(ahead) else "look")

    @cached_property
    def workers(self) -> LocalWorkers:
        """Workers of this machine."""
        return LocalWorkers(self._program(), self.simulator, self.python)

    @cached_property
    def _planners(self) -> LocalWorkers:
        return LocalWorkers(self._program(plan=True), SimulatorConfig(workers=1), self.python)

    def close(self) -> None:
        """End the worker processes, those of the planner too."""
        super().close()
        if "_planners" in self.__dict__:
            self.__dict__.pop("_planners").shutdown()

    def _program(self, plan: bool = False) -> AlfWorldSimulator:
        folder = None if self._folder is None else str(self._folder)
        return AlfWorldSimulator(folder, self._commands, plan)

    def _planned(self, state: SimulatorPosition) -> tuple[str, ...]:
        """Commands from a position to the goal."""
        before, last = state.actions[:-1], state.actions[-1] if state.actions else None
        (opened,) = self._planners.start([Opening(state.task, key("simulator"), before, last)])
        found = sound(opened)
        self._planners.close([found.handle])
        text = found.observation if found.step is None else sound(found.step).observation
        return tuple(text.split("\n")) if text else ()

    def _made(self, draw: Key, index: int, split: str) -> Task:
        """A made game, of the family whose turn it is; goals of a hash are for the panels alone."""
        rng, family = generator(draw), self._families[index % len(self._families)]
        kinds, held_out = household.rooms(family), split != "train"
        first = FIRST_UNSEEN if split == "unseen-rooms" else 0
        while True:
            room, number = kinds[rng.integers(len(kinds))], first + int(rng.integers(self._rooms))
            fitting = [
                goal
                for goal in household.goals(family, room, number)
                if split == "unseen-rooms" or household.is_held_out(goal) == held_out
            ]
            if fitting:
                goal = fitting[rng.integers(len(fitting))]
                return self._task_of(goal, room, number, int(rng.integers(MAX_SEED_OF_GAME)), split)

    def _task_of(self, goal: HouseholdGoal, room: str, number: int, seed: int, split: str) -> Task:
        data = {**goal._asdict(), "room": room, "number": number, "seed": seed, "steps": self._steps}
        return Task(NAME, goal.family, goal.words(), f"{room} {number}", split, data)

    def _official(self, split: str, name: str, count: int, draw: Key | None) -> list[Task]:
        """Games of a split that can be solved; for training in a drawn order, again from the first if there are few."""
        assert self._folder is not None
        paths = official_games.listed(self._folder, split)
        order = range(len(paths)) if draw is None else generator(draw).permutation(len(paths))
        found = list[Task]()
        for index in order:
            game = official_games.read_game(self._folder, paths[index]) if len(found) < count else None
            if game is not None:
                data = {"game": game.path, "digest": game.digest, "steps": self._steps}
                found.append(Task(NAME, game.family, game.words, Path(game.path).parts[-3], name, data))
        if not found or (draw is None and len(found) < count):
            raise CoevoError(f"{self._folder}: {split} has {len(found)} games that can be solved, not {count}")
        return [found[index % len(found)] for index in range(count)] if draw is not None else found
