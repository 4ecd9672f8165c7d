"""BabyAI's bot as a guide: it watches an episode from its beginning and recommends the next action."""

from collections.abc import Iterator
from typing import Any

from minigrid.core.world_object import WorldObj
from minigrid.envs.babyai.core.verifier import ObjDesc
from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError

from coevo.envs.babyai.babyai_contents import ACTIONS
from coevo.envs.babyai.babyai_language import View
from coevo.envs.babyai.level import Level
from coevo.records.demonstration import Answer
from coevo.utilities.errors import CoevoError


class Bot:
    """Watches one level; plans only on the part that the agent has seen."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._bot = BabyAIBot(level)
        self._answer: Answer | None = None
        self._lost = ""
        self.watch(None)

    def watch(self, action: Any) -> None:
        """Record an action of the level, advised or not."""
        if self._lost:
            return
        try:
            chosen = self._bot.replan(action)
        except (AssertionError, DisappearedBoxError) as error:
            self._lost = str(error).strip("'") or "an assumption of its plan does not hold"
        else:
            self._answer = Answer(self._thought(chosen), ACTIONS[chosen]) if chosen < len(ACTIONS) else None

    def answer(self) -> Answer:
        """Action that the bot would choose now; the thought names its aim and the place of the aim.

        Raises:
            CoevoError: it has no next action, for example after a box was opened, or considers the task done.
        """
        if self._answer is None or self._lost:
            reason = self._lost or "it considers the task done"
            raise CoevoError(f"the bot of babyai cannot continue ({reason}): let it play from the beginning")
        return self._answer

    def _thought(self, chosen: Any) -> str:
        level = self._level
        handled = chosen in (level.actions.pickup, level.actions.toggle)
        aim = level.grid.get(*level.front_pos) if handled else next(self._aims(), None)
        return "" if aim is None else View(level).aim(aim.color, aim.type)

    def _aims(self) -> Iterator[Any]:
        """Aims of the plan, the next one first."""
        plans = (subgoal.datum for subgoal in reversed(self._bot.stack))
        return (datum for datum in plans if isinstance(datum, ObjDesc | WorldObj))
