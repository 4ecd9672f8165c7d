"""Cosine of sentence embeddings of a question and of an entry's fields."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from coevo.configs.bank.retrieval_config import (
    Bm25EmbeddingConfig,
    EmbeddingConfig,
    EmbeddingSimilarity,
    TfidfEmbeddingConfig,
)
from coevo.memory.library import Library, PerEntry
from coevo.memory.retrieval.encoder import Encoder, encoder_of
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score
from coevo.records.arrays import Floats, Indices
from coevo.records.entry import Entry


class Embedding:
    """Scores between -1 and 1; entries below the threshold do not match."""

    def __init__(self, encoder: Encoder, fields: Sequence[str], threshold: float) -> None:
        self._encoder = encoder
        # With a single name, attrgetter would return the text itself.
        self._read = attrgetter(*fields, "id")
        self._threshold = threshold
        self._places = PerEntry(self._embed)
        self._told = self._encoder.seconds

    def fit(self, library: Library) -> Score:
        """Embed the new entries."""
        places = self._places.of(library.catalogue)
        vectors = self._encoder.vectors()

        def score(question: BankQuery) -> Floats:
            asked = self._encoder.query(question.text)
            question.seconds["embedding"] += self._encoder.seconds - self._told
            self._told = self._encoder.seconds
            # A matrix product would sum a row in an order that depends on its position.
            cosines = np.einsum("ij,j->i", vectors, asked)[places[question.rows]].astype(float)
            return np.where(cosines >= self._threshold, cosines, NEVER)

        return score

    def _embed(self, entries: Sequence[Entry]) -> Indices:
        return self._encoder.numbers([" . ".join(filter(None, texts[:-1])) for texts in map(self._read, entries)])


def scorer(config: EmbeddingConfig | EmbeddingSimilarity | TfidfEmbeddingConfig | Bm25EmbeddingConfig) -> Embedding:
    """Embeddings with the settings of a configuration; as a part of another scorer, without a threshold."""
    threshold = config.threshold if isinstance(config, EmbeddingConfig) else NEVER
    return Embedding(encoder_of(config.encoder.model), config.encoder.fields, threshold)
