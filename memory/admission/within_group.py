"""Within-group admission: candidates are judged by the training groups that play with and without them.

The idea is that of "Judging within the rollout budget" (arXiv 2606.08755). Half of a group plays with the candidate in
its context, half without; the halves are matched by task, policy and revision. Their gap, accumulated over
several iterations, is the candidate's value. Fresh rollouts (CoEvo-RL Eq. 7) are not needed.

Every group of a source task counts, whoever saw the candidate (intention to treat). The gap is that of having the
candidate in the bank: of a candidate that few of the treated episodes saw it is as small as their share, which is
reported.

Rewards of a group pair by replica. Draws of the two sides differ, since equal draws would give the policy the same
episode twice to learn from. So a pair says less than one of a paired replay.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.memory.admission.admission import Decision, Replay
from coevo.memory.admission.replay import PairedRewards, judge, metrics
from coevo.memory.bank.change import Judged
from coevo.memory.library import Library
from coevo.memory.trials import OnTrial
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import entered


class WithinGroupAdmission:
    """Candidates of a proposal go on trial; those whose trial is over enter or are refused."""

    def __init__(self, config: WithinGroupAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Judge the candidates whose trial is over, and begin trials of new ones while there is room."""
        trials, barred = library.admission.trials, library.admission.barred
        over = [trial for trial in trials if self.is_over(trial)]
        judged = tuple(self._judged(trial, library, revision) for trial in over if trial.entry.id not in barred)
        known = {trial.entry.id for trial in trials} | library.row_of.keys()
        new = [entry for entry in proposal.entries if entry.id not in known]
        room = self._config.candidates - len(trials) + len(over)
        begun = new[: max(room, 0)]  # fewer may be allowed than when those on trial began
        counts = {"begun": len(begun), "ended": len(over), "turned_away": len(new) - len(begun)}
        return Decision(
            entries=tuple(entry for each in judged if each.verdict.admitted for entry in each.candidates),
            judged=judged,
            metrics={f"bank/trial/{name}": float(count) for name, count in counts.items()} | _figures(judged, over),
            begun=tuple(begun),
            ended=tuple(trial.entry.id for trial in over),
        )

    def is_over(self, trial: OnTrial) -> bool:
        """Report whether a candidate has been on trial for as many iterations as configured."""
        return trial.iterations >= self._config.iterations

    def _judged(self, trial: OnTrial, library: Library, revision: int) -> Judged:
        """Judge a candidate by this trial and its earlier ones.

        One that no group has tried, or no treated episode has seen, is refused, and its trial says nothing.
        """
        candidate, rewards = entered(trial.entry, revision), PairedRewards(trial.rewards_with, trial.rewards_without)
        looks, span = library.admission.looks(candidate.id), library.admission.span
        verdict = judge([candidate], rewards, self._config, revision, looks, span)
        verdict = verdict if trial.seen_share > 0 else replace(verdict, admitted=False, bound=None)
        return Judged(replace(verdict, seen_share=trial.seen_share), (candidate,))


def _figures(judged: Sequence[Judged], over: Sequence[OnTrial]) -> dict[str, float]:
    """Means over the candidates whose trial is over."""
    if not judged:
        return {}
    return metrics([each.verdict for each in judged], "bank/trial") | {
        "bank/trial/judged_seen_share": fmean(trial.seen_share for trial in over)
    }


def admission(config: WithinGroupAdmissionConfig) -> WithinGroupAdmission:
    """Within-group admission with the settings of a configuration."""
    return WithinGroupAdmission(config)
