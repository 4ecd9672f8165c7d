"""Trials of candidates within the rollout budget (``bank.admission.type: within-group``).

Before the rollout, source tasks of candidates on trial replace some of the newly drawn tasks, and half of each such
group plays with the candidate. Afterwards the rewards of both halves are added to the candidate's sums, which the
revision holds.

Statistics of the update: an episode is compared with those of its own half only (``group_of``), which had the same
context. A harmful candidate therefore teaches the policy nothing about actions that its reader took because of it, and
each half's baseline is the mean of that half.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.memory.trials import OnTrial, revisited
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.tasks.draft import Result
from coevo.tasks.play.arms import Arms
from coevo.tasks.session import Session
from coevo.tasks.stage import untracked
from coevo.tasks.steps.judge import in_force


def with_revisited(session: Session, drawn: Sequence[Task]) -> list[Task]:
    """The batch with source tasks of candidates on trial in place of the last drawn tasks."""
    again = [task for _, task in _chosen(session).values()]
    names = {task.id for task in again}
    rest = sorted(drawn, key=lambda task: task.id in names)
    return [*again, *rest[: len(drawn) - len(again)]]


def arms(session: Session) -> Arms | None:
    """The candidates that this iteration's groups try; None if there is none."""
    bank, chosen = session.config.bank, {name: trial for name, (trial, _) in _chosen(session).items()}
    if bank is None or not chosen:
        return None
    # Each is searched by itself: together, several candidates would take the few places from each other.
    tried = {trial.entry.id: trial.entry for trial in chosen.values()}
    found = {name: session.recall(session.index_with([entry])) for name, entry in tried.items()}
    return Arms(chosen, found, bank.retrieval, session.config.rollout.group_size)


def _chosen(session: Session) -> dict[str, tuple[OnTrial, Task]]:
    config = _config(session)
    if config is None or not session.evolves() or session.iteration < session.warmup():
        return {}
    trials = [replace(trial, tasks=tuple(in_force(session, trial.tasks))) for trial in session.bank.trials]
    return revisited(trials, round(config.revisit * session.config.rollout.tasks))


def _config(session: Session) -> WithinGroupAdmissionConfig | None:
    bank = session.config.bank
    return bank.admission if bank is not None and isinstance(bank.admission, WithinGroupAdmissionConfig) else None


def group_of(session: Session, episode: Episode) -> str:
    """The group that an episode is compared with: those of its task that had the same context."""
    treated = session.arms is not None and session.arms.treats(episode.task.id, episode.replica)
    return f"{episode.task.id}/with the candidate" if treated else episode.task.id


@untracked("trial")
def weigh(session: Session) -> Result[None]:
    """Add this iteration's rewards to the sums of the candidates on trial.

    ``bank/trial/seen_share`` is the share of the treated episodes that saw their candidate in a prompt.
    ``bank/trial/success_lost`` is the success that trying costs, as a share of all episodes: what the treated halves
    lack compared with the control halves. Below 0, trying has gained.
    """
    tried = session.arms
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


def _lost(tried: Arms, episodes: Sequence[Episode]) -> float:
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for episode in episodes:
        if tried.sees(episode.replica):
            treated = tried.treats(episode.task.id, episode.replica)
            sides.setdefault(episode.task.id, ([], []))[treated].append(float(episode.success))
    lost = [len(ours) * (fmean(theirs) - fmean(ours)) for theirs, ours in sides.values() if ours and theirs]
    return sum(lost) / len(episodes) if episodes else 0.0


def trial_is_over(session: Session) -> bool:
    """Report whether a candidate's trial has ended, so that it has to be judged; a bank changes with a revision."""
    config = _config(session)
    return (
        config is not None
        and session.evolves()
        and session.commits_after(session.iteration + 1)
        and any(trial.iterations >= config.iterations for trial in session.bank.trials)
    )
