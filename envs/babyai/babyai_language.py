"""Observations in the words of BabyAI-Text: the carried thing, walls, then things."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from coevo.envs.babyai.babyai_contents import UNSEEN, ThingName
from coevo.envs.babyai.level import Level

_DIRECTIONS = ((0, 1), (-1, 0), (1, 0))
"""Ahead, left, right, as (cells to the right, cells ahead)."""


class Sight(NamedTuple):
    """A thing in view: its name, its state if it is a door, and its distance to the right and ahead."""

    name: ThingName
    state: str
    right: int
    ahead: int

    def text(self) -> str:
        """Sentence, such as ``You see a locked red door 2 steps right and 3 steps forward``."""
        article = "an" if self.state == "open" else "a"
        what = " ".join(filter(None, (article, self.state, *self.name)))
        return f"You see {what} {self._place()}"

    def short(self) -> str:
        """Name and place only, such as ``red door 2 steps right and 3 steps forward``."""
        return f"{' '.join(self.name)} {self._place()}"

    @property
    def distance(self) -> int:
        """Steps to it if nothing stands between."""
        return abs(self.right) + self.ahead

    def _place(self) -> str:
        parts = ((abs(self.right), "right" if self.right > 0 else "left"), (self.ahead, "forward"))
        return " and ".join(_steps(count, where) for count, where in parts if count)


class View:
    """View of a level's agent now: seven by seven cells, the agent in the middle of the near side."""

    def __init__(self, level: Level) -> None:
        self._grid, _ = level.gen_obs_grid()
        self._carried = level.carrying
        self._middle, self._near = self._grid.width // 2, self._grid.height - 1

    def text(self) -> str:
        """Observation in words."""
        carried = [] if self._carried is None else [f"You carry a {self._carried.color} {self._carried.type}"]
        walls = [f"You see a wall {_steps(*wall)}" for wall in self._walls()]
        return " . ".join((*carried, *walls, *(sight.text() for sight in self.sights())))

    def sights(self) -> Iterator[Sight]:
        """Things in view, from left to right, in a column from far to near."""
        for right in range(-self._middle, self._middle + 1):
            for ahead in range(self._near, -1, -1):
                cell = self._cell(right, ahead)
                if cell is not None and cell.type != "wall" and (right, ahead) != (0, 0):
                    yield Sight(ThingName(cell.color, cell.type), _state(cell), right, ahead)

    def aim(self, colour: str | None, thing: str) -> str:
        """Name and place of the nearest thing with a name; None as colour accepts any."""
        seen = [sight for sight in self.sights() if sight.name.thing == thing and colour in (None, sight.name.colour)]
        if seen:
            return min(seen, key=lambda sight: sight.distance).short()
        return " ".join(filter(None, (colour, thing, UNSEEN)))

    def _walls(self) -> Iterator[tuple[int, str]]:
        """Steps to the wall ahead, left and right, if nothing stands between."""
        for (right, ahead), where in zip(_DIRECTIONS, ("forward", "left", "right"), strict=True):
            reach = self._near if ahead else self._middle
            line = ((steps, self._cell(steps * right, steps * ahead)) for steps in range(1, reach + 1))
            steps, first = next(((steps, cell) for steps, cell in line if cell is not None), (0, None))
            if first is not None and first.type == "wall":
                yield steps, where

    def _cell(self, right: int, ahead: int) -> Any:
        return self._grid.get(self._middle + right, self._near - ahead)


def _steps(count: int, where: str) -> str:
    return f"{count} step{'s' if count > 1 else ''} {where}"


def _state(cell: Any) -> str:
    if cell.type != "door":
        return ""
    return "open" if cell.is_open else "locked" if cell.is_locked else "closed"
