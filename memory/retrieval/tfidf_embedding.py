"""TF-IDF and embedding together, see ``memory.retrieval.hybrid``."""

from configs.retrieval import TfidfEmbeddingConfig
from memory.retrieval import tfidf
from memory.retrieval.embedding import Embedding
from memory.retrieval.hybrid import Hybrid


def scorer(config: TfidfEmbeddingConfig) -> Hybrid:
    """The two scorers with the settings of a configuration."""
    return Hybrid(tfidf.scorer(config), Embedding(config.encoder, 0.0), config.balance)
