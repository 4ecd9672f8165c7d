"""Gates of the loop. A batch that fails is quarantined and stops the run."""

from collections.abc import Sequence
from dataclasses import replace

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.memory.writers.writer import Proposal
from coevo.models.advantages.trajectory import Advantages
from coevo.records.episode import Episode
from coevo.records.task import Panel
from coevo.tasks.draft import Position
from coevo.tasks.gates.entries import check_candidates, check_edits
from coevo.tasks.gates.episodes import EpisodeLimits, check_advantages, check_episodes
from coevo.tasks.gates.incoming import check_panel
from coevo.tasks.session import Session
from coevo.tasks.stage import stage


@stage("gate panels")
def gate_panels(session: Session) -> None:
    """Hold back a held-out panel that is due and is not what it should be."""
    for name in session.panels_due():
        check_panel(panel_of(session, name), session.stores.paths.quarantine)


@stage("gate episodes")
def gate_episodes(session: Session, episodes: Sequence[Episode]) -> None:
    """Hold back episodes that are not whole groups of training episodes within their limits."""
    check_episodes(episodes, limits_at(session, session.here()), session.stores.paths.quarantine)


@stage("gate advantages")
def gate_advantages(session: Session, episodes: Sequence[Episode], advantages: Advantages) -> None:
    """Hold back advantages that are not finite, or not centred where the estimator centres them."""
    check_advantages(episodes, advantages, session.stores.paths.quarantine)


@stage("gate candidates")
def gate_candidates(session: Session, proposal: Proposal) -> None:
    """Hold back candidates that say nothing, say too much, or stem from an evaluation, and operations that do."""
    if proposal.entries:
        check_candidates(proposal.entries, session.stores.paths.quarantine)
    if proposal.edits:
        check_edits(proposal.edits, session.stores.paths.quarantine)


def panel_of(session: Session, name: str) -> Panel:
    """Panel of the evaluation that is due, in the world of the iteration that it ends."""
    return session.parts.env.at(session.updates()).panel(name, session.config.evaluation.tasks)


def episode_limits(config: RunConfig, env: Environment[object], max_positions: int) -> EpisodeLimits:
    """Limits of training episodes, from the configuration and the environment's panels."""
    rollout, held = config.rollout, held_out(config, env)
    return EpisodeLimits(rollout.group_size, env.reward_range, rollout.sampling.max_new_tokens, max_positions, held)


def limits_at(session: Session, at: Position) -> EpisodeLimits:
    """Limits of an iteration's episodes: the panels of a world that drifts have other tasks later."""
    env, limits = session.parts.env.at(at.iteration + 1), session.parts.limits
    return limits if env is session.parts.env else replace(limits, held_out=held_out(session.config, env))


def held_out(config: RunConfig, env: Environment[object]) -> frozenset[str]:
    """Ids of the tasks of all panels of an environment."""
    return frozenset(task.id for name in env.panels for task in env.panel(name, config.evaluation.tasks).tasks)
