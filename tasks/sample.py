"""The iteration's task batch (CoEvo-RL Algorithm 1, line 2)."""

from records.draws import extend
from records.task import Task
from tasks.played import Position
from tasks.session import Session
from tasks.stage import untracked


@untracked("sample tasks")
def sample(session: Session) -> list[Task]:
    """Draw the batch of training tasks; no panel holds any of them. Metrics say where a staged schedule stands.

    It is empty where parallel environments draw a task whenever they are free (``rollout.turns``).
    """
    if session.config.schedule.type != "joint":
        session.draft.metrics |= session.phase().metrics()
    return [] if session.config.rollout.turns is not None else tasks_of(session, session.here())


def tasks_of(session: Session, at: Position) -> list[Task]:
    """The batch of an iteration."""
    return session.parts.env.sample(session.config.rollout.tasks, session.key("sample", at))


def draw(session: Session, slot: int, number: int) -> Task:
    """The task of a parallel environment that is free for the n-th time in this iteration."""
    (task,) = session.parts.env.sample(1, extend(session.key("sample"), slot, number))
    return task
