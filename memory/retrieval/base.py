"""What a scorer is: fitted to a library, it gives every entry that may be returned a score for a question."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from memory.library import Floats, Library, Rows
from records.draws import Key

NEVER = -np.inf
"""Score of an entry that must not be returned."""


@dataclass(frozen=True)
class Question:
    """What is asked of the bank.

    Attributes:
        text: an instruction or an observation.
        rows: of the library, those that may be returned.
        without: lower-case words of the text that say nothing, since every entry of the scope has them.
        draw: key of whatever is left to chance.
        tally: scorers count here what only they can know.
        seconds: and what they spent on parts of their own.
    """

    text: str
    rows: Rows
    without: frozenset[str]
    draw: Key
    tally: Counter[str]
    seconds: defaultdict[str, float]


Score = Callable[[Question], Floats]
"""(rows,) scores of ``question.rows``, ``NEVER`` where an entry must not be returned."""


class Scorer(Protocol):
    """Scores entries. It may keep what it computed of a text for the next library, and nothing else."""

    def fit(self, library: Library) -> Score:
        """How the entries of a library, at least one, are scored."""
        ...


def scorer_of(config: Any) -> Scorer:
    """The scorer that a configuration's ``type`` names."""
    name = config.type.replace("+", "_").replace("-", "_")
    made: Scorer = import_module(f"memory.retrieval.{name}").scorer(config)
    return made
