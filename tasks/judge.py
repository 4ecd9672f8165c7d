"""What becomes of a proposal; by replay, if the admission asks for it: do the candidates help the current policy on the
tasks that taught them? (CoEvo-RL Eq. 7)"""

from collections.abc import Sequence
from functools import partial
from itertools import islice

from memory.admission.base import Decision, Trial
from memory.retirement import allowed
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
    library = session.library()
    candidates = allowed(proposal, library.barred)
    return session.parts.admission.decide(candidates, library, partial(replay, session), session.draft.revision)


def replay(session: Session, trials: Sequence[Trial], replicas: int) -> list[list[float]]:
    """Rewards of each trial; they are played together, as many episodes at a time as a rollout has."""
    rewards, rollout = [list[float]() for _ in trials], session.config.rollout
    attempts = (
        (mine, attempt)
        for mine, trial in zip(rewards, trials, strict=True)
        for attempt in _attempts(session, trial, replicas)
    )
    while batch := list(islice(attempts, rollout.tasks * rollout.group_size)):
        episodes = session.parts.player.play([attempt for _, attempt in batch])
        spend(session, episodes)
        for (mine, _), episode in zip(batch, episodes, strict=True):
            mine.append(episode.reward)
    return rewards


def _attempts(session: Session, trial: Trial, replicas: int) -> list[Attempt]:
    """Draws depend on task and replica alone: two trials on the same tasks are paired."""
    seen = session.recall(session.index_with(trial.added) if trial.added else session.index())
    key, revision = session.key("replay"), session.draft.revision
    return [
        Attempt(task, n, seen.of_task(task), "replay", revision, extend(key, task.id, n), partial(seen.of_step, task))
        for task in source_tasks(session, trial.taught)
        for n in range(replicas)
    ]


def source_tasks(session: Session, candidates: Sequence[Entry]) -> list[Task]:
    """The tasks that produced the candidates, in the order they were played."""
    sources = {source for entry in candidates for source in entry.sources}
    return list({e.task.id: e.task for e in session.recent if e.id in sources}.values())
