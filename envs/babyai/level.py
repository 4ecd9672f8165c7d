"""A level of minigrid that is drawn from a plan, without output on standard output."""

from typing import Any

from minigrid.core.roomgrid import RoomGrid
from minigrid.envs.babyai.core.levelgen import LevelGen
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling

from coevo.envs.babyai.babyai_contents import KINDS, ROOM_SIZE
from coevo.envs.babyai.level_plan import Plan
from coevo.envs.babyai.missions import Mission, write
from coevo.utilities.errors import CoevoError

ATTEMPTS = 1000
"""Maximum number of layouts that may be rejected in a row."""


class Level(LevelGen):  # type: ignore[misc]
    """The level of a plan, at its beginning. ``carrying``, ``mission`` and the rest are minigrid's.

    Raises:
        CoevoError: no playable layout was found.
    """

    task: Mission
    """Mission of the level."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        super().__init__(
            room_size=ROOM_SIZE,
            num_rows=1,
            num_cols=KINDS[plan.kind].rooms,
            num_dists=plan.distractors,
            locations=False,
            unblocking=False,
            implicit_unlock=False,
            max_steps=plan.steps,
        )
        self.reset(seed=plan.seed)

    def gen_mission(self) -> None:
        """Draw the mission."""
        self.task = write(self, self.plan)
        self.instrs = self.task.instruction

    def gen_obs(self) -> dict[str, Any]:
        """Empty: observations are described in words, on request."""
        return {}

    def _gen_grid(self, width: int, height: int) -> None:
        # As in RoomGridLevel, which prints every layout that it rejects.
        for _ in range(ATTEMPTS):
            RoomGrid._gen_grid(self, width, height)
            try:
                self.gen_mission()
                self.validate_instrs(self.instrs)
            except (RejectSampling, RecursionError):
                continue
            self.mission = self.surface = self.instrs.surface(self).replace(",", " ,")
            return
        raise CoevoError(
            f"env.distractors={self.plan.distractors}: no {self.plan.kind} level with seed {self.plan.seed} is "
            f"playable in {ATTEMPTS} layouts: set fewer distractors"
        )
