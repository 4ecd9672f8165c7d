"""The iteration's task batch (CoEvo-RL Algorithm 1, line 2)."""

from records.task import Task
from tasks.session import Session
from tasks.stage import stage


@stage("sample tasks")
def sample(session: Session) -> list[Task]:
    """Draw the batch of training tasks; no panel holds any of them. Metrics say where a staged schedule stands."""
    if session.config.schedule.type != "joint":
        session.draft.metrics |= session.phase().metrics()
    return session.parts.env.sample(session.config.rollout.tasks, session.key("sample"))
