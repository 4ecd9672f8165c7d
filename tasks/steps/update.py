"""The policy update in the trainer child (CoEvo-RL Algorithm 1, line 6), and the new weights' way to the engine."""

from collections.abc import Sequence

from coevo.models.trainer.samples import write_samples
from coevo.records.episode import Episode
from coevo.tasks.draft import Result
from coevo.tasks.placement import make_room
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name, stage
from coevo.tasks.steps.advantage import Targets
from coevo.tasks.steps.ahead import check_fresh, playing_ahead


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
    learn = trainer.update_critic if session.critic_learns_alone() else trainer.update
    with playing_ahead(session):
        report = learn(batch, session.key("update"))
        trainer.save(staging / "policy", staging / "optimizer")
    closeness = session.parts.player.engine.load(staging / "policy")
    metrics = {"policy/update/groups": float(counts.groups), "policy/update/skipped_groups": float(counts.skipped)}
    if "loss" in report.metrics:
        metrics[f"policy/loss/{part_name(config.loss.aggregation)}"] = report.metrics["loss"]
    named = {_name(name): value for name, value in report.metrics.items()}
    rates = {name: value for name, value in named.items() if "second" in name}
    rates |= {f"rollout/weights/{name}": value for name, value in closeness.items()}
    return Result(None, metrics | {name: value for name, value in named.items() if name not in rates}, rates)


def _name(name: str) -> str:
    part = name.removeprefix("critic_")
    return f"policy/update/{name}" if part == name else f"policy/critic/{part}"
