"""Scorers: fitted to a library, a scorer gives every entry that may be returned a score for a question."""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig, OutsideRetrievalConfig, SimilarityConfig
from coevo.configs.outside_part import Part, build
from coevo.memory.library import Library
from coevo.records.arrays import Floats, Indices
from coevo.records.draws import Key, key
from coevo.utilities.part_registry import Registry

NEVER = -np.inf
"""Score of an entry that must not be returned."""
MAX_FULL_SORT = 256
"""Scores that are sorted in full, which costs less than selecting the best first."""
ANY = key("search")
"""Key of random choices of a query that names none."""
NOWHERE = np.zeros(0, np.intp)
"""Positions of no result."""


@dataclass(frozen=True)
class BankQuery:
    """A query to the bank.

    Attributes:
        text: an instruction or an observation.
        rows: rows of the library that may be returned.
        without: lower-case words of the text to ignore, since every entry of the scope has them.
        draw: key of random choices.
        tally: counts made by scorers.
        seconds: seconds spent by parts of scorers.
    """

    text: str
    rows: Indices
    without: frozenset[str] = frozenset()
    draw: Key = ANY
    tally: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


Score = Callable[[BankQuery], Floats]
"""(rows,) scores of ``question.rows``, ``NEVER`` where an entry must not be returned."""


@runtime_checkable
class BestScore(Protocol):
    """A score function that can also find the best entries without the scores of all; ``NEVER`` is that of the rest."""

    def __call__(self, question: BankQuery) -> Floats:
        """As ``Score``."""
        ...

    def best(self, question: BankQuery, k: int) -> tuple[Indices, Floats]:
        """Positions in ``question.rows``, ascending, and scores of some entries.

        The best k are among them, and all that tie with the last of these when rounded to 12 decimals.
        """
        ...


class Scorer(Protocol):
    """A scorer of entries. It may keep values computed from a text for the next library, and nothing else."""

    def fit(self, library: Library) -> Score:
        """Return the score function of a library with at least one entry."""
        ...


class RetrievalPart(Part):
    """A retrieval of your own for ``bank.retrieval``: scores of entries, of which the best ``k`` are shown.

    How many entries are shown, when and to whom are settings beside ``options``: ``k``, ``scoped``, ``per``,
    ``warmup``, ``min_entries``, ``share``, ``general`` and ``step_query``. An object may keep values computed from a
    text for the next library, and nothing else: equal libraries and queries give equal scores.
    """

    setting: ClassVar[str] = OutsideRetrievalConfig.setting

    @abstractmethod
    def fit(self, library: Library) -> Score:
        """Score function of a library with at least one entry: from a ``BankQuery`` to scores of its rows, [rows]."""


SCORERS = Registry[Callable[[AnyRetrievalConfig | SimilarityConfig], Scorer]](
    "bank.retrieval.type",
    {
        "tfidf": "coevo.memory.retrieval.tfidf:scorer",
        "bm25": "coevo.memory.retrieval.bm25:scorer",
        "embedding": "coevo.memory.retrieval.embedding:scorer",
        "tfidf+embedding": "coevo.memory.retrieval.tfidf:with_embedding",
        "bm25+embedding": "coevo.memory.retrieval.bm25:with_embedding",
        "utility": "coevo.memory.retrieval.utility:scorer",
        "simutil-ucb": "coevo.memory.retrieval.simutil_ucb:scorer",
        "two-phase": "coevo.memory.retrieval.two_phase:scorer",
        "cluster": "coevo.memory.retrieval.cluster:scorer",
    },
)


def scorer_of(config: AnyRetrievalConfig | SimilarityConfig) -> Scorer:
    """The scorer of a configuration."""
    if isinstance(config, OutsideRetrievalConfig):
        part: RetrievalPart = build(config)
        return part
    return SCORERS.load(config.type)(config)


def top(scores: Floats, k: int) -> Indices:
    """Positions of the k best scores above ``NEVER``, best first, the earlier of equals first."""
    if k == 0:
        return NOWHERE
    if k >= len(scores) or len(scores) <= MAX_FULL_SORT:
        best = (-scores).argsort(kind="stable")[:k]
        return best[scores[best] > NEVER]
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    able = np.flatnonzero((scores >= least) & (scores > NEVER))
    return able[np.argsort(-scores[able], kind="stable")[:k]]
