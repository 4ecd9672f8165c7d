"""Cosine of sentence embeddings of a question and of an entry's fields."""

from collections.abc import Sequence

import numpy as np

from configs.retrieval import EmbeddingConfig, EmbeddingSimilarity, EncoderConfig
from memory.library import Floats, Library
from memory.retrieval.base import NEVER, Question, Score
from memory.retrieval.encoder import encoder_of
from records.entry import Entry


class Embedding:
    """Scores between -1 and 1."""

    def __init__(self, config: EncoderConfig, threshold: float) -> None:
        self._fields = config.fields
        self._encoder = encoder_of(config.model)
        self._threshold = threshold
        self._told = self._encoder.seconds

    def fit(self, library: Library) -> Score:
        """Embed the entries that were never embedded."""
        places = self._encoder.numbers([_text(entry, self._fields) for entry in library.entries])
        vectors = self._encoder.vectors()

        def score(question: Question) -> Floats:
            asked = self._encoder.query(question.text)
            question.seconds["embedding"] += self._encoder.seconds - self._told
            self._told = self._encoder.seconds
            # A matrix product would sum a row in an order that depends on where it stands.
            cosines = np.einsum("ij,j->i", vectors, asked)[places[question.rows]].astype(float)
            return np.where(cosines >= self._threshold, cosines, NEVER)

        return score


def scorer(config: EmbeddingConfig | EmbeddingSimilarity) -> Embedding:
    """Embeddings with the settings of a configuration; a similarity is judged by whoever asks for it."""
    threshold = config.threshold if isinstance(config, EmbeddingConfig) else -np.inf
    return Embedding(config.encoder, threshold)


def _text(entry: Entry, fields: Sequence[str]) -> str:
    return " . ".join(text for text in (getattr(entry, name) for name in fields) if text)
