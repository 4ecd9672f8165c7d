"""The policy update in the trainer child (CoEvo-RL Algorithm 1, line 6), and the new weights' way to the engine."""

from collections.abc import Sequence

from models.samples import write_samples
from records.episode import Episode
from tasks.advantage import Targets
from tasks.ahead import check_fresh, playing_ahead
from tasks.room import make_room
from tasks.session import Session
from tasks.stage import part_name, stage


@stage("update")
def update(session: Session, episodes: Sequence[Episode], targets: Targets) -> None:
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
    learn = trainer.update_critic if session.critic_learns_alone() else trainer.update
    with playing_ahead(session):
        report = learn(batch, session.key("update"))
        trainer.save(staging / "policy", staging / "optimizer")
    session.parts.player.engine.load(staging / "policy")
    session.draft.metrics |= {"update/groups": float(counts.groups), "update/skipped_groups": float(counts.skipped)}
    if "loss" in report.metrics:
        session.draft.metrics[f"loss/{part_name(config.loss.aggregation)}"] = report.metrics["loss"]
    for name, value in report.metrics.items():
        target = session.draft.rates if "second" in name else session.draft.metrics
        target[f"update/{name}"] = value
