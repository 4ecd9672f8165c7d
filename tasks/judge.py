"""What becomes of a proposal; by replay, if the admission asks for it: do the candidates help the current policy on the
tasks that taught them? (CoEvo-RL Eq. 7)"""

from collections.abc import Sequence
from functools import partial

from memory.admission.base import Decision
from memory.writers.base import Proposal
from records.draws import extend
from records.entry import Entry
from records.task import Task
from tasks.play import Attempt
from tasks.session import Session
from tasks.spend import spend
from tasks.stage import stage


@stage("judge")
def judge(session: Session, proposal: Proposal) -> Decision:
    """What the proposal changes in the bank; nothing is changed yet."""
    assert session.parts.admission is not None
    return session.parts.admission.decide(proposal, session.library(), partial(replay, session), session.draft.revision)


def replay(session: Session, added: Sequence[Entry], taught: Sequence[Entry], replicas: int) -> list[float]:
    """Rewards of fresh rollouts on the tasks that ``taught`` were written from, with ``added`` in the bank.

    Draws depend on task and replica alone: two calls about the same entries are paired.
    """
    seen = session.recall(session.index_with(added))
    key, revision = session.key("replay"), session.draft.revision
    attempts = [
        Attempt(task, n, seen.of_task(task), "replay", revision, extend(key, task.id, n), partial(seen.of_step, task))
        for task in source_tasks(session, taught)
        for n in range(replicas)
    ]
    episodes = session.parts.player.play(attempts)
    spend(session, episodes)
    return [episode.reward for episode in episodes]


def source_tasks(session: Session, candidates: Sequence[Entry]) -> list[Task]:
    """The tasks that produced the candidates, in the order they were played."""
    sources = {source for entry in candidates for source in entry.sources}
    return list({e.task.id: e.task for e in session.recent if e.id in sources}.values())
