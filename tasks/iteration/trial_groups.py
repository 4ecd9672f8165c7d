"""Candidates on trial within the rollout budget (``bank.admission.type: within-group``).

Before the rollout, source tasks of candidates on trial replace some of the newly drawn tasks, and half of each such
group plays with the candidate.

Statistics of the update: an episode is compared with those of its own half only (``group_name``), which had the same
context. A harmful candidate therefore teaches the policy nothing about actions that its reader took because of it, and
each half's baseline is the mean of that half.
"""

from collections.abc import Sequence
from dataclasses import replace

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.memory.trials import OnTrial, revisited
from coevo.records.task import Task
from coevo.tasks.iteration.paired_replay import in_force
from coevo.tasks.play.treatment_groups import TreatmentGroups
from coevo.tasks.session import Session


def with_revisited(session: Session, drawn: Sequence[Task]) -> list[Task]:
    """The batch with source tasks of candidates on trial in place of the last drawn tasks."""
    again = [task for _, task in _chosen(session).values()]
    names = {task.id for task in again}
    rest = sorted(drawn, key=lambda task: task.id in names)
    return [*again, *rest[: len(drawn) - len(again)]]


def treatment_groups(session: Session) -> TreatmentGroups | None:
    """The candidates that this iteration's groups try; None if there is none."""
    bank, chosen = session.config.bank, {name: trial for name, (trial, _) in _chosen(session).items()}
    if bank is None or not chosen:
        return None
    # Each is searched by itself: together, several candidates would take the few places from each other.
    tried = {trial.entry.id: trial.entry for trial in chosen.values()}
    found = {name: session.recall(session.index_with([entry])) for name, entry in tried.items()}
    return TreatmentGroups(chosen, found, bank.retrieval, session.config.rollout.group_size)


def _chosen(session: Session) -> dict[str, tuple[OnTrial, Task]]:
    config = trial_config(session)
    if config is None or not session.due.bank() or not session.due.is_warm():
        return {}
    trials = [replace(trial, tasks=tuple(in_force(session, trial.tasks))) for trial in session.bank.trials]
    return revisited(trials, round(config.revisit * session.config.rollout.tasks))


def trial_config(session: Session) -> WithinGroupAdmissionConfig | None:
    """Settings of trials within groups; None where the run's admission is another one."""
    bank = session.config.bank
    return bank.admission if bank is not None and isinstance(bank.admission, WithinGroupAdmissionConfig) else None
