"""The entries of most utility, whatever is asked (JERP Eq. 13)."""

from configs.retrieval import UtilityConfig
from memory.library import Floats, Library
from memory.retrieval.base import Question, Score


class Utility:
    """Scores are utilities."""

    def fit(self, library: Library) -> Score:
        """Read the utilities."""

        def score(question: Question) -> Floats:
            return library.utility[question.rows]

        return score


def scorer(config: UtilityConfig) -> Utility:
    """There is nothing to set."""
    return Utility()
