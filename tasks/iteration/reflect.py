"""Reflections of the writer on episodes: those that a reward or an update reads, and those on held-out panels."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from coevo.configs.update.reward_config import CapabilityEvolutionConfig
from coevo.configs.update.update_config import UpdateConfig
from coevo.memory.evidence.reflections import Reflected, figures, recalls
from coevo.memory.writers.writer import Reflector
from coevo.records.episode import Episode, played
from coevo.tasks.pending_revision import Result
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.session import Session
from coevo.tasks.writing.ask_writer_model import aside_of, ask_of
from coevo.tasks.writing.writer_rewards import predicted


def reflected(session: Session, episodes: Sequence[Episode]) -> Result[Sequence[Episode]]:
    """Episodes with the progress that the reward reads: the environment's, or a reflection's (RetroAgent 3.2).

    Predictions of their outcomes become samples of the next update, if it trains the writer by them (Eq. 3).
    """
    update = session.config.update
    if update is None or not (_reads(update) or update.trains_writer("prediction")):
        return Result(episodes)
    writer, writing = session.parts.writer, session.parts.writing
    # The configuration is refused where nobody reflects.
    assert isinstance(writer, Reflector)
    with in_stage(f"r{session.pending.revision} reflect"):
        made = writer.reflect(episodes, session.references, ask_of(writing, session.pending.revision))
    metrics = {f"policy/reflection/{name}": figure for name, figure in figures(made).items()}
    spent, rates = ({}, {}) if writing is None else (writing.cost(), writing.requests())
    if writing is not None and update.writer is not None and update.writer.reward == "prediction":
        writing.rewarded = predicted(made, update.writer.balance)
    if _reads(update):
        episodes = [replace(each.episode, progress=potential_of(each, made)) for each in made]
    return Result(episodes, metrics, rates, spent)


def panel_reflections(session: Session, panel: str, episodes: Sequence[Episode]) -> dict[str, float]:
    """Accuracy of the writer's predictions on a panel's first episodes, by outcome; nothing of them is kept."""
    count, writer = session.config.evaluation.reflections, session.parts.writer
    if not count:
        return {}
    # The configuration is refused where nobody reflects.
    assert isinstance(writer, Reflector)
    chosen = [episode for episode in played(episodes) if episode.teaches][:count]
    made = writer.reflect(chosen, session.references, aside_of(session.parts.writing, session.pending.revision))
    return {f"policy/reflection/{panel}/{name}": share for name, share in recalls(made).items()}


def potential_of(each: Reflected, made: Sequence[Reflected]) -> float:
    """Potential of an episode; without an answer that of its group, so that a dead writer model is no signal."""
    if each.answered:
        return each.reflection.potential
    group = [other.reflection.potential for other in made if other.answered and other.episode.task == each.episode.task]
    return fmean(group) if group else 0.0


def _reads(update: UpdateConfig) -> bool:
    reward = update.reward
    return isinstance(reward, CapabilityEvolutionConfig) and reward.potential == "reflection"
