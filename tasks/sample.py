"""The iteration's task batch (CoEvo-RL Algorithm 1, line 2)."""

from records.draws import extend
from records.task import Task
from tasks.session import Session
from tasks.stage import stage


@stage("sample tasks")
def sample(session: Session) -> list[Task]:
    """Draw the batch of training tasks; no panel holds any of them. Metrics say where a staged schedule stands.

    It is empty where parallel environments draw a task whenever they are free (``rollout.turns``).
    """
    if session.config.schedule.type != "joint":
        session.draft.metrics |= session.phase().metrics()
    count = session.config.rollout.tasks if session.config.rollout.turns is None else 0
    return session.parts.env.sample(count, session.key("sample")) if count else []


def draw(session: Session, slot: int, number: int) -> Task:
    """The task of a parallel environment that is free for the n-th time in this iteration."""
    (task,) = session.parts.env.sample(1, extend(session.key("sample"), slot, number))
    return task
