"""The batch of an iteration: its tasks (CoEvo-RL Algorithm 1, line 2), and their episodes.

A group of N episodes per task is played under one retrieved context (CoEvo-RL Eq. 5).

Candidates on trial within the rollout budget (``bank.admission.type: within-group``): source tasks of candidates
replace some of the newly drawn tasks, and half of each such group plays with the candidate. In the update an episode is
compared with those of its own half only (``group_name``), which had the same context. A harmful candidate therefore
teaches the policy nothing about actions that its reader took because of it, and each half's baseline is the mean of
that half.

``play`` does not change the run, so it may run beside an update; ``measured`` may create clusters.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.envs.base import Environment
from coevo.envs.failures import attempted, sound
from coevo.memory.retrieval.index import Hit
from coevo.memory.trials import OnTrial, revisited
from coevo.records.draws import extend
from coevo.records.entry import Entry
from coevo.records.episode import UNSTAMPED, Episode, played
from coevo.records.metric_names import CUT
from coevo.records.task import Task
from coevo.tasks.iteration.paired_replay import in_force
from coevo.tasks.pending_revision import PlayedBatch, Position
from coevo.tasks.play.lesson_use import with_lesson_use
from coevo.tasks.play.play import Attempt
from coevo.tasks.play.retrieve import (
    NOTHING,
    Experience,
    Retrieved,
    assign_clusters,
    link_answers,
    sees,
    with_lesson_scores,
)
from coevo.tasks.play.treatment_groups import TaskBatch, TreatmentGroups
from coevo.tasks.play.vectorised_environments import RolloutPlan
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name

EntrySize = Callable[[Sequence[Entry], str], int]
"""Function that returns the prompt tokens of a block of entries for an instruction."""


def play(session: Session, at: Position, batch: TaskBatch, seen: Experience) -> list[Episode]:
    """The batch of an iteration, by policy and bank as they stand; episodes in the order (task, replica)."""
    group = range(session.config.rollout.group_size)
    shown = [(task, n, _shown(session, batch, task, n, seen)) for task in batch.tasks for n in group]
    return session.parts.worker.play([_attempt(session, at, *each) for each in shown])


def play_vectorised(session: Session, turns: int, seen: Experience) -> list[Episode]:
    """So many turns of each parallel environment; parts of episodes in the order (slot, time)."""

    def fresh(slot: int, number: int) -> Attempt:
        task = draw(session, slot, number)
        key = extend(session.key("rollout"), task.id, slot, number)
        return Attempt(task, 0, (), f"rollout-{session.iteration}.{slot}.{number}", session.pending.revision, key)

    def show(attempt: Attempt) -> Attempt:
        return replace(attempt, entries=seen.of_task(attempt.task), recall=partial(seen.of_step, attempt.task))

    plan = RolloutPlan(session.config.rollout.tasks, turns, fresh, show)
    return session.environments.play(session.parts.worker, plan)


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
        group, size = session.config.rollout.group_size, session.parts.worker.context.size
        metrics |= retrieval_metrics(bank.retrieval, seen, episodes, group, size)
    needed = partial(_needed, session.parts.env)
    used = with_lesson_use(episodes, seen, needed, session.parts.writing is not None, bool(session.bank.entries))
    scored = with_lesson_scores(used, seen)
    return PlayedBatch(scored, metrics | _cut_observations(session, episodes), rates)


def _needed(env: Environment[object], task: Task) -> Sequence[str] | None:
    return sound(attempted(partial(env.needed, task)))


def _cut_observations(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    """Share of turns whose observation or feedback prompts show shortened; absent without such a limit."""
    if session.config.context.observation_tokens is None:
        return {}
    is_cut = session.parts.worker.context.is_cut
    cuts = [is_cut(turn.observation) or is_cut(turn.feedback) for episode in played(episodes) for turn in episode.turns]
    return {CUT: sum(cuts) / len(cuts) if cuts else 0.0}


def _shown(session: Session, batch: TaskBatch, task: Task, replica: int, seen: Experience) -> Experience:
    """Experience that a replica plays with: that of the bank, that with a candidate, or none."""
    if batch.tried is not None and batch.tried.treats(task.id, replica):
        return batch.tried.experience(task.id, seen)
    bank, group = session.config.bank, session.config.rollout.group_size
    return seen if bank is not None and sees(bank.retrieval, replica, group) else NOTHING


def _attempt(session: Session, at: Position, task: Task, replica: int, shown: Experience) -> Attempt:
    return Attempt(
        task=task,
        replica=replica,
        entries=shown.of_task(task),
        stage=_stage(at),
        revision=at.revision,
        key=extend(session.key("rollout", at), task.id, replica),
        recall=partial(shown.of_step, task),
        version=session.iteration if session.config.rollout.ahead else UNSTAMPED,
    )


def _stage(at: Position) -> str:
    return f"rollout-{at.iteration}"


def tasks_of(session: Session, at: Position) -> list[Task]:
    """The batch of an iteration."""
    return session.parts.env.at(at.iteration + 1).sample(session.config.rollout.tasks, session.key("sample", at))


def draw(session: Session, slot: int, number: int) -> Task:
    """The task of a parallel environment that is free for the n-th time in this iteration."""
    env = session.parts.env.at(session.iteration + 1)
    (task,) = env.sample(1, extend(session.key("sample"), slot, number))
    return task


def retrieval_metrics(
    config: AnyRetrievalConfig, seen: Experience, episodes: Sequence[Episode], group: int, size: EntrySize
) -> dict[str, float]:
    """Metrics of one iteration that a repeated run reproduces.

    The mean best score is named after its scorer; metrics of optional settings appear only with these settings, and
    ``left_out`` only where entries were left out.
    """
    answers = seen.answers if isinstance(seen, Retrieved) else {"task": {}, "step": {}}
    hits = [*answers["task"].values(), *answers["step"].values()]
    figures = {f"bank/retrieval/{part_name(config.type)}_score": _mean([found[0].score for found in hits if found])}
    if config.per != "step":
        figures["bank/retrieval/task_hits"] = _hits(answers["task"].values())
    if config.per != "task":
        figures["bank/retrieval/step_hits"] = _hits(answers["step"].values())
        figures["bank/retrieval/step_tokens"] = _step_tokens(seen, episodes, size)
    if config.warmup or config.min_entries:
        figures["bank/retrieval/enabled"] = float(isinstance(seen, Retrieved))
    if isinstance(seen, Retrieved):
        figures |= {f"bank/retrieval/{what}": float(count) for what, count in seen.tally().items()}
    left = _left_out(config, seen, episodes, group)
    figures |= {"bank/retrieval/left_out": left} if left else {}
    return figures | (_halves(config, episodes, group) if config.share < 1 else {})


def retrieval_rates(seen: Experience) -> dict[str, float]:
    """Times in seconds, which vary between repeated runs."""
    if not isinstance(seen, Retrieved):
        return {}
    parts = {f"bank/retrieval/{part}_seconds": spent for part, spent in seen.parts().items()}
    return parts | {"bank/retrieval/seconds": seen.seconds}


def _halves(config: AnyRetrievalConfig, episodes: Sequence[Episode], group: int) -> dict[str, float]:
    """Success of the rollouts with the bank, and of those with the bare prompt."""
    episodes = played(episodes)
    told = [sees(config, episode.replica, group) for episode in episodes]
    sides = {
        side: [float(episode.success) for episode, sees_it in zip(episodes, told, strict=True) if sees_it == which]
        for side, which in (("conditioned", True), ("unconditioned", False))
    }
    return {"bank/retrieval/conditioned_share": _mean([float(each) for each in told])} | {
        f"bank/retrieval/{side}_success": _mean(outcomes) for side, outcomes in sides.items()
    }


def _step_tokens(seen: Experience, episodes: Sequence[Episode], size: EntrySize) -> float:
    """Mean prompt tokens per turn of entries for that turn only; lost episodes are left out."""
    added = [
        _added(seen, episode.task, turn.observation, size) if turn.retrieved else 0
        for episode in played(episodes)
        for turn in episode.turns
    ]
    return _mean(added)


def _left_out(config: AnyRetrievalConfig, seen: Experience, episodes: Sequence[Episode], group: int) -> float:
    """Mean retrieved entries per turn that exceed the budget of the prompt (``context.experience_tokens``)."""
    conditioned = [episode for episode in played(episodes) if sees(config, episode.replica, group)]
    turns = [(episode.task, turn) for episode in conditioned for turn in episode.turns]
    found = [{*seen.of_task(task), *seen.of_step(task, turn.observation)} for task, turn in turns]
    return _mean(
        [
            float(sum(entry.id not in turn.retrieved for entry in entries))
            for entries, (_, turn) in zip(found, turns, strict=True)
        ]
    )


def _added(seen: Experience, task: Task, observation: str, size: EntrySize) -> int:
    lasting = seen.of_task(task)
    added = (entry for entry in seen.of_step(task, observation) if entry not in lasting)
    return size([*lasting, *added], task.instruction) - size(lasting, task.instruction)


def _hits(answers: Iterable[list[Hit]]) -> float:
    return _mean([float(len(found)) for found in answers])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


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
