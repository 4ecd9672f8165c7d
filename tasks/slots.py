"""Parallel environments that play on from update to update (Context-lite section 4.1, early trajectory truncation).

A slot holds one attempt. When that is over the slot starts the next one at once; when the update's turns are used up it
is cut, and goes on in the next update where it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from records.episode import Episode
from tasks.play import Attempt, Player, Running

Draw = Callable[[int, int], Attempt]
"""The attempt that a slot starts as its n-th of an update."""
Show = Callable[[Attempt], Attempt]
"""An attempt with the experience that it is shown in this update."""


@dataclass(frozen=True)
class Plan:
    """What an update's rollout consists of.

    Attributes:
        slots: parallel environments.
        turns: that each of them plays.
        draw: new attempts, without experience.
        show: adds it, for new attempts and for those that go on.
    """

    slots: int
    turns: int
    draw: Draw
    show: Show


class Slots:
    """The attempts of a run that go on.

    Attributes:
        running: by slot.
        earlier: by episode id, all its parts so far as one, as they were shaped.
    """

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self.earlier: dict[str, Episode] = {}

    def play(self, player: Player, plan: Plan) -> list[Episode]:
        """Play the turns of one update; parts of episodes in the order of slots, then of time."""
        self._take_up(plan)
        parts: list[list[Episode]] = [[] for _ in range(plan.slots)]
        for _ in range(plan.turns):
            for slot in self._free(plan):
                started = sum(part.start == 0 for part in parts[slot])
                self.running[slot] = player.begin(plan.show(plan.draw(slot, started)))
            player.play_turn([self.running[slot] for slot in range(plan.slots)])
            for slot in self._over(player):
                parts[slot].append(self.running.pop(slot).part())
        for slot in sorted(self.running):
            parts[slot].append(player.cut(self.running[slot]))
        return [part for found in parts for part in found]

    def whole(self, part: Episode) -> Episode:
        """The part with all that was played of its episode before."""
        return part.after(self.earlier[part.id]) if part.start else part

    def finish(self, parts: Sequence[Episode]) -> list[Episode]:
        """Whole episodes, of the parts that end one; the others are kept until the next update."""
        finished = []
        for part in parts:
            whole = self.whole(part)
            self.earlier.pop(part.id, None)
            if part.following:
                self.earlier[part.id] = whole
            else:
                finished.append(whole)
        return finished

    def _take_up(self, plan: Plan) -> None:
        """An attempt whose slot there is no more is given up."""
        for slot in [slot for slot in self.running if slot >= plan.slots]:
            self.earlier.pop(self.running.pop(slot).attempt.id)
        for live in self.running.values():
            live.attempt = plan.show(live.attempt)

    def _free(self, plan: Plan) -> list[int]:
        return [slot for slot in range(plan.slots) if slot not in self.running]

    def _over(self, player: Player) -> list[int]:
        return [slot for slot, live in self.running.items() if player.is_over(live)]
