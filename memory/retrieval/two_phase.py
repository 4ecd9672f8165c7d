"""Two-phase retrieval (MemRL): similar entries are candidates, and z-scores of similarity and utility choose."""

import numpy as np

from configs.retrieval import TwoPhaseConfig
from memory.library import Floats, Library
from memory.retrieval.base import NEVER, Question, Score, scorer_of
from records.draws import generator


class TwoPhase:
    """Only entries above the threshold are returned; for a share epsilon of the questions in random order."""

    def __init__(self, config: TwoPhaseConfig) -> None:
        self._similarity = scorer_of(config.similarity)
        self._config = config

    def fit(self, library: Library) -> Score:
        """Fit the similarity."""
        similarity, config = self._similarity.fit(library), self._config

        def score(question: Question) -> Floats:
            likeness = similarity(question)
            scores = np.full(len(question.rows), NEVER)
            chosen = np.flatnonzero(likeness > config.threshold)
            random = generator(question.draw)
            explores = random.random() < config.epsilon
            question.tally["explored"] += explores
            if explores:
                scores[chosen] = random.permutation(len(chosen))
            else:
                worth = z_scores(library.utility[question.rows[chosen]], config.clip)
                near = z_scores(likeness[chosen], config.clip)
                scores[chosen] = (1 - config.balance) * near + config.balance * worth
            return scores

        return score


def z_scores(values: Floats, clip: float) -> Floats:
    """Values less their mean, in population standard deviations, within +-clip; 0 where all are equal."""
    deviations = values - values.mean() if len(values) else values
    spread = float(np.sqrt((deviations**2).mean())) if len(values) else 0.0
    # Equal values need not have exactly their mean.
    return np.clip(deviations / spread, -clip, clip) if spread > 1e-12 else np.zeros(len(values))


def scorer(config: TwoPhaseConfig) -> TwoPhase:
    """Two phases with the settings of a configuration."""
    return TwoPhase(config)
