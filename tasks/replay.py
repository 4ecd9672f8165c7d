"""Replay: do the candidates help the current policy on the tasks that taught them? (CoEvo-RL Eq. 7)"""

from collections.abc import Sequence
from functools import partial

from memory.admission import judge
from records.draws import extend
from records.entry import Entry, Verdict
from records.task import Task
from tasks.play import Attempt
from tasks.retrieve import recall
from tasks.session import Session
from tasks.stage import stage


@stage("replay")
def replay(session: Session, candidates: Sequence[Entry]) -> Verdict | None:
    """Play both sides with common random numbers and judge the batch; None when there was nothing to judge."""
    if not candidates:
        return None
    config = session.config.bank
    assert config is not None
    tasks = source_tasks(session, candidates)

    def rewards(extra: Sequence[Entry]) -> list[float]:
        seen = recall(session.index_with(extra), session.key("retrieve"))
        key, revision = session.key("replay"), session.draft.revision
        attempts = [
            Attempt(
                task, n, seen.of_task(task), "replay", revision, extend(key, task.id, n), partial(seen.of_step, task)
            )
            for task in tasks
            for n in range(config.admission.replays)
        ]
        return [episode.reward for episode in session.parts.player.play(attempts)]

    return judge(candidates, rewards, config.admission, session.draft.revision)


def source_tasks(session: Session, candidates: Sequence[Entry]) -> list[Task]:
    """The tasks that produced the candidates, in the order they were played."""
    sources = {source for entry in candidates for source in entry.sources}
    return list({e.task.id: e.task for e in session.recent if e.id in sources}.values())
