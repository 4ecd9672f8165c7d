"""Steps of the policy: the rollout, rewards of its episodes, advantages of their tokens, and the update by both.

Rollout and update are lines 2 and 6 of CoEvo-RL Algorithm 1. A batch is played now, or was played ahead and is taken
into the run; the engine gets the weights of the update.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coevo.configs.update.advantage_config import AdvantageConfig, GigpoConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.advantages import estimate
from coevo.models.advantages.trajectory import Advantages, Trajectory, roundings, totals, zero_variance
from coevo.models.rewards import Rewards, reward, unrewarded
from coevo.models.trainer.samples import write_answers, write_samples, write_turns
from coevo.models.trainer.trainer_client import UpdateReport
from coevo.records.arrays import Floats
from coevo.records.episode import Episode, Turn, played
from coevo.records.metric_names import STREAK, UNREWARDED
from coevo.tasks.gates.episodes import check_advantages, check_episodes
from coevo.tasks.iteration.batch import measured, play, play_vectorised, tasks_of, treatment_groups, with_revisited
from coevo.tasks.iteration.held_out import limits_at
from coevo.tasks.iteration.prefetch import awaited, check_fresh, playing_ahead, staleness
from coevo.tasks.iteration.reflect import reflected
from coevo.tasks.pending_revision import PlayedBatch, Result, Shaped, Targets, apart, cost
from coevo.tasks.placement import insisted, make_room
from coevo.tasks.play.episode_metrics import check_losses, outcome_metrics, report_losses, spread, unusable_metrics
from coevo.tasks.play.treatment_groups import TaskBatch, TreatmentGroups
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name, stage, untracked


@stage("rollout")
def rollout(session: Session, drawn: TaskBatch) -> Result[list[Episode]]:
    """The batch of tasks, played; episodes in the order (task, replica).

    What was played of it ahead is taken (``rollout.ahead``); else it is played with the current policy and bank. With
    ``rollout.turns``, that many turns of each parallel environment: what of episodes was played in them, in the order
    (slot, time). Outcomes are those of the episodes that ended. With ``rollout.gateway``, agents with a loop of their
    own play.
    """
    source = session.source
    batch = source.collect(session) if source is not None else awaited(session, drawn.tasks) or _now(session, drawn)
    report_losses(session.stores.reporter, batch.episodes, "train")
    check_losses(batch.episodes, session.config.rollout.lost_limit, "train")
    metrics = _outcomes(session, batch.episodes) | batch.metrics | staleness(session, batch.episodes)
    metrics |= unusable_metrics(batch.episodes, session.config.alarm.unusable)
    return Result(batch.episodes, metrics, batch.rates, apart(cost(batch.episodes), "rollout"))


def _now(session: Session, drawn: TaskBatch) -> PlayedBatch:
    here, turns = session.here, session.config.rollout.turns
    seen = session.experience(here)
    episodes = play(session, here, drawn, seen) if turns is None else play_vectorised(session, turns, seen)
    return measured(session, episodes, seen)


def _outcomes(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    ended = [session.environments.whole(episode) for episode in episodes if not episode.following]
    figures = outcome_metrics(ended, "train") | spread(ended) if ended else {}
    outcomes = [(episode.success, episode.reward) for episode in played(ended)]
    worthless = unrewarded(outcomes, session.parts.env.reward_range)
    figures |= {UNREWARDED: float(worthless)} if worthless else {}
    if session.config.rollout.turns is None:
        return figures
    unfinished = len(episodes) - len(ended)
    return figures | {"agent/episodes/ended": float(len(ended)), "agent/episodes/unfinished": float(unfinished)}


@untracked("sample tasks")
def sample(session: Session) -> Result[TaskBatch]:
    """Draw the batch of training tasks; no panel holds any of them, and groups of some may try candidates.

    Metrics say where a staged schedule stands. The batch is empty where parallel environments draw a task whenever they
    are free (``rollout.turns``), and where agents choose their own (``rollout.gateway``).
    """
    metrics = {} if session.config.schedule.type == "joint" else session.due.phase().metrics()
    if session.config.rollout.turns is not None or session.source is not None:
        return Result(TaskBatch(()), metrics)
    tasks = with_revisited(session, tasks_of(session, session.here))
    return Result(TaskBatch(tasks, treatment_groups(session)), metrics)


HISTOGRAM = np.linspace(-3.0, 3.0, 13)
"""Edges of the advantage histogram; values beyond them count in the outer bins."""


@dataclass(frozen=True, slots=True)
class EpisodeScores:
    """An episode's scores over all its action tokens, [tokens]; empty where they are not needed.

    ``bootstrap`` is the value of the state after them: 0 where the episode is over.
    """

    penalties: Floats = field(default_factory=lambda: np.zeros(0))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    bootstrap: float = 0.0


@stage("advantage")
def advantage(session: Session, shaped: Shaped, tried: TreatmentGroups | None) -> Result[Targets]:
    """Advantages from the episodes' shaped rewards and those of their groups."""
    update = session.config.update
    assert update is not None
    scores = score(session, shaped.episodes)
    groups = [group_name(episode, tried) for episode in shaped.episodes]
    trajectories = trajectories_of(shaped.episodes, groups, shaped.rewards, scores, update.advantage)
    advantages = estimate(trajectories, update.advantage)
    flat = zero_variance(totals(trajectories), groups, roundings(trajectories))
    metrics = advantage_metrics(advantages.episodes, flat) | dict(advantages.metrics)
    metrics[f"policy/advantage/{part_name(update.advantage.type)}_spread"] = float(advantages.episodes.std())
    metrics |= _streak(session, nothing_to_compare(flat, groups, update.advantage))
    metrics |= score_metrics(shaped.episodes, scores, update.loss)
    return Result(Targets(advantages, [each.values for each in scores] if update.critic else []), metrics)


def group_name(episode: Episode, tried: TreatmentGroups | None) -> str:
    """Name of the group that an episode is compared with: those of its task that had the same context."""
    treated = tried is not None and tried.treats(episode.task.id, episode.replica)
    return f"{episode.task.id}/with the candidate" if treated else episode.task.id


def nothing_to_compare(flat: NDArray[np.bool_], groups: Sequence[Hashable], config: AdvantageConfig) -> bool:
    """True if the estimator compares episodes within groups, and no group of several has any variance.

    Args:
        flat: mask of episodes whose group has no variance, [episodes].
        groups: group of each episode.
        config: of the estimator.
    """
    return bool(config.grouped) and len(set(groups)) < len(groups) and bool(flat.all())


def _streak(session: Session, flat: bool) -> dict[str, float]:
    """Number of iterations in a row without variance in any group, this one included; empty if it is none."""
    pending, head = session.pending.metrics, session.stores.lineage.history.head()
    before = pending if "policy/advantage/std" in pending or head is None else head.metrics
    if flat:
        return {STREAK: before.get(STREAK, 0.0) + 1}
    return {STREAK: 0.0} if STREAK in pending else {}  # of an earlier iteration of the same revision


def trajectories_of(
    episodes: Sequence[Episode],
    groups: Sequence[str],
    rewards: Rewards,
    scores: Sequence[EpisodeScores],
    config: AdvantageConfig,
) -> list[Trajectory]:
    """Input of the estimator; ``groups`` has the group of each episode.

    An episode that a turn limit ended is over, and nothing follows it: the limit is part of the task. Only one that
    continues in the next update has a value beyond its last turn.
    """
    return [
        Trajectory(
            group=group,
            value=episode.shaped,
            rewards=turns,
            lengths=tuple(len(turn.completion.token_ids) for turn in episode.turns),
            anchors=tuple(_anchor(turn, config) for turn in episode.turns),
            penalties=scored.penalties,
            values=scored.values,
            bootstrap=scored.bootstrap,
        )
        for episode, group, turns, scored in zip(episodes, groups, rewards.turns, scores, strict=True)
    ]


def _anchor(turn: Turn, config: AdvantageConfig) -> Hashable:
    """Key of a turn's observation; None if its cluster was not computed."""
    if isinstance(config, GigpoConfig) and config.anchor == "cluster":
        return None if turn.cluster_id < 0 else turn.cluster_id
    return turn.observation


def score_metrics(episodes: Sequence[Episode], scores: Sequence[EpisodeScores], loss: LossConfig) -> dict[str, float]:
    """Mean value after unfinished episodes, and mean KL penalty where it is part of the reward."""
    beyond = [scored.bootstrap for episode, scored in zip(episodes, scores, strict=True) if episode.following]
    metrics = {"policy/critic/bootstrap": float(np.mean(beyond))} if beyond else {}
    if loss.kl_in == "reward":
        metrics["policy/reward/kl"] = float(np.mean([each.penalties.sum() for each in scores]))
    return metrics


def advantage_metrics(advantages: NDArray[np.float64], flat: NDArray[np.bool_]) -> dict[str, float]:
    """Spread and histogram of the advantages, and the share of episodes whose group had no variance."""
    counts, _ = np.histogram(np.clip(advantages, HISTOGRAM[0], HISTOGRAM[-1]), bins=HISTOGRAM)
    return {
        "policy/advantage/mean": float(advantages.mean()),
        "policy/advantage/std": float(advantages.std()),
        "policy/advantage/min": float(advantages.min()),
        "policy/advantage/max": float(advantages.max()),
        "policy/advantage/zero_variance_share": float(flat.mean()),
    } | {f"policy/advantage_histogram/from_{low:.1f}": float(n) for low, n in zip(HISTOGRAM[:-1], counts, strict=True)}


def score(session: Session, episodes: Sequence[Episode]) -> list[EpisodeScores]:
    """KL penalties where they are part of the reward, values where there is a critic; one per episode."""
    update, trainer = session.config.update, session.parts.trainer
    assert update is not None
    assert trainer is not None
    if not update.needs_scores():
        return [EpisodeScores() for _ in episodes]
    paths = session.stores.paths
    paths.scratch.mkdir(parents=True, exist_ok=True)
    turns = paths.scratch / "turns.parquet"
    write_turns(turns, episodes)
    make_room(session.config, session.parts.worker.engine)
    scores = insisted(session, lambda: trainer.score(turns, paths.scratch / "scores.parquet"))
    ends = np.cumsum([len(episode.turns) for episode in episodes])
    starts = ends - [len(episode.turns) for episode in episodes]
    beyond = iter(scores.values[sum(len(episode.turns) for episode in episodes) :])
    return [
        EpisodeScores(
            penalties=_penalties(episode, np.concatenate(scores.reference[start:end]), update.loss),
            values=np.concatenate(scores.values[start:end]),
            bootstrap=_first(next(beyond)) if episode.following else 0.0,
        )
        for episode, start, end in zip(episodes, starts.tolist(), ends.tolist(), strict=True)
    ]


def _first(values: Floats) -> float:
    """The value of a state, if there is a critic."""
    return float(values[0]) if values.size else 0.0


def _penalties(episode: Episode, reference: Floats, loss: LossConfig) -> Floats:
    """KL penalty of each action token; none where KL is in the loss."""
    if not reference.size:
        return reference
    behaviour = [logprob for turn in episode.turns for logprob in turn.completion.logprobs]
    from coevo.models.losses.policy_loss import kl_penalties

    return kl_penalties(behaviour, reference.tolist(), loss)


@untracked("shape")
def shape(session: Session, episodes: Sequence[Episode]) -> Result[Shaped]:
    """Shape the episodes and raise the run's baselines. A frozen policy needs no shaping."""
    update = session.config.update or UpdateConfig()
    rest = [episode for episode in episodes if not episode.teaches]
    episodes = [episode for episode in episodes if episode.teaches]
    progress = reflected(session, episodes)
    rewards = reward(progress.value, update.invalid_penalty, update.reward, session.baselines)
    if rewards.baselines:
        session.baselines = dict(rewards.baselines)
    extras = rewards.shaping.tolist()
    shaped = Shaped(
        [episode.with_shaping(extra) for episode, extra in zip(episodes, extras, strict=True)], rewards, rest
    )
    if session.config.update is None:
        return Result(shaped, progress.metrics, spent=progress.spent)
    worth = sum(episode.shaped for episode in shaped.episodes) / len(shaped.episodes)
    shaping = {f"policy/reward/{part_name(update.reward.type)}": worth, **rewards.metrics}
    return Result(shaped, {**progress.metrics, **shaping}, spent=progress.spent)


@stage("update")
def update(session: Session, episodes: Sequence[Episode], targets: Targets) -> Result[None]:
    """One update of policy and critic, or of the critic alone; afterwards the engine plays with the new weights.

    Until then it has the old ones, with which the next batch may be played meanwhile.
    """
    trainer, config = session.parts.trainer, session.config.update
    assert trainer is not None
    assert config is not None
    staging, ahead = session.stores.paths.staging, session.config.rollout.ahead
    if ahead:
        check_fresh(episodes, session.iteration, ahead)
    batch = staging / "batch.parquet"
    counts = write_samples(batch, episodes, targets.advantages, targets.values)
    make_room(session.config, session.parts.worker.engine)
    answers = None if session.due.critic_alone() else _answers(session, config)

    def trained() -> UpdateReport:
        if session.due.critic_alone():
            report = trainer.update_critic(batch, session.key("update"))
        else:
            report = trainer.update(batch, session.key("update"), answers)
        trainer.save(staging / "policy", staging / "optimizer")
        return report

    with playing_ahead(session):
        report = insisted(session, trained)
    closeness = session.parts.worker.engine.load(staging / "policy")
    metrics = {"policy/update/groups": float(counts.groups), "policy/update/skipped_groups": float(counts.skipped)}
    if "loss" in report.metrics:
        metrics[f"policy/loss/{part_name(config.loss.aggregation)}"] = report.metrics["loss"]
    named = {_name(name): value for name, value in report.metrics.items()}
    rates = {name: value for name, value in named.items() if "second" in name}
    rates |= {f"policy/weights/{name}": value for name, value in closeness.items()}
    metrics |= _rewards(session)
    return Result(None, metrics | {name: value for name, value in named.items() if name not in rates}, rates)


def _answers(session: Session, config: UpdateConfig) -> Path | None:
    """File with the answers that train the writer in this update; None without any."""
    writing = session.parts.writing
    if config.writer is None or writing is None or not writing.rewarded:
        return None
    # A policy behind an endpoint is never updated, and does without PyTorch.
    from coevo.models.losses.writer_loss import advantages

    path = session.stores.paths.staging / "answers.parquet"
    write_answers(path, [answer.drawn for answer in writing.rewarded], advantages(writing.rewarded, config.writer))
    return path


def _rewards(session: Session) -> dict[str, float]:
    """Mean reward of the answers' parts in this update, which is done with them; empty without any."""
    writing = session.parts.writing
    if writing is None or not writing.rewarded:
        return {}
    rewards, writing.rewarded = [part.reward for answer in writing.rewarded for part in answer.credits], []
    return {"policy/writer/reward": sum(rewards) / max(1, len(rewards))}


def _name(name: str) -> str:
    """Full name of a metric of the trainer."""
    for part in ("critic", "writer"):
        if name.startswith(f"{part}_"):
            return f"policy/{part}/{name.removeprefix(f'{part}_')}"
    return f"policy/update/{name}"


@stage("gate episodes")
def gate_episodes(session: Session, episodes: Sequence[Episode]) -> None:
    """Hold back episodes that are not whole groups of training episodes within their limits."""
    check_episodes(episodes, limits_at(session, session.here), session.stores.paths.quarantine)


@stage("gate advantages")
def gate_advantages(session: Session, episodes: Sequence[Episode], advantages: Advantages) -> None:
    """Hold back advantages that are not finite, or not centred where the estimator centres them."""
    check_advantages(episodes, advantages, session.stores.paths.quarantine)
