"""BM25 and embedding together, see ``memory.retrieval.hybrid``."""

from configs.retrieval import Bm25EmbeddingConfig
from memory.retrieval import bm25, embedding
from memory.retrieval.hybrid import Hybrid


def scorer(config: Bm25EmbeddingConfig) -> Hybrid:
    """The two scorers with the settings of a configuration."""
    return Hybrid(bm25.scorer(config), embedding.scorer(config), config.balance)
