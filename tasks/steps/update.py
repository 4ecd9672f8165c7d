"""The policy update in the trainer child (CoEvo-RL Algorithm 1, line 6), and weight synchronisation with the engine."""

from collections.abc import Sequence
from pathlib import Path

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.writer_loss import advantages
from coevo.models.trainer.samples import write_answers, write_samples
from coevo.records.episode import Episode
from coevo.tasks.iteration.prefetch import check_fresh, playing_ahead
from coevo.tasks.pending_revision import Result, Targets
from coevo.tasks.placement import make_room
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name, stage


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
    make_room(session.config, session.parts.player.engine)
    with playing_ahead(session):
        if session.due.critic_alone():
            report = trainer.update_critic(batch, session.key("update"))
        else:
            report = trainer.update(batch, session.key("update"), _answers(session, config))
        trainer.save(staging / "policy", staging / "optimizer")
    closeness = session.parts.player.engine.load(staging / "policy")
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
