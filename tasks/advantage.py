"""Advantages (CoEvo-RL Eq. 6)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.advantages import estimate, zero_variance
from records.episode import Episode
from tasks.session import Session
from tasks.stage import stage

HISTOGRAM = np.linspace(-3.0, 3.0, 13)
"""Edges of the advantage histogram; values beyond them count in the outer bins."""


@stage("advantage")
def advantage(session: Session, episodes: Sequence[Episode]) -> NDArray[np.float64]:
    """One advantage an episode, from its shaped return and those of its group."""
    config = session.config.update
    assert config is not None
    returns = np.array([episode.shaped for episode in episodes])
    groups = [episode.task.id for episode in episodes]
    advantages = estimate(returns, groups, config.advantage)
    session.draft.metrics |= advantage_metrics(advantages, zero_variance(returns, groups))
    return advantages


def advantage_metrics(advantages: NDArray[np.float64], flat: NDArray[np.bool_]) -> dict[str, float]:
    """Spread and histogram of the advantages, and the share of episodes whose group had no variance."""
    counts, _ = np.histogram(np.clip(advantages, HISTOGRAM[0], HISTOGRAM[-1]), bins=HISTOGRAM)
    return {
        "advantage/mean": float(advantages.mean()),
        "advantage/std": float(advantages.std()),
        "advantage/min": float(advantages.min()),
        "advantage/max": float(advantages.max()),
        "advantage/zero_variance_share": float(flat.mean()),
    } | {f"advantage_histogram/from_{low:.1f}": float(n) for low, n in zip(HISTOGRAM[:-1], counts, strict=True)}
