"""Scores of episodes by the trainer: reference log-probs and values, needed for advantages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coevo.configs.update.loss import LossConfig
from coevo.models.losses.kl import kl_penalties
from coevo.models.trainer.samples import write_turns
from coevo.records.arrays import Floats
from coevo.records.episode import Episode
from coevo.tasks.placement import make_room
from coevo.tasks.session import Session


@dataclass(frozen=True, slots=True)
class EpisodeScores:
    """An episode's scores over all its action tokens, [tokens]; empty where they are not needed.

    ``bootstrap`` is the value of the state after them: 0 where the episode is over.
    """

    penalties: Floats = field(default_factory=lambda: np.zeros(0))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    bootstrap: float = 0.0


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
    make_room(session.config, session.parts.player.engine)
    scores = trainer.score(turns, paths.scratch / "scores.parquet")
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
    return kl_penalties(behaviour, reference.tolist(), loss)
