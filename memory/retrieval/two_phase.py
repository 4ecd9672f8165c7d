"""Two-phase retrieval (MemRL): similar entries are candidates, ranked by z-scores of similarity and utility."""

import numpy as np

from coevo.configs.bank.retrieval_config import TwoPhaseConfig
from coevo.memory.library import Library
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score, scorer_of
from coevo.records.arrays import Floats
from coevo.records.draws import generator


class TwoPhase:
    """Only entries above the threshold match; a share epsilon of the questions ranks them at random."""

    def __init__(self, config: TwoPhaseConfig) -> None:
        self._similarity = scorer_of(config.similarity)
        self._config = config

    def fit(self, library: Library) -> Score:
        """Fit the similarity."""
        similarity, config = self._similarity.fit(library), self._config

        def score(question: BankQuery) -> Floats:
            similarities = similarity(question)
            scores = np.full(len(question.rows), NEVER)
            chosen = np.flatnonzero(similarities > config.threshold)
            random = generator(question.draw)
            explores = random.random() < config.epsilon
            question.tally["explored"] += explores
            if explores:
                scores[chosen] = random.permutation(len(chosen))
            else:
                worth = z_scores(library.utility[question.rows[chosen]], config.clip)
                near = z_scores(similarities[chosen], config.clip)
                scores[chosen] = (1 - config.balance) * near + config.balance * worth
            return scores

        return score


def z_scores(values: Floats, clip: float) -> Floats:
    """Standardize values by their mean and population standard deviation, clipped to +-clip; 0 if all are equal."""
    deviations = values - values.mean() if len(values) else values
    spread = float(np.sqrt((deviations**2).mean())) if len(values) else 0.0
    # Equal values may differ from each other, and from their mean, by rounding.
    equal = spread <= 1e-6 * np.abs(values).max(initial=0.0)
    return np.zeros(len(values)) if equal else np.clip(deviations / spread, -clip, clip)


def scorer(config: TwoPhaseConfig) -> TwoPhase:
    """Two phases with the settings of a configuration."""
    return TwoPhase(config)
