"""Vendi score (Friedman and Dieng 2023): effective number of different trajectories, as in RetroAgent section 4.8.

n equal texts score 1, and n texts without a common word score n.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from coevo.memory.retrieval.encoder import encoder_of
from coevo.memory.text import terms
from coevo.records.arrays import Floats
from coevo.records.episode import Episode

DECIMALS = 6
"""Decimals of a score; the last bits of eigenvalues differ between linear algebra libraries."""


def diversity(episodes: Iterable[Episode], encoder: str | None) -> dict[str, float]:
    """Vendi score of the ``successes`` and of the ``failures`` among episodes; absent where there are none.

    Lost episodes, and those without a turn, are left out.

    Args:
        episodes: of one panel or batch.
        encoder: sentence-transformers model, as ``bank.retrieval.encoder.model``; None counts words.

    Raises:
        CoevoError: the model cannot be loaded.
    """
    texts: dict[str, list[str]] = {"successes": [], "failures": []}
    for episode in episodes:
        if episode.teaches:
            texts["successes" if episode.success else "failures"].append(trajectory(episode))
    return {side: vendi(cosines(some, encoder)) for side, some in texts.items() if some}


def trajectory(episode: Episode) -> str:
    """Actions of an episode with their feedback, in order, one line per turn.

    Instruction and observations are left out: they are the task's, and make any batch of many tasks look explored.
    """
    return "\n".join(f"{turn.action} {turn.feedback}" for turn in episode.turns)


def vendi(similarities: Floats) -> float:
    """Exponential of the Shannon entropy of the eigenvalues of K / n, rounded to ``DECIMALS``.

    Args:
        similarities: K, (n, n), symmetric and positive semidefinite, with a diagonal of ones; n is at least 1.
    """
    spectrum = np.linalg.eigvalsh(similarities / len(similarities))
    held = spectrum[spectrum > np.finfo(np.float64).eps]
    return round(float(np.exp(-(held * np.log(held)).sum())), DECIMALS)


def cosines(texts: Sequence[str], encoder: str | None = None) -> Floats:
    """(texts, texts) cosines of the sentence embeddings or word counts of at least one text."""
    vectors = word_counts(texts) if encoder is None else _embedded(texts, encoder)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar: Floats = vectors @ vectors.T
    return similar


def word_counts(texts: Sequence[str]) -> Floats:
    """(texts, words) count of each word in each text; texts without words have a word of their own in common."""
    numbers = dict[str, int]()
    rows = [[numbers.setdefault(word, len(numbers)) for word in terms(text) or [""]] for text in texts]
    return np.array([np.bincount(row, minlength=len(numbers)) for row in rows], np.float64)


def _embedded(texts: Sequence[str], model: str) -> Floats:
    encoder = encoder_of(model)
    return np.array([encoder.query(text) for text in texts], np.float64)
