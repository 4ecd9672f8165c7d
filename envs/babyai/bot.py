"""The bot of BabyAI as a guide: it watches an episode from its beginning, and says what it would do next."""

from collections.abc import Iterator
from typing import Any

from minigrid.core.world_object import WorldObj
from minigrid.envs.babyai.core.verifier import ObjDesc
from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError

from configs.errors import CoevoError
from envs.babyai.catalogue import ACTIONS
from envs.babyai.language import View
from envs.babyai.level import Level
from records.demonstration import Answer


class Bot:
    """Watches one level; plans only on what the agent has seen of it."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._bot = BabyAIBot(level)
        self._answer: Answer | None = None
        self._lost = ""
        self.watch(None)

    def watch(self, action: Any) -> None:
        """The level has taken an action, whether it was the advised one or not."""
        if self._lost:
            return
        try:
            chosen = self._bot.replan(action)
        except (AssertionError, DisappearedBoxError) as error:
            self._lost = str(error).strip("'") or "an assumption of its plan does not hold"
        else:
            self._answer = Answer(self._thought(chosen), ACTIONS[chosen]) if chosen < len(ACTIONS) else None

    def answer(self) -> Answer:
        """What it would do now; the thought names what it heads for, and where that is.

        Raises:
            CoevoError: it does not know how to go on, since a box was opened, say, or takes the task for done.
        """
        if self._answer is None or self._lost:
            reason = self._lost or "it takes the task for done"
            raise CoevoError(f"the bot of babyai cannot go on ({reason}): let it play from the beginning")
        return self._answer

    def _thought(self, chosen: Any) -> str:
        level = self._level
        handled = chosen in (level.actions.pickup, level.actions.toggle)
        aim = level.grid.get(*level.front_pos) if handled else next(self._aims(), None)
        return "" if aim is None else View(level).aim(aim.color, aim.type)

    def _aims(self) -> Iterator[Any]:
        """What it heads for, first what comes first."""
        plans = (subgoal.datum for subgoal in reversed(self._bot.stack))
        return (datum for datum in plans if isinstance(datum, ObjDesc | WorldObj))
