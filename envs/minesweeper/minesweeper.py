"""MineSweeper as an environment (board and rewards as in the agents' papers)."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from coevo.configs.env import MineSweeperConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Revealed, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.minesweeper import field_draws
from coevo.envs.minesweeper.minefield import (
    EMPTY,
    HIDDEN,
    MINE,
    NUMBERS,
    OUTSIDE,
    UNREADABLE,
    MineState,
    advance,
    cells_of,
    named,
    neighbours,
    place,
)
from coevo.envs.minesweeper.risks import risks
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, generator
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError

NOTE = re.compile(r"mine at \((\d{1,2}),(\d{1,2})\)", re.ASCII)
WORDS = "field clear every cell without a mine mines . open opened cells from is at safe least risk"
SAME = 1e-9
"""Difference of risks that counts as none."""
TOLD, WHOLE = 0.8, 0.6
"""Share of episodes for cloning that have notes about their field, and of these with a note for every mine."""


class MineSweeper(Environment[MineState]):
    """Cells that are opened, with numbers that count the mines beside them, on fields drawn by this project.

    Args:
        size: cells of a side, 5 to 8.
        mines: number of mines, 2 to 8.
        steps: actions after which an episode is cut; None for as many as there are cells.
        fields: number of named fields that keep their mines, up to 32, so that notes about them hold; None for a new
            field in every task, the first cell of which is safe.
        world: seed of the named fields.
        view: ``grid`` for rows of symbols, ``places`` for each symbol with its place.

    Raises:
        ConfigError: an option is out of its bounds.
    """

    name: ClassVar[str] = field_draws.NAME
    version: str = "2"
    panels: Mapping[str, str] = field_draws.OWN_FIELDS
    has_expert: bool = True
    expert_guesses: ClassVar[bool] = False
    concurrent: ClassVar[bool] = True

    def __init__(
        self,
        size: int = 6,
        mines: int = 3,
        steps: int | None = None,
        fields: int | None = None,
        world: int = 0,
        view: Literal["grid", "places"] = "grid",
    ) -> None:
        self._config = MineSweeperConfig.of(size=size, mines=mines, steps=steps, fields=fields, world=world, view=view)
        self.panels = field_draws.panels(self._config)
        self.reward_range = (-1.0 * self._config.limit, 10.0 + 2.0 * self._config.limit)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks, different ones as long as there are enough."""
        return field_draws.sample(self._config, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Tasks that training leaves out; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, field_draws.panel(self._config, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for the run's own, an empty list for ``no-bank``, all mines for ``other-mines``."""
        return field_draws.panel_bank(self._config, panel)

    def revealed(self, episode: Episode) -> list[Revealed]:
        """Mines of a named field that the feedback of a step names; nothing where every task has its own field."""
        when = f"a task is in field {episode.task.scope}"
        told = [(step, NOTE.fullmatch(turn.feedback)) for step, turn in enumerate(episode.turns)]
        return [Revealed(found[0], when, step) for step, found in told if found] if self._config.fields else []

    def start(self, task: Task) -> tuple[MineState, str]:
        """First state and view of a task; a named field has one cell open."""
        state = field_draws.state_of(task)
        return state, state.text()

    def step(self, states: Sequence[MineState], actions: Sequence[str]) -> list[Step[MineState]]:
        """Open the cell ``(row, column)`` for each state; any other text costs a step."""
        return [advance(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """Form of the actions and the symbols. Actions are numbers, so that there are no verbs."""
        size = int(task.data["size"])
        return Guide(
            f"An action is (row, column), such as (2, 3), counted from 1 to {size}, from the top left cell. It opens "
            f"that cell.\n{HIDDEN} is a closed cell, {EMPTY} an open one without mines around it, a number says how "
            f"many of the cells around it have a mine. A mine ends the task; {MINE} shows where mines were."
        )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of every field, sorted."""
        size = self._config.size
        places = [place(cell, size) for cell in range(size * size)]
        numbers = map(str, range(1, size * size + 1))
        symbols = (HIDDEN, EMPTY, MINE, *NUMBERS)
        if self._config.view == "places":
            symbols += tuple(named(cell, symbol, size) for cell in range(size * size) for symbol in symbols)
        said = " ".join((WORDS, *field_draws.COUNTS, UNREADABLE, OUTSIDE, *symbols, *numbers, *places))
        return tuple(sorted({*said.split(), *(field_draws.FIELDS if self._config.fields else ())}))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the risks are computed from a state."""
        raise MissingPartError(f"{self.name}'s expert plays from a state: use advise")

    def advise(self, state: MineState, moment: Moment, key: Key) -> Answer:
        """Cell with the least risk of a mine, by what is shown and what the notes of the moment say.

        Of equal cells, the one most likely to open others, then the first; a corner at the start.
        """
        found, size = _risks(state, moment), state.plan.size
        least = min(found.values())
        cell = min(found, key=lambda cell: (found[cell] > least + SAME, -_opening(found, cell, size), cell))
        return _answer(cell if state.opened else 0, least, size)

    def reader(self, state: MineState, moment: Moment, key: Key) -> Answer:
        """First cell with the least risk, row by row: what cloning shows where notes hold, since it is easily read."""
        found = _risks(state, moment)
        least = min(found.values())
        return _answer(min(cell for cell in found if found[cell] <= least + SAME), least, state.plan.size)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` expert episodes, on fields for cloning alone; some have notes about named fields.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        tasks = field_draws.sample(self._config, episodes, key, "fresh")
        advise = self.reader if self._config.fields else self.advise
        return [
            turn
            for index, task in enumerate(tasks)
            for turn in expert_turns(self, task, key, self._told(task, extend(key, "lessons", index)), advise)
        ]

    def probe(self, size: int, key: Key) -> Probe:
        """Fields for cloning alone: named ones with all their mines as notes, once true and once false."""
        tasks = tuple(field_draws.sample(self._config, size, extend(key, "probe"), "fresh"))
        if not self._config.fields:
            return Probe(tasks, ((),) * size, ())
        return Probe(tasks, tuple(map(self._true, tasks)), tuple(map(self._false, tasks)))

    def _told(self, task: Task, draw: Key) -> tuple[str, ...]:
        """All true notes of a named field in random order, some, or none."""
        rng = generator(draw)
        if not self._config.fields or rng.random() >= TOLD:
            return ()
        true = self._true(task)
        count = len(true) if rng.random() < WHOLE else rng.integers(1, len(true) + 1)
        return tuple(true[index] for index in rng.permutation(len(true))[:count])

    def _true(self, task: Task) -> tuple[str, ...]:
        return tuple(field_draws.note(task.scope, mine, self._config.size) for mine in task.data["mines"])

    def _false(self, task: Task) -> tuple[str, ...]:
        """Notes that name cells without a mine."""
        size, mines, first = self._config.size, task.data["mines"], task.data["first"]
        safe = [cell for cell in range(size * size) if cell not in mines and cell != first]
        return tuple(
            field_draws.note(task.scope, cell, size) for cell in safe[:: len(safe) // len(mines)][: len(mines)]
        )


def _risks(state: MineState, moment: Moment) -> dict[int, float]:
    """Risk of each closed cell, with the mines that the moment's notes name unless these cannot all be true."""
    size, told = state.plan.size, [NOTE.search(note.text) for note in moment.lessons]
    known = frozenset((int(found[1]) - 1) * size + int(found[2]) - 1 for found in told if found)
    known = frozenset(cell for cell in known if cell < size * size and not state.opened >> cell & 1)
    mines = len(state.plan.mines)
    return risks(state.shown, size, mines, known) or risks(state.shown, size, mines)


def _answer(cell: int, risk: float, size: int) -> Answer:
    return Answer("safe" if risk < SAME else "least risk", place(cell, size))


def _opening(found: Mapping[int, float], cell: int, size: int) -> float:
    """Rough probability that no mine is around a cell, as if those around it were independent."""
    chance = 1.0
    for beside in cells_of(neighbours(size)[cell]):
        chance *= 1 - found.get(beside, 0.0)
    return chance
