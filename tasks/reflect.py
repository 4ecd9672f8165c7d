"""Reflections as the potential of episodes (RetroAgent section 3.2), where the reward takes it from them."""

from collections.abc import Sequence
from dataclasses import replace

from memory.writers.reflection import ReflectionWriter, figures
from records.episode import Episode
from tasks.session import Session


def reflected(session: Session, episodes: Sequence[Episode]) -> Sequence[Episode]:
    """The episodes with the progress that the reward goes by: the environment's, or that of a reflection on each."""
    update = session.config.update
    reward = None if update is None else update.reward
    if reward is None or reward.type != "capability-evolution" or reward.potential != "reflection":
        return episodes
    writer = session.parts.writer
    # The configuration is refused where nobody reflects.
    assert isinstance(writer, ReflectionWriter)
    told = writer.reflect(episodes, session.references)
    session.draft.metrics |= {f"reflection/{name}": figure for name, figure in figures(told).items()}
    return [replace(each.episode, progress=each.reflection.potential) for each in told]
