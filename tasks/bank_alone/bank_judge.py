"""The judge of a bank that stands alone: admission and measurement by replays that a function of the user plays.

Every reward of that function is checked. A bank imports this module when it judges: readers need no admission.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from coevo.configs.bank.admission_config import ReplayAdmissionConfig
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.evidence import upper_bound
from coevo.memory.admission.replay import PairedRewards, ReplayAdmission, measured
from coevo.memory.bank.change import Judged
from coevo.memory.bank_state import Measurements
from coevo.memory.library import AdmissionState, Library
from coevo.memory.validate import shortened
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry, entered
from coevo.tasks.bank_alone.bank_reader import BankContent, Retriever
from coevo.tasks.bank_alone.scoped_index import ScopedIndex
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
    index: ScopedIndex
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

    def _tried(self, trial: Trial) -> ScopedIndex:
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


MAX_REPLAYS = 1000
"""Most draws of a revision, so that no two revisions share one."""


@dataclass(frozen=True)
class BankJudge:
    """Judge of candidates and entries; the attributes are the arguments of ``StandaloneBank.learn``.

    Raises:
        CoevoError: one of them is not acceptable.
    """

    replay: ReplayFunction
    replays: int
    confidence: float
    rewards: tuple[float, float]

    def __post_init__(self) -> None:
        if type(self.replays) is not int or not 1 <= self.replays <= MAX_REPLAYS:
            raise CoevoError(f"replays = {shortened(self.replays)}: write a whole number from 1 to {MAX_REPLAYS}")
        if not isinstance(self.confidence, float) or not 0.5 < self.confidence < 1:
            raise CoevoError(f"confidence = {shortened(self.confidence)}: write a number above 0.5 and below 1")
        require_rewards(self.rewards)

    def decide(self, now: BankContent) -> Decision:
        """Judge all candidates of the newest revision, each by itself."""
        number = now.revision.number + 1
        candidates = tuple(entered(entry, number) for entry in now.revision.candidates)
        state = AdmissionState(looks=Measurements.stored(now.view).of, span=self._span)
        library = Library(now.index.library.catalogue, now.stats, admission=state)
        config = ReplayAdmissionConfig(per="entry", replays=self.replays, confidence=self.confidence)
        return ReplayAdmission(config).decide(Proposal(candidates), library, self._played(now), number)

    def measure(self, now: BankContent, entries: list[Entry]) -> tuple[Judged, ...]:
        """Measure each of these active entries, by leaving it out."""
        looks = Measurements.stored(now.view)
        return tuple(self._left_out(now, entry, looks) for entry in entries)

    def _left_out(self, now: BankContent, entry: Entry, looks: Measurements) -> Judged:
        trials = [Trial(read=(entry,), removed=gone) for gone in ((), (entry,))]
        sides = PairedRewards(*self._played(now)(trials, self.replays))
        verdict = measured([entry], sides, 0.0, now.revision.number + 1)
        bound = upper_bound([*looks.of(entry.id), verdict], self.confidence, self._span)
        return Judged(replace(verdict, admitted=True, bound=bound), (entry,))

    def _played(self, now: BankContent) -> CheckedReplay:
        # Measurements of a lesson are pooled, so each revision needs draws of its own.
        return CheckedReplay(self.replay, now.index, (now.revision.number + 1) * MAX_REPLAYS, self.rewards)

    @property
    def _span(self) -> float:
        low, high = self.rewards
        return float(high - low)
