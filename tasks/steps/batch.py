"""The batch of an iteration: its tasks (CoEvo-RL Algorithm 1, line 2), and their episodes.

A group of N episodes per task is played under one retrieved context (CoEvo-RL Eq. 5).

``play`` does not change the run, so it may run beside an update; ``measured`` may create clusters.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from coevo.records.draws import extend
from coevo.records.episode import UNSTAMPED, Episode, played
from coevo.records.metric_names import CUT
from coevo.records.task import Task
from coevo.tasks.draft import PlayedBatch, Position, Result
from coevo.tasks.play.attempt import Attempt
from coevo.tasks.play.episode_clusters import assign_clusters, link_answers
from coevo.tasks.play.retrieval_metrics import retrieval_metrics, retrieval_rates
from coevo.tasks.play.retrieve import NOTHING, Experience, sees
from coevo.tasks.play.slots import RolloutPlan
from coevo.tasks.session import Session
from coevo.tasks.stage import untracked
from coevo.tasks.steps.trial import with_revisited


def play(session: Session, at: Position, tasks: Sequence[Task], seen: Experience) -> list[Episode]:
    """The batch of an iteration, by policy and bank as they stand; episodes in the order (task, replica)."""
    group = range(session.config.rollout.group_size)
    return session.parts.player.play([_attempt(session, at, task, n, seen) for task in tasks for n in group])


def play_slots(session: Session, turns: int, seen: Experience) -> list[Episode]:
    """So many turns of each parallel environment; parts of episodes in the order (slot, time)."""

    def fresh(slot: int, number: int) -> Attempt:
        task = draw(session, slot, number)
        key = extend(session.key("rollout"), task.id, slot, number)
        return Attempt(task, 0, (), f"rollout-{session.iteration}.{slot}.{number}", session.draft.revision, key)

    def show(attempt: Attempt) -> Attempt:
        return replace(attempt, entries=seen.of_task(attempt.task), recall=partial(seen.of_step, attempt.task))

    return session.slots.play(session.parts.player, RolloutPlan(session.config.rollout.tasks, turns, fresh, show))


def ids_of(session: Session, at: Position, tasks: Sequence[Task]) -> list[str]:
    """Ids of the episodes that ``play`` returns."""
    group = range(session.config.rollout.group_size)
    return [Episode.name(at.revision, _stage(at), task, n) for task in tasks for n in group]


def measured(session: Session, episodes: list[Episode], seen: Experience) -> PlayedBatch:
    """The batch with its clusters, which it may make, and what its retrieval was like."""
    metrics, rates = dict[str, float](), retrieval_rates(seen)
    clusters, bank = session.bank.clusters, session.config.bank
    if clusters is not None:
        since = perf_counter()
        episodes = assign_clusters(clusters, episodes)
        if bank is not None and bank.retrieval.type == "cluster":
            link_answers(clusters, episodes, seen)
        rates["bank/retrieval/cluster_seconds"] = perf_counter() - since
        metrics["bank/retrieval/clusters"] = float(len(clusters))
    if bank is not None:
        group, size = session.config.rollout.group_size, session.parts.player.context.size
        metrics |= retrieval_metrics(bank.retrieval, seen, episodes, group, size)
    return PlayedBatch(episodes, metrics | _cut_observations(session, episodes), rates)


def _cut_observations(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    """Share of turns whose observation or feedback prompts show shortened; absent without such a limit."""
    if session.config.context.observation_tokens is None:
        return {}
    is_cut = session.parts.player.context.is_cut
    cuts = [is_cut(turn.observation) or is_cut(turn.feedback) for episode in played(episodes) for turn in episode.turns]
    return {CUT: sum(cuts) / len(cuts) if cuts else 0.0}


def _attempt(session: Session, at: Position, task: Task, replica: int, seen: Experience) -> Attempt:
    rollout, bank = session.config.rollout, session.config.bank
    shown = seen if bank is not None and sees(bank.retrieval, replica, rollout.group_size) else NOTHING
    if session.arms is not None and session.arms.treats(task.id, replica):
        shown = session.arms.experience(task.id, seen)
    return Attempt(
        task=task,
        replica=replica,
        entries=shown.of_task(task),
        stage=_stage(at),
        revision=at.revision,
        key=extend(session.key("rollout", at), task.id, replica),
        recall=partial(shown.of_step, task),
        version=session.iteration if rollout.ahead else UNSTAMPED,
    )


def _stage(at: Position) -> str:
    return f"rollout-{at.iteration}"


@untracked("sample tasks")
def sample(session: Session) -> Result[list[Task]]:
    """Draw the batch of training tasks; no panel holds any of them. Metrics say where a staged schedule stands.

    It is empty where parallel environments draw a task whenever they are free (``rollout.turns``).
    """
    metrics = {} if session.config.schedule.type == "joint" else session.phase().metrics()
    if session.config.rollout.turns is not None:
        return Result([], metrics)
    return Result(with_revisited(session, tasks_of(session, session.here())), metrics)


def tasks_of(session: Session, at: Position) -> list[Task]:
    """The batch of an iteration."""
    return session.parts.env.at(at.iteration + 1).sample(session.config.rollout.tasks, session.key("sample", at))


def draw(session: Session, slot: int, number: int) -> Task:
    """The task of a parallel environment that is free for the n-th time in this iteration."""
    env = session.parts.env.at(session.iteration + 1)
    (task,) = env.sample(1, extend(session.key("sample"), slot, number))
    return task
