"""The judge of a bank that stands alone: admission and measurement by replays that a function of the user plays."""

from dataclasses import dataclass, replace

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
from coevo.tasks.bank_alone.bank_reader import BankContent
from coevo.tasks.bank_alone.checked_replay import CheckedReplay, ReplayFunction, require_rewards
from coevo.utilities.errors import CoevoError

MOST_REPLAYS = 1000
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
        if type(self.replays) is not int or not 1 <= self.replays <= MOST_REPLAYS:
            raise CoevoError(f"replays = {shortened(self.replays)}: write a whole number from 1 to {MOST_REPLAYS}")
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
        return CheckedReplay(self.replay, now.index, (now.revision.number + 1) * MOST_REPLAYS, self.rewards)

    @property
    def _span(self) -> float:
        low, high = self.rewards
        return float(high - low)
