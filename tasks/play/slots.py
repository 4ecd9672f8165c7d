"""Parallel environments that continue across updates (Context-lite section 4.1, early trajectory truncation).

A slot holds one attempt. When that is over, the slot starts the next one at once; when the update's turns are used up,
the attempt is cut, and continues in the next update.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from coevo.records.episode import Episode
from coevo.tasks.play.attempt import Attempt, Running
from coevo.tasks.play.play import Player

DrawAttempt = Callable[[int, int], Attempt]
"""Function from slot and number within the update to a new attempt."""
Show = Callable[[Attempt], Attempt]
"""Function that adds this update's experience to an attempt."""


@dataclass(frozen=True)
class RolloutPlan:
    """Rollout of one update.

    Attributes:
        slots: number of parallel environments.
        turns: turns per environment.
        draw: creates new attempts, without experience.
        show: adds experience to new and to continued attempts.
    """

    slots: int
    turns: int
    draw: DrawAttempt
    show: Show


class Slots:
    """Attempts that continue across updates.

    Attributes:
        running: attempts by slot.
        earlier: shaped parts so far, joined, by episode id.
    """

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self.earlier: dict[str, Episode] = {}

    def play(self, player: Player, plan: RolloutPlan) -> list[Episode]:
        """Play the turns of one update; return parts of episodes in the order of slots, then of time."""
        self._take_up(player, plan)
        return player.paced(partial(self._loop, player, plan), range(plan.slots))

    def _loop(self, player: Player, plan: RolloutPlan, slots: Sequence[int], halted: Event) -> list[Episode]:
        parts: dict[int, list[Episode]] = {slot: [] for slot in slots}
        for _ in range(plan.turns):
            if halted.is_set():
                break
            self._fill(player, plan, parts)
            lives = [self.running[slot] for slot in slots]
            player.play_turn([live for live in lives if not player.is_over(live)])
            for slot, live in self._drop(player, slots):
                parts[slot].append(live.part())
        for slot in slots:
            if slot in self.running:
                parts[slot].append(player.cut(self.running[slot]))
        self._drop(player, slots)
        return [part for slot in slots for part in parts[slot]]

    def whole(self, part: Episode) -> Episode:
        """Join a part with the earlier parts of its episode."""
        return part.after(self.earlier[part.id]) if part.start else part

    def finish(self, parts: Sequence[Episode]) -> list[Episode]:
        """Join final parts to whole episodes and return these; other parts are kept for the next update."""
        finished = []
        for part in parts:
            whole = self.whole(part)
            self.earlier.pop(part.id, None)
            if part.following:
                self.earlier[part.id] = whole
            else:
                finished.append(whole)
        return finished

    def _take_up(self, player: Player, plan: RolloutPlan) -> None:
        """Continue attempts with this update's experience; drop those whose slot no longer exists."""
        dropped = [self.running.pop(slot) for slot in sorted(self.running) if slot >= plan.slots]
        player.release(dropped)
        for live in dropped:
            self.earlier.pop(live.attempt.id)
        for live in self.running.values():
            live.attempt = plan.show(live.attempt)

    def _fill(self, player: Player, plan: RolloutPlan, parts: Mapping[int, Sequence[Episode]]) -> None:
        """Start an attempt in every free slot of a loop."""
        free = [slot for slot in parts if slot not in self.running]
        numbers = [sum(part.start == 0 for part in parts[slot]) for slot in free]
        attempts = [plan.show(plan.draw(slot, number)) for slot, number in zip(free, numbers, strict=True)]
        self.running.update(zip(free, player.begin(attempts), strict=True))

    def _drop(self, player: Player, slots: Sequence[int]) -> list[tuple[int, Running]]:
        """Free those of a loop's slots whose attempt is over, and return these."""
        lives = [(slot, self.running[slot]) for slot in slots if slot in self.running]
        over = [(slot, live) for slot, live in lives if player.is_over(live)]
        player.release([live for _, live in over])
        for slot, _ in over:
            del self.running[slot]
        return over
