"""Replays by a function from outside, whose rewards are checked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from coevo.memory.admission.admission import Trial
from coevo.memory.retrieval.index import Index
from coevo.memory.validate import shortened
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import Retriever
from coevo.utilities.errors import CoevoError

ReplayFunction = Callable[[Retriever, Entry, range], Iterable[float]]
"""``replay(memory, lesson, draws)``: one reward per draw, of a task that is played with what ``memory`` retrieves.

A number in ``draws`` chooses the task and all random numbers: the function is called twice with the same lesson and
draws, and only ``memory`` differs, which holds the lesson or does not. Numbers do not repeat from revision to revision.
"""


@dataclass(frozen=True)
class CheckedReplay:
    """``Replay`` of an admission by a function of the user.

    Attributes:
        function: of the user.
        index: of the active entries.
        first: number of the first draw.
        rewards: lowest and highest reward.
    """

    function: ReplayFunction
    index: Index
    first: int
    rewards: tuple[float, float]

    def __call__(self, trials: Sequence[Trial], replicas: int) -> list[list[float]]:
        """(trials, replicas) rewards.

        Raises:
            CoevoError: the function returned something else than one reward per draw.
        """
        return [self._played(trial, replicas) for trial in trials]

    def _played(self, trial: Trial, replicas: int) -> list[float]:
        (lesson,) = (*trial.sources, *trial.read)
        draws = range(self.first + trial.first, self.first + trial.first + replicas)
        found = self.function(Retriever(self._tried(trial)), lesson, draws)
        try:
            rewards = list(found)
        except TypeError:
            raise CoevoError(f"replay returned {shortened(found)}: return a list with one reward per draw") from None
        if len(rewards) != len(draws):
            raise CoevoError(f"replay returned {len(rewards)} rewards for {len(draws)} draws: return one per draw")
        return [self._checked(reward, draw) for reward, draw in zip(rewards, draws, strict=True)]

    def _tried(self, trial: Trial) -> Index:
        if not trial.added and not trial.removed:
            return self.index
        gone = {entry.id for entry in (*trial.removed, *trial.added)}
        kept = [entry for entry in self.index.library.entries if entry.id not in gone]
        return self.index.over([*kept, *trial.added])

    def _checked(self, reward: object, draw: int) -> float:
        low, high = self.rewards
        try:
            value = float(reward)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = float("nan")
        if isinstance(reward, str) or not low <= value <= high:  # NaN is in no range
            raise CoevoError(
                f"replay returned {shortened(reward)} for draw {draw}: return a number from {low:g} to {high:g}"
            )
        return value


def require_rewards(rewards: object) -> None:
    """Make sure that these are a lowest and a highest reward.

    Raises:
        CoevoError: they are no two finite numbers, the lower one first.
    """
    match rewards:
        case (int() | float() as low, int() | float() as high) if low < high and isfinite(low) and isfinite(high):
            return
    raise CoevoError(f"rewards = {shortened(rewards)}: are no bounds: write (lowest, highest), such as (0, 1)")
