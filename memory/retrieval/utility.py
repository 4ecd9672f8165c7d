"""The entries with the highest utility, whatever the question (JERP Eq. 13)."""

from coevo.configs.bank.retrieval_config import UtilityConfig
from coevo.memory.library import Library
from coevo.memory.retrieval.scorer import BankQuery, Score
from coevo.records.arrays import Floats


class Utility:
    """Scores are utilities."""

    def fit(self, library: Library) -> Score:
        """Read the utilities."""

        def score(question: BankQuery) -> Floats:
            return library.utility[question.rows]

        return score


def scorer(config: UtilityConfig) -> Utility:
    """Scorer by utility, which has no settings."""
    return Utility()
