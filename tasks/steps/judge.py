"""Judgement of a proposal, by replay or by trials within the rollout, if the admission asks for one (CoEvo-RL Eq. 7).

The rewards of both halves of a group on trial are added to the candidate's sums, which the revision holds.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from statistics import fmean

from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.rulings import allowed
from coevo.memory.writers.writer import Proposal
from coevo.records.episode import Episode
from coevo.tasks.iteration.paired_replay import replay
from coevo.tasks.iteration.trial_groups import trial_config
from coevo.tasks.pending_revision import Result, apart
from coevo.tasks.play.treatment_groups import TreatmentGroups
from coevo.tasks.session import Session
from coevo.tasks.stage import stage, untracked
from coevo.tasks.writing.writer_rewards import gains_of, replayed, unmatched
from coevo.utilities.errors import CoevoError


@stage("judge")
def judge(session: Session, proposal: Proposal) -> Result[Decision]:
    """Decision on a proposal; the bank is not changed yet. Replays count towards the cost of learning.

    The gains of candidates become rewards of the next update, if it trains the writer by them.
    """
    admission, library = session.parts.admission, session.bank.library()
    assert admission is not None
    spent: Counter[str] = Counter()
    candidates = allowed(proposal, library.admission.barred)
    config = session.config.bank
    replays = partial(replay, session, spent) if config is not None and config.admission.needs_replay else _unstated
    decision = admission.decide(candidates, library, replays, session.pending.revision)
    update = session.config.update
    trains = update is not None and update.trains_writer("replay")
    metrics = _reward(session, proposal, decision) if trains else {}
    return Result(decision, metrics, spent=apart(spent, "judging"))


def _unstated(trials: Sequence[Trial], replicas: int) -> Sequence[Sequence[float]]:
    """Replay for an admission that says it needs none: nobody has checked that the environment repeats."""
    raise CoevoError("the admission replays without saying so: state needs_replay = True in its class")


def _reward(session: Session, proposal: Proposal, decision: Decision) -> dict[str, float]:
    """Reward the writer's answers in the next update, and count the lessons whose tokens are not found."""
    tokenizer, gains = session.parts.player.engine.policy.tokenizer, gains_of(decision.judged)
    # The configuration is refused where another model writes.
    assert session.parts.writing is not None
    rewarded = session.parts.writing.rewarded = replayed(proposal.writer_answers, gains, tokenizer)
    return {"policy/writer/unmatched": float(unmatched(proposal.writer_answers, gains, rewarded))}


@untracked("trial")
def weigh(session: Session, tried: TreatmentGroups | None) -> Result[None]:
    """Add this iteration's rewards to the sums of the candidates on trial.

    ``bank/trial/seen_share`` is the share of the treated episodes that saw their candidate in a prompt.
    ``bank/trial/success_lost`` is the success that trying costs, as a share of all episodes: what the treated halves
    lack compared with the control halves. Below 0, trying has gained.
    """
    if tried is None:
        return Result(None)
    ended = session.ended
    groups = {trial.entry.id: tried.groups(ended, trial.entry.id) for trial in session.bank.trials}
    session.bank.trials = [trial.after(groups[trial.entry.id]) for trial in session.bank.trials]
    saw = [pair.saw for pairs in chain(*groups.values()) for pair in pairs]
    counts = {
        "candidates": len(groups),
        "groups": sum(map(len, groups.values())),
        "seen_share": fmean(saw) if saw else 0.0,
        "success_lost": _lost(tried, ended),
    }
    return Result(None, {f"bank/trial/{name}": float(count) for name, count in counts.items()})


def _lost(tried: TreatmentGroups, episodes: Sequence[Episode]) -> float:
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for episode in episodes:
        if tried.sees(episode.replica):
            treated = tried.treats(episode.task.id, episode.replica)
            sides.setdefault(episode.task.id, ([], []))[treated].append(float(episode.success))
    lost = [len(ours) * (fmean(theirs) - fmean(ours)) for theirs, ours in sides.values() if ours and theirs]
    return sum(lost) / len(episodes) if episodes else 0.0


def trial_is_over(session: Session) -> bool:
    """Report whether a candidate's trial has ended, so that it has to be judged; a bank changes with a revision."""
    config = trial_config(session)
    return (
        config is not None
        and session.due.bank()
        and session.due.commit()
        and any(trial.iterations >= config.iterations for trial in session.bank.trials)
    )
